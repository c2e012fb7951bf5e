//! `eyot snapshot`: keeps the files of a sandbox, lists what is kept, and removes it.

use eyot::{SandboxName, SnapshotInfo};
use eyot_engine::SnapshotOptions;
use serde_json::json;

use super::rm::settle;
use crate::args::{SnapshotArgs, SnapshotCommand};
use crate::branch_names::{in_pool, pool};
use crate::context::Context;
use crate::durations::{age, moment, since};
use crate::errors::Failure;
use crate::sizes::shown_bytes;
use crate::table::Table;

pub async fn run(args: SnapshotArgs, context: &Context) -> Result<u8, Failure> {
    match args.command {
        Some(SnapshotCommand::Ls { pool }) => list(pool, context).await,
        Some(SnapshotCommand::Rm { snapshots }) => remove(&snapshots, context).await,
        None => take(args, context).await,
    }
}

async fn take(args: SnapshotArgs, context: &Context) -> Result<u8, Failure> {
    let named = args.sandbox.unwrap_or_default();
    let (pool, name) = in_pool(&named, context).await?;
    let (name_of_snapshot, labels) = (args.name, args.label.into_iter().collect());
    let options = SnapshotOptions {
        name: name_of_snapshot,
        labels,
        stop: args.stop.stop,
        ..SnapshotOptions::default()
    };
    let mut taken = pool.snapshot(&name, options).await.map_err(|error| context.explained(error, &named))?;
    taken.snapshot = taken.snapshot.without_secrets(false);
    note_stopped(&taken.stopped, context);
    if context.output.json {
        context.output.value(&taken)?;
    } else {
        context.output.text(&format!("{}\n", taken.snapshot.id))?;
    }
    Ok(0)
}

/// Says which commands were ended.
pub(super) fn note_stopped(stopped: &[String], context: &Context) {
    for command in stopped {
        context.output.note(&format!("`{command}` was ended"));
    }
}

async fn list(name: Option<SandboxName>, context: &Context) -> Result<u8, Failure> {
    let snapshots =
        if context.has_no_state()? { Vec::new() } else { pool(name, context).await?.snapshots().await? };
    let snapshots: Vec<_> = snapshots.into_iter().map(|info| info.without_secrets(false)).collect();
    match (context.output.json, context.output.quiet) {
        (true, _) => context.output.value(&snapshots)?,
        (false, true) => {
            let ids: String = snapshots.iter().map(|info| format!("{}\n", info.id)).collect();
            context.output.text(&ids)?;
        }
        (false, false) => context.output.text(&table(&snapshots))?,
    }
    Ok(0)
}

fn table(snapshots: &[SnapshotInfo]) -> String {
    let mut table = Table::new(["NAME", "ID", "SANDBOX", "PARENT", "OWN", "SHARED", "TAKEN", "AGE"]);
    for info in snapshots {
        // A parent that was removed has no name any more.
        let parent = info.parent.as_ref().map(|id| {
            let parent = snapshots.iter().find(|other| other.id == *id);
            parent.and_then(|parent| parent.name.as_ref()).map_or_else(|| id.to_string(), ToString::to_string)
        });
        table.row([
            info.name.as_ref().map(ToString::to_string).unwrap_or_default(),
            info.id.to_string(),
            info.sandbox_name.to_string(),
            parent.unwrap_or_default(),
            info.own_bytes.map_or_else(|| "-".to_owned(), shown_bytes),
            info.shared_bytes.map_or_else(|| "-".to_owned(), shown_bytes),
            moment(info.created_ms),
            age(since(info.created_ms)),
        ]);
    }
    table.render()
}

async fn remove(snapshots: &[String], context: &Context) -> Result<u8, Failure> {
    let (mut removed, mut failures) = (Vec::new(), Vec::new());
    for named in snapshots {
        match remove_one(named, context).await {
            Ok(()) => removed.push(named),
            Err(failure) => failures.push(failure),
        }
    }
    if context.output.json {
        context.output.value(&json!({ "removed": removed }))?;
    }
    settle(failures, ("removed", &removed), context)
}

async fn remove_one(named: &str, context: &Context) -> Result<(), Failure> {
    let (pool, name) = in_pool(named, context).await?;
    Ok(pool.remove_snapshot(&name).await?)
}
