//! `eyot ls`: the sandboxes there are.

use eyot::{SandboxInfo, SandboxStatus};

use crate::args::LsArgs;
use crate::context::Context;
use crate::durations::{age, moment, since};
use crate::errors::Failure;
use crate::redaction;
use crate::table::Table;

pub async fn run(args: &LsArgs, context: &Context) -> Result<u8, Failure> {
    let mut sandboxes = context.provider()?.list().await?;
    sandboxes.retain(|info| args.label.iter().all(|label| has_label(info, label)));
    match (context.output.json, context.output.quiet) {
        (true, _) => {
            let facts: Result<Vec<_>, _> =
                sandboxes.iter().map(|info| redaction::facts(info, false)).collect();
            context.output.value(&facts?)?;
        }
        (false, true) => context.output.text(&ids(&sandboxes))?,
        (false, false) => context.output.text(&table(&sandboxes))?,
    }
    Ok(0)
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

fn table(sandboxes: &[SandboxInfo]) -> String {
    let mut table = Table::new(["NAME", "ID", "STATUS", "IMAGE", "CREATED", "AGE"]);
    for info in sandboxes {
        table.row([
            info.name.to_string(),
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
    }
}
