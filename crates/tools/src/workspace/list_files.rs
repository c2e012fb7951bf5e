//! `list_files`: what a directory holds, a line each.

use eyot::{FileType, Result, WorkspaceEntry};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::clip::clip;
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::names;
use crate::output::ToolOutput;

const DESCRIPTION: &str = "List files and directories inside the sandbox workspace.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Relative directory path inside the sandbox. Defaults to root.
    path: Option<String>,
}

pub(super) fn tool() -> Result<ToolDef> {
    ToolDef::typed("list_files", DESCRIPTION, async |context: ToolContext, asked: Args| {
        let workspace = context.sandbox(None).await?.workspace();
        let entries = workspace.list_files(asked.path.as_deref().unwrap_or(".")).await?;
        let lines: Vec<_> = entries.iter().map(line).collect();
        let how =
            |_| "list the directories below it one by one, or look with exec_command and find".to_owned();
        Ok(ToolOutput::text(if lines.is_empty() {
            "No files found.".to_owned()
        } else {
            clip(&lines.join("\n"), how)
        }))
    })
    .map(ToolDef::read_only)
}

fn line(entry: &WorkspaceEntry) -> String {
    let kind = match entry.file_type {
        FileType::File => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Other => "other",
    };
    let size = entry.size.map(|size| format!(" {size}b")).unwrap_or_default();
    format!("{kind}{size}\t{}", names::display_path(entry.path.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_line_whatever_its_name() {
        let entry = |path: &str, size| WorkspaceEntry { path: path.into(), file_type: FileType::File, size };
        assert_eq!(line(&entry("a b", Some(3))), "file 3b\ta b");
        assert_eq!(line(&entry("x\nfile 9b\ty", None)), "file\t$'x\\nfile 9b\\ty'");
    }
}
