//! `str_replace_based_edit_tool`: looks at files and directories, makes files and changes them.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result, Sandbox, WriteMode, WriteOptions};
use schemars::JsonSchema;
use serde::Deserialize;

use super::refusal::{is_refusal, refusal};
use super::{AnthropicToolsOptions, MAX_FILE_BYTES, edit, view};
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::output::ToolOutput;

const DESCRIPTION: &str = "View, create and edit text files. `view` shows a file with line numbers, or a directory two \
                           levels deep; `create` makes a new file and its parent directories; `str_replace` replaces a \
                           text that occurs exactly once; `insert` puts text after a line.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EditorCommand {
    View,
    Create,
    StrReplace,
    Insert,
}

impl EditorCommand {
    fn name(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Create => "create",
            Self::StrReplace => "str_replace",
            Self::Insert => "insert",
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// What to do.
    command: EditorCommand,
    /// Path to a file or a directory; a relative one begins at the sandbox's working directory.
    path: String,
    /// `view` of a file: the first and the last line to show, counted from 1; -1 as the last is the file's end.
    view_range: Option<Vec<i64>>,
    /// `create`: the file's content.
    file_text: Option<String>,
    /// `str_replace`: the text to replace; it must occur exactly once.
    old_str: Option<String>,
    /// `str_replace`: what replaces it; nothing if left out.
    new_str: Option<String>,
    /// `insert`: the line after which to insert; 0 is the file's beginning.
    insert_line: Option<i64>,
    /// `insert`: the text to insert.
    insert_text: Option<String>,
}

pub(super) fn tool(options: Arc<AnthropicToolsOptions>) -> Result<ToolDef> {
    let tool = ToolDef::typed(
        "str_replace_based_edit_tool",
        DESCRIPTION,
        move |context: ToolContext, asked: Args| {
            let max_characters = options.max_characters;
            async move {
                let sandbox = context.sandbox(None).await?;
                let (command, path) = (asked.command, asked.path.clone());
                let done = asked.run(&sandbox, max_characters).await;
                done.map(ToolOutput::text).map_err(|error| documented_error(command, &path, error))
            }
        },
    );
    Ok(tool?.with_anthropic_type("text_editor_20250728"))
}

impl Args {
    async fn run(self, sandbox: &Sandbox, max_characters: Option<usize>) -> Result<String> {
        let Self { command, path, view_range, file_text, old_str, new_str, insert_line, insert_text } = self;
        match command {
            EditorCommand::View => view::view(sandbox, &path, view_range.as_deref(), max_characters).await,
            EditorCommand::Create => create(sandbox, &path, required(file_text, "file_text", command)?).await,
            EditorCommand::StrReplace => {
                let old = required(old_str, "old_str", command)?;
                edit::str_replace(sandbox, &path, &old, &new_str.unwrap_or_default()).await
            }
            EditorCommand::Insert => {
                let line = required(insert_line, "insert_line", command)?;
                // Models that learned the tool's older versions say `new_str` here.
                let text = required(insert_text.or(new_str), "insert_text", command)?;
                edit::insert(sandbox, &path, line, &text).await
            }
        }
    }
}

fn required<T>(value: Option<T>, name: &str, command: EditorCommand) -> Result<T> {
    value.ok_or_else(|| {
        let message = format!("Parameter `{name}` is required for command: {}", command.name());
        refusal(ErrorKind::Invalid, message)
    })
}

async fn create(sandbox: &Sandbox, path: &str, content: String) -> Result<String> {
    let options = WriteOptions {
        mode: WriteMode::CreateNew,
        max_file_bytes: Some(MAX_FILE_BYTES),
        ..WriteOptions::default()
    };
    sandbox.write_with(path, content, options).await?;
    Ok(format!("File created successfully at: {path}"))
}

/// An error of the sandbox in the words that models know of this tool.
fn documented_error(command: EditorCommand, path: &str, error: Error) -> Error {
    let message = match (error.kind(), command) {
        _ if is_refusal(&error) => return error,
        (ErrorKind::NotFound, _) => {
            format!("The path {path} does not exist. Please provide a valid path.")
        }
        (ErrorKind::IsDirectory, _) => {
            format!("The path {path} is a directory and only the `view` command can be used on directories")
        }
        (ErrorKind::AlreadyExists, EditorCommand::Create) => {
            format!("File already exists at: {path}. Cannot overwrite files using command `create`.")
        }
        _ => return error,
    };
    Error::new(error.kind(), message)
}
