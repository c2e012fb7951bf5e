//! The client tools that Anthropic's API defines and leaves to its callers to run: `bash`
//! (`bash_20250124`) and `str_replace_based_edit_tool` (`text_editor_20250728`). There they are
//! declared by type and name alone; every other format gets a schema.
//!
//! `bash` is one shell per sandbox as a model sees it: directory, variables, functions, aliases and options are there in the
//! next call. It is not one process, which would keep its sandbox from sleeping and die with it: each command is a bash of
//! its own that begins with what the last one left in a file of the sandbox. So `exit`, a syntax error or a deadline ends
//! a command and never the session, and the session outlives sleep and this process; what does not pass on are open
//! descriptors, and jobs: a process that was put into the background runs on, but is no job of the next command.

mod bash;
mod edit;
mod editor;
mod refusal;
mod session;
mod view;

use std::sync::Arc;

use eyot::Result;
use serde::{Deserialize, Serialize};

use super::set::Toolset;

/// The longest file that the editor reads or writes, in bytes: 64 MiB.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Limits of the tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnthropicToolsOptions {
    /// The deadline of a command, in milliseconds; 120,000. The tool has no argument for it.
    pub bash_timeout_ms: u64,
    /// The most characters of a file that are shown at once; the API calls it `max_characters`.
    /// `None`: as much as any tool shows ([`super::MAX_TEXT_BYTES`]).
    pub max_characters: Option<usize>,
}

impl Default for AnthropicToolsOptions {
    fn default() -> Self {
        Self { bash_timeout_ms: 120_000, max_characters: None }
    }
}

/// The toolset `anthropic` with these options.
pub fn anthropic_tools(options: AnthropicToolsOptions) -> Result<Toolset> {
    let options = Arc::new(options);
    Toolset::new("anthropic", [bash::tool(options.clone())?, editor::tool(options)?])
}

/// The same without options.
pub(super) fn default_tools() -> Result<Toolset> {
    anthropic_tools(AnthropicToolsOptions::default())
}
