//! `diff`: the files that differ from those of a checkpoint.

use eyot::{ChangeKind, CompareOptions, FileChange, Result, SandboxPath};
use eyot_engine::ComparedPoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sandbox_of;
use crate::names::display_path;
use crate::{MAX_TEXT_BYTES, ToolContent, ToolContext, ToolDef, ToolOutput};

/// The most changes in one answer.
const MAX_CHANGES: usize = 1000;
/// The bytes of an entry beside its path.
const ENTRY_BYTES: usize = 40;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    #[schemars(extend("default" = "default"))]
    sandbox: Option<String>,
    /// Without it, the last one or, if there is none, the files that the sandbox began with
    #[serde(default)]
    checkpoint: Option<String>,
    /// Only what lies here and below
    #[serde(default)]
    #[schemars(extend("default" = "/"))]
    path: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Answer {
    /// Sorted by path
    changes: Vec<Change>,
}

#[derive(Serialize, JsonSchema)]
struct Change {
    path: String,
    change: Kind,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Added,
    Changed,
    Removed,
}

pub(super) fn tool() -> Result<ToolDef> {
    let description = format!(
        "List the files of a sandbox that changed since a checkpoint. At most {MAX_CHANGES} of them."
    );
    Ok(ToolDef::typed("diff", &description, run)?.returns::<Answer>().read_only())
}

async fn run(context: ToolContext, args: Args) -> Result<ToolOutput> {
    let sandbox = sandbox_of(&context, args.sandbox.as_deref())?.to_owned();
    let from = match args.checkpoint {
        Some(checkpoint) => ComparedPoint::Named(checkpoint),
        None => ComparedPoint::BaseOf(sandbox.clone()),
    };
    let path = args.path.as_deref().map_or_else(|| Ok(SandboxPath::root()), SandboxPath::parse)?;
    let found =
        context.pool.compare(&from, &ComparedPoint::Sandbox(sandbox), &CompareOptions::below(path)).await?;
    let (changes, shortened) = fitting(found.changes);
    let shown = changes.len();
    let mut output = ToolOutput::json(&Answer { changes });
    if found.truncated || shortened {
        let note = format!("[eyot: these are the first {shown} changes; there are more: narrow `path`]");
        output.content.push(ToolContent::Text(note));
    }
    Ok(output)
}

/// Returns the first of them, as many as an answer may have, and whether there are more.
fn fitting(changes: Vec<FileChange>) -> (Vec<Change>, bool) {
    let all = changes.len();
    let mut bytes = 0;
    let shown: Vec<Change> = changes
        .into_iter()
        .take(MAX_CHANGES)
        .map(shown)
        .take_while(|change| {
            bytes += change.path.len() + ENTRY_BYTES;
            bytes <= MAX_TEXT_BYTES
        })
        .collect();
    let shortened = shown.len() < all;
    (shown, shortened)
}

fn shown(change: FileChange) -> Change {
    let kind = match change.change {
        ChangeKind::Added => Kind::Added,
        ChangeKind::Changed => Kind::Changed,
        ChangeKind::Removed => Kind::Removed,
    };
    Change { path: display_path(change.path.as_bytes()), change: kind }
}
