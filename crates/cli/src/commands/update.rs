//! `eyot update`: changes the deadlines and the labels of a sandbox that is there.

use std::collections::BTreeMap;

use eyot::wire::{PatchLifecycle, PatchSandbox};
use eyot::{Error, ErrorKind, Sandbox, SandboxInfo, SandboxProvider};
use eyot_engine::Changes;

use crate::args::{ChangeArgs, UpdateArgs, idle_action_without_timeout};
use crate::context::Context;
use crate::errors::Failure;
use crate::redaction;
use crate::sandbox_names::PooledSandbox;

pub async fn run(args: &UpdateArgs, context: &Context) -> Result<u8, Failure> {
    let (provider, name) = context.find(&args.name).await?;
    let info = provider.info(&name).await.map_err(|error| context.explained(error, &args.name))?;
    let patch = patch(&args.changes);
    refuse_idle_action_without_timeout(&args.changes, &info, &patch)?;
    match context.server()? {
        Some(server) => server.change(&info.id, &patch).await?,
        None => change(&info, patch, provider.as_ref(), context).await?,
    }
    if context.output.json {
        let changed = provider.info(info.id.as_str()).await?;
        let mut facts = redaction::facts(&changed, false)?;
        context.add_pool(&mut facts, &changed.id)?;
        context.output.value(&facts)?
    } else {
        context.output.text(&format!("{}\n", args.name))?
    }
    Ok(0)
}

/// Refuses what would never happen, as a create does.
fn refuse_idle_action_without_timeout(
    args: &ChangeArgs,
    info: &SandboxInfo,
    patch: &PatchSandbox,
) -> Result<(), Failure> {
    let lifecycle = patch.lifecycle.as_ref().map(|patch| patch.clone().applied(info.spec.lifecycle.clone()));
    if args.on_idle.is_none() || lifecycle.is_none_or(|lifecycle| lifecycle.idle_timeout_ms.is_some()) {
        return Ok(());
    }
    Err(idle_action_without_timeout())
}

fn patch(args: &ChangeArgs) -> PatchSandbox {
    let set = args.label.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
    let labels: BTreeMap<_, _> = args.remove_label.iter().map(|key| (key.clone(), None)).chain(set).collect();
    let has_deadline = args.ttl.is_some() || args.idle_timeout.is_some() || args.on_idle.is_some();
    let lifecycle = PatchLifecycle {
        ttl_ms: args.ttl.map(|ttl| ttl.0),
        idle_timeout_ms: args.idle_timeout.map(|timeout| timeout.0),
        on_idle: args.on_idle,
        // A deadline that is named is meant to hold.
        auto_destroy: Some(true),
    };
    PatchSandbox { labels, lifecycle: has_deadline.then_some(lifecycle), egress: None }
}

/// Changes a sandbox of this host. That of a pool is changed through its pool, which remembers it.
async fn change(
    info: &SandboxInfo,
    patch: PatchSandbox,
    provider: &dyn SandboxProvider,
    context: &Context,
) -> Result<(), Failure> {
    let lifecycle = patch.lifecycle.map(|lifecycle| lifecycle.applied(info.spec.lifecycle.clone()));
    if let Some(PooledSandbox { pool, .. }) = context.names()?.pooled(&info.id) {
        let pool = context.pool_of(&context.engine().await?, pool.clone())?;
        let changes = Changes { labels: patch.labels, lifecycle, egress: None };
        return Ok(pool.as_provider().change(info.id.as_str(), changes).await?);
    }
    if !patch.labels.is_empty() {
        let message =
            format!("change sandbox `{}`: only a sandbox of a pool can change its labels", info.name);
        return Err(Error::new(ErrorKind::Unsupported, message).into());
    }
    if let Some(lifecycle) = &lifecycle {
        Sandbox::wake(provider, info.id.as_str()).await?.set_lifecycle(lifecycle).await?;
    }
    Ok(())
}
