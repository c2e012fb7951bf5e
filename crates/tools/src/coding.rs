//! Flue's tools: `read`, `write`, `edit`, `bash`, `grep`, `glob`, with the names, schemas, texts and limits of its 2.x
//! line, so that an agent that was written for them finds them here.
//!
//! What differs, on purpose: a command whose deadline passes keeps its output so far; edits that run side by side lose
//! nothing, whatever the file is called; a file that is not UTF-8 is said to be so instead of being mangled (and `edit`
//! leaves the bytes that it does not replace as they are); a file name with a line feed in it cannot pass for two.
//! `timeout` is the only deadline of `bash`, and sizes count UTF-16 units, both as Flue has it.

mod bash;
mod edit;
mod glob;
mod grep;
mod read;
mod units;
mod write;

use eyot::Result;

use super::set::Toolset;

pub use bash::bash_answer;
pub use read::show_lines;

/// The longest file that a tool reads into memory or writes, in bytes: 64 MiB.
pub(super) const MAX_FILE_BYTES: u64 = 64 << 20;
/// The most lines of a text that a model is shown.
const MAX_LINES: usize = 2_000;
/// The longest text that a model is shown, in UTF-16 units; Flue calls them bytes.
const MAX_UNITS: usize = 50 * 1024;

/// The toolset `coding`.
pub(super) fn coding() -> Result<Toolset> {
    let tools = [read::tool()?, write::tool()?, edit::tool()?, bash::tool()?, grep::tool()?, glob::tool()?];
    Toolset::new("coding", tools)
}
