//! `eyot rm`: destroys sandboxes. Each is tried; failures are reported at the end.

use eyot::{Error, ErrorKind, SandboxInfo, SandboxProvider, SandboxStatus};
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
    let (mut removed, mut failures) = (Vec::new(), Vec::new());
    for name in names {
        let (provider, found) = context.find(&name).await?;
        match remove(provider.as_ref(), &found, forgive).await {
            Ok(true) => removed.push(name),
            Ok(false) => {}
            Err(error) => failures.push(context.explained(error, &name)),
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
    settle(failures, context)
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

/// Removes a sandbox. Returns whether there was one.
async fn remove(provider: &dyn SandboxProvider, name: &str, forgive: bool) -> Result<bool, Error> {
    match provider.remove(name).await {
        Ok(()) => Ok(true),
        Err(error) if forgive && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Reports all failures but the last, and returns that one.
pub(super) fn settle(mut failures: Vec<Error>, context: &Context) -> Result<u8, Failure> {
    let Some(last) = failures.pop() else { return Ok(0) };
    for failure in failures {
        context.output.complain(&failure);
    }
    Err(last.into())
}
