//! `eyot rm`: destroys sandboxes. Each is tried; failures are reported at the end.

use eyot::{ErrorKind, SandboxInfo, SandboxProvider, SandboxStatus, SnapshotInfo};
use eyot_engine::DEFAULT_SANDBOX;
use serde_json::json;

use crate::args::RmArgs;
use crate::confirm::{DECLINED, confirm};
use crate::context::Context;
use crate::errors::Failure;

pub async fn run(args: &RmArgs, context: &Context) -> Result<u8, Failure> {
    let all = if args.all { context.provider().await?.list().await? } else { Vec::new() };
    if !args.force && !all.is_empty() {
        let question = format!("destroy all that `eyot ls` lists, {}?", counted(all.len()));
        if !confirm(&question, context.output)? {
            return Ok(DECLINED);
        }
    }
    let ids = all.iter().map(|info| info.id.to_string());
    let names: Vec<String> = args.names.iter().cloned().chain(ids).collect();
    // With --all somebody else may have been faster, which is as good.
    let forgive = args.force || args.all;
    let (mut removed, mut kept, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    let snapshots = snapshots(context).await;
    for name in names {
        match remove(&name, forgive, &snapshots, context).await {
            Ok(Some(snapshots)) => {
                kept.extend(snapshots);
                removed.push(name);
            }
            Ok(None) => {}
            Err(failure) => failures.push(failure),
        }
    }
    let damaged = damaged(&all, &removed);
    match (context.output.json, damaged.as_slice()) {
        (true, []) => context.output.value(&json!({ "removed": removed }))?,
        (true, damaged) => context.output.value(&json!({ "removed": removed, "damaged": damaged }))?,
        (false, []) if !all.is_empty() => {
            context.output.note(&format!("destroyed {}", counted(removed.len())))
        }
        (false, []) => {}
        (false, damaged) => context.output.note(&said(damaged)),
    }
    if !kept.is_empty() {
        context.output.note(&note_of_kept(&kept));
    }
    // With --all they were counted.
    let named = if args.all { &[] } else { removed.as_slice() };
    settle(failures, ("removed", named), context)
}

/// Lists the snapshots, of which a note is to name those that stay. There are none if nobody reads that note, or if they can't be
/// listed.
async fn snapshots(context: &Context) -> Vec<SnapshotInfo> {
    let is_silent = context.output.json || context.output.quiet;
    let provider = if is_silent { None } else { context.provider().await.ok() };
    match provider.and_then(|provider| provider.snapshots().ok()) {
        Some(snapshots) => snapshots.list().await.unwrap_or_default(),
        None => Vec::new(),
    }
}

/// Returns the snapshots of a sandbox, as commands take their names.
async fn snapshots_of(named: &str, all: &[SnapshotInfo], provider: &dyn SandboxProvider) -> Vec<String> {
    if all.is_empty() {
        return Vec::new();
    }
    let Ok(sandbox) = provider.info(named).await else { return Vec::new() };
    all.iter().filter(|snapshot| snapshot.sandbox == sandbox.id).map(name_for_commands).collect()
}

fn name_for_commands(snapshot: &SnapshotInfo) -> String {
    match (&snapshot.name, snapshot.pool.as_ref().filter(|pool| pool.as_str() != DEFAULT_SANDBOX)) {
        (None, _) => snapshot.id.to_string(),
        (Some(name), None) => name.to_string(),
        (Some(name), Some(pool)) => format!("{pool}/{name}"),
    }
}

/// The most snapshots that a note names.
const NAMED_SNAPSHOTS: usize = 5;

fn note_of_kept(kept: &[String]) -> String {
    match kept {
        [one] => format!("a snapshot stays; `eyot snapshot rm {one}` removes it"),
        some if some.len() <= NAMED_SNAPSHOTS => {
            format!("{} snapshots stay; `eyot snapshot rm {}` removes them", some.len(), some.join(" "))
        }
        many => format!("{} snapshots stay; `eyot snapshot ls` lists them", many.len()),
    }
}

fn counted(count: usize) -> String {
    format!("{count} {}", if count == 1 { "sandbox" } else { "sandboxes" })
}

/// Returns those of the removed sandboxes that were damaged.
fn damaged<'a>(all: &'a [SandboxInfo], removed: &[String]) -> Vec<&'a str> {
    let damaged =
        all.iter().filter(|info| info.status == SandboxStatus::Damaged).map(|info| info.id.as_str());
    damaged.filter(|id| removed.iter().any(|removed| removed == id)).collect()
}

fn said(damaged: &[&str]) -> String {
    let what = if damaged.len() == 1 { "sandbox" } else { "sandboxes" };
    format!("removed {} damaged {what}: {}", damaged.len(), damaged.join(", "))
}

/// Removes a sandbox, and returns its snapshots that a note is to name; `None` if there was no sandbox.
async fn remove(
    named: &str,
    forgive: bool,
    snapshots: &[SnapshotInfo],
    context: &Context,
) -> Result<Option<Vec<String>>, Failure> {
    let (provider, found) = context.find(named).await?;
    let snapshots = snapshots_of(&found, snapshots, provider.as_ref()).await;
    match provider.remove(&found).await {
        Ok(()) => Ok(Some(snapshots)),
        Err(error) if forgive && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {
            Ok(None)
        }
        Err(error) => Err(context.explained(error, named).into()),
    }
}

/// Reports all failures but the last, and returns that one. Says before what was done in spite of them.
pub(super) fn settle<T: ToString>(
    failures: Vec<impl Into<Failure>>,
    (did, done): (&str, &[T]),
    context: &Context,
) -> Result<u8, Failure> {
    let mut failures: Vec<Failure> = failures.into_iter().map(Into::into).collect();
    let Some(last) = failures.pop() else { return Ok(0) };
    if !done.is_empty() && !context.output.json {
        let names: Vec<String> = done.iter().map(ToString::to_string).collect();
        context.output.note(&format!("{did} {}", names.join(", ")));
    }
    for failure in failures {
        if let Failure::Error { error, .. } = failure {
            context.output.complain(&error);
        }
    }
    Err(last)
}
