//! `eyot workspace`: lists and removes the persistent workspaces of the state folder.

use std::path::Path;

use eyot::{Error, ErrorKind};
use indicatif::HumanBytes;
use serde_json::json;

use super::rm::settle;
use crate::args::{WorkspaceArgs, WorkspaceCommand};
use crate::confirm::{DECLINED, confirm};
use crate::context::Context;
use crate::durations::{age, since};
use crate::errors::Failure;
use crate::provider::{self, KeptWorkspace, ProviderRow, WorkspacesOfProvider};
use crate::table::Table;

pub async fn run(args: WorkspaceArgs, context: &Context) -> Result<u8, Failure> {
    refuse_without_workspaces(context.provider_settings.row)?;
    let state = if context.has_no_state()? { None } else { Some(context.state_folder()?) };
    if state.is_some() {
        // A sandbox whose time is over has no workspace any more; the list removes it.
        context.provider().await?.list().await?;
    }
    match args.command {
        WorkspaceCommand::Ls => {
            show(&state.as_deref().map_or(Ok(Vec::new()), provider::kept_workspaces)?, context)
        }
        WorkspaceCommand::Rm { names, force } => remove(&names, force, state.as_deref(), context),
    }
}

/// Refuses a provider whose persistent workspaces are not in the state folder.
fn refuse_without_workspaces(row: &ProviderRow) -> Result<(), Failure> {
    match row.workspaces {
        WorkspacesOfProvider::StateFolder => Ok(()),
        WorkspacesOfProvider::Elsewhere { place, hint } => Err(Failure::usage(place).hint(hint)),
        WorkspacesOfProvider::None => {
            Err(Failure::usage(format!("the provider {} has no persistent workspaces", row.name)))
        }
    }
}

fn show(workspaces: &[KeptWorkspace], context: &Context) -> Result<u8, Failure> {
    match (context.output.json, context.output.quiet) {
        (true, _) => context.output.value(&workspaces)?,
        (false, true) => {
            let names: String = workspaces.iter().map(|workspace| format!("{}\n", workspace.name)).collect();
            context.output.text(&names)?;
        }
        (false, false) => context.output.text(&table(workspaces))?,
    }
    Ok(0)
}

fn table(workspaces: &[KeptWorkspace]) -> String {
    let mut table = Table::new(["NAME", "SIZE", "CHANGED", "USED BY"]);
    for KeptWorkspace { name, size_bytes, changed_ms, sandboxes } in workspaces {
        let size = size_bytes.map_or_else(|| "-".to_owned(), |bytes| HumanBytes(bytes).to_string());
        let used_by = if sandboxes.is_empty() { "-".to_owned() } else { sandboxes.join(", ") };
        table.row([name.clone(), size, age(since(*changed_ms)), used_by]);
    }
    table.render()
}

/// Removes each workspace. Failures are reported at the end.
fn remove(names: &[String], force: bool, state: Option<&Path>, context: &Context) -> Result<u8, Failure> {
    if !force && !confirm(&question(names), context.output)? {
        return Ok(DECLINED);
    }
    let (mut removed, mut failures) = (Vec::new(), Vec::new());
    for name in names {
        match remove_one(name, state) {
            Ok(()) => removed.push(name),
            Err(error) => failures.push(error),
        }
    }
    if context.output.json {
        context.output.value(&json!({ "removed": removed }))?;
    }
    settle(failures, ("removed", &removed), context)
}

fn remove_one(name: &str, state: Option<&Path>) -> Result<(), Error> {
    let removed = match state {
        Some(state) => provider::remove_kept_workspace(state, name),
        None => Err(Error::new(ErrorKind::NotFound, format!("there is no workspace `{name}`"))),
    };
    removed.map_err(|error| match error.kind() {
        ErrorKind::NotFound => error.with_hint("`eyot workspace ls` lists them"),
        _ => error,
    })
}

fn question(names: &[String]) -> String {
    match names {
        [name] => format!("remove the workspace `{name}` with all its files?"),
        _ => format!("remove {} workspaces with all their files: {}?", names.len(), names.join(", ")),
    }
}
