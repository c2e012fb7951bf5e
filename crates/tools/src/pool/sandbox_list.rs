//! `sandbox_list`: the sandboxes of the session.

use eyot::{PoolEntry, PoolStatus, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ToolContext, ToolDef, ToolOutput};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {}

#[derive(Serialize, JsonSchema)]
struct Answer {
    sandboxes: Vec<SandboxEntry>,
}

#[derive(Serialize, JsonSchema)]
struct SandboxEntry {
    name: String,
    image: String,
    status: EntryStatus,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EntryStatus {
    Running,
    Sleeping,
}

pub(super) fn tool() -> Result<ToolDef> {
    let description =
        "List all active sandboxes in this session. One that sleeps has its files and wakes when it is used.";
    Ok(ToolDef::typed("sandbox_list", description, run)?.returns::<Answer>().read_only())
}

async fn run(context: ToolContext, _args: Args) -> Result<ToolOutput> {
    let sandboxes = context.pool.list().await?.into_iter().filter_map(SandboxEntry::of_active).collect();
    Ok(ToolOutput::json(&Answer { sandboxes }))
}

impl SandboxEntry {
    /// A sandbox that can be used; a damaged one can't.
    fn of_active(entry: PoolEntry) -> Option<Self> {
        let status = match entry.status {
            PoolStatus::Running => EntryStatus::Running,
            PoolStatus::Sleeping => EntryStatus::Sleeping,
            PoolStatus::Damaged => return None,
        };
        Some(Self { name: entry.name.to_string(), image: entry.image, status })
    }
}
