//! `eyot ls`: the sandboxes there are.

use std::collections::HashMap;

use eyot::{SandboxId, SandboxInfo, SandboxName, SandboxStatus};
use serde_json::Value;

use crate::args::LsArgs;
use crate::context::Context;
use crate::durations::{age, moment, since};
use crate::errors::Failure;
use crate::redaction;
use crate::table::Table;

pub async fn run(args: &LsArgs, context: &Context) -> Result<u8, Failure> {
    let mut sandboxes = context.provider().await?.list().await?;
    sandboxes.retain(|info| args.label.iter().all(|label| has_label(info, label)));
    let pools = context.of_pools()?;
    match (context.output.json, context.output.quiet) {
        (true, _) => {
            let facts: Result<Vec<_>, _> = sandboxes.iter().map(|info| facts(info, &pools)).collect();
            context.output.value(&facts?)?;
        }
        (false, true) => context.output.text(&ids(&sandboxes))?,
        (false, false) => context.output.text(&table(&sandboxes, &pools))?,
    }
    Ok(0)
}

/// The pool of a sandbox and its name there, by its id. To its provider it has another name.
type OfPools = HashMap<SandboxId, (SandboxName, SandboxName)>;

fn facts(info: &SandboxInfo, pools: &OfPools) -> Result<Value, Failure> {
    let mut facts = redaction::facts(info, false)?;
    if let Some((pool, name)) = pools.get(&info.id) {
        (facts["name"], facts["pool"]) = (name.as_str().into(), pool.as_str().into());
    }
    Ok(facts)
}

/// As other commands take it.
fn shown(info: &SandboxInfo, pools: &OfPools) -> String {
    match pools.get(&info.id) {
        Some((pool, name)) => format!("{pool}/{name}"),
        None => info.name.to_string(),
    }
}

fn has_label(info: &SandboxInfo, wanted: &str) -> bool {
    let labels = &info.spec.labels;
    match wanted.split_once('=') {
        Some((key, value)) => labels.get(key).is_some_and(|found| found == value),
        None => labels.contains_key(wanted),
    }
}

fn ids(sandboxes: &[SandboxInfo]) -> String {
    sandboxes.iter().map(|info| format!("{}\n", info.id)).collect()
}

fn table(sandboxes: &[SandboxInfo], pools: &OfPools) -> String {
    let mut table = Table::new(["NAME", "ID", "STATUS", "IMAGE", "CREATED", "AGE"]);
    for info in sandboxes {
        table.row([
            shown(info, pools),
            info.id.to_string(),
            status(info.status).to_owned(),
            info.spec.image.clone().unwrap_or_else(|| "-".to_owned()),
            moment(info.created_ms),
            age(since(info.created_ms)),
        ]);
    }
    table.render()
}

/// The status as a word.
pub fn status(status: SandboxStatus) -> &'static str {
    match status {
        SandboxStatus::Creating => "creating",
        SandboxStatus::Running => "running",
        SandboxStatus::Sleeping => "sleeping",
        SandboxStatus::Dead => "dead",
        SandboxStatus::Damaged => "damaged",
    }
}
