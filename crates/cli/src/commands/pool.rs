//! `eyot pool`: manages the pools of the state folder, or of a server, and their sandboxes.

use eyot::{PoolStatus, SandboxInfo, SandboxName, Service};
use eyot_engine::PoolCreate;
use eyot_engine::store::Store;
use serde_json::json;

use super::rm::settle;
use crate::args::{MembersArgs, PoolArgs, PoolCommand, PoolCreateArgs};
use crate::confirm::{DECLINED, confirm};
use crate::context::Context;
use crate::errors::Failure;
use crate::pools::{Pool, Pools};
use crate::table::Table;

pub async fn run(args: PoolArgs, context: &Context) -> Result<u8, Failure> {
    match args.command {
        PoolCommand::Ls { pool: None } => pools(context).await,
        PoolCommand::Ls { pool: Some(pool) } => members(pool, context).await,
        PoolCommand::Create(args) => create(args, context).await,
        PoolCommand::Sleep(args) => sleep(args, context).await,
        PoolCommand::Rm { pool, names, force } if names.is_empty() => close(pool, force, context).await,
        PoolCommand::Rm { pool, names, .. } => remove(pool, &names, context).await,
        PoolCommand::Reconcile { new_store } => reconcile(new_store, context).await,
    }
}

async fn pools(context: &Context) -> Result<u8, Failure> {
    let names = if context.has_no_state()? { Vec::new() } else { Pools::of(context).await?.names().await? };
    match (context.output.json, context.output.quiet) {
        (true, _) => context.output.value(&names)?,
        (false, true) => {
            context.output.text(&names.iter().map(|name| format!("{name}\n")).collect::<String>())?;
        }
        (false, false) => context.output.text(&with_counts(&names, context).await?)?,
    }
    Ok(0)
}

/// Returns the table of pools, each with the number of its sandboxes.
async fn with_counts(pools: &[SandboxName], context: &Context) -> Result<String, Failure> {
    let mut table = Table::new(["NAME", "SANDBOXES"]);
    if pools.is_empty() {
        return Ok(table.render());
    }
    let sandboxes = context.provider().await?.list().await?;
    let names = context.names()?;
    let pool_of = |info: &SandboxInfo| match names.pooled(&info.id) {
        Some(pooled) => Some(pooled.pool.clone()),
        None => info.pool.clone(),
    };
    let in_pools: Vec<Option<SandboxName>> = sandboxes.iter().map(pool_of).collect();
    for pool in pools {
        let count = in_pools.iter().filter(|one| one.as_ref() == Some(pool)).count();
        table.row([pool.to_string(), count.to_string()]);
    }
    Ok(table.render())
}

async fn members(pool: SandboxName, context: &Context) -> Result<u8, Failure> {
    let entries = Pool::existing(pool, context).await?.list().await?;
    if context.output.json {
        context.output.value(&entries)?;
        return Ok(0);
    }
    let mut table = Table::new(["NAME", "STATUS", "IMAGE"]);
    for entry in entries {
        let status = match entry.status {
            PoolStatus::Running => "running",
            PoolStatus::Sleeping => "sleeping",
            PoolStatus::Damaged => "damaged",
        };
        table.row([entry.name.to_string(), status.to_owned(), entry.image]);
    }
    context.output.text(&table.render())?;
    Ok(0)
}

async fn create(args: PoolCreateArgs, context: &Context) -> Result<u8, Failure> {
    context.refuse_if_it_ends_with_us("create")?;
    let service = |command: String| Service { command, cwd: None, env: Default::default() };
    let create = PoolCreate {
        image: args.image,
        sleep_after_ms: args.sleep_after,
        spec: None,
        services: args.services.into_iter().map(service).collect(),
    };
    let created = Pool::of(args.pool, context).await?.create(&args.name, create).await?;
    if context.output.json {
        context.output.value(&created)?;
        return Ok(0);
    }
    if !created.differs.is_empty() {
        context.output.note(&format!("it was there already, with another {}", created.differs.join(" and ")));
    }
    context.output.text(&format!("{}\n", created.sandbox))?;
    Ok(0)
}

async fn sleep(args: MembersArgs, context: &Context) -> Result<u8, Failure> {
    let pool = Pool::existing(args.pool, context).await?;
    let (mut asleep, mut failures) = (Vec::new(), Vec::new());
    for name in &args.names {
        match pool.sleep(name).await {
            Ok(()) => asleep.push(name),
            Err(error) => failures.push(error),
        }
    }
    if context.output.json {
        context.output.value(&json!({ "asleep": asleep }))?;
    }
    settle(failures, ("stopped", &asleep), context)
}

async fn remove(pool: SandboxName, names: &[String], context: &Context) -> Result<u8, Failure> {
    let pool = Pool::existing(pool, context).await?;
    let (mut removed, mut failures) = (Vec::new(), Vec::new());
    for name in names {
        match pool.remove(name).await {
            Ok(()) => removed.push(name),
            Err(error) => failures.push(error),
        }
    }
    if context.output.json {
        context.output.value(&json!({ "removed": removed }))?;
    }
    settle(failures, ("removed", &removed), context)
}

async fn close(name: SandboxName, force: bool, context: &Context) -> Result<u8, Failure> {
    let pool = Pool::existing(name.clone(), context).await?;
    let removed: Vec<SandboxName> = pool.list().await?.into_iter().map(|entry| entry.name).collect();
    if !force && !removed.is_empty() && !confirm(&question(&name, &removed), context.output)? {
        return Ok(DECLINED);
    }
    pool.close().await?;
    if context.output.json {
        context.output.value(&json!({ "removed": removed }))?;
    }
    Ok(0)
}

fn question(pool: &SandboxName, sandboxes: &[SandboxName]) -> String {
    let what = if sandboxes.len() == 1 { "sandbox" } else { "sandboxes" };
    let names: Vec<&str> = sandboxes.iter().map(SandboxName::as_str).collect();
    format!("destroy the pool `{pool}` with its {} {what}: {}?", sandboxes.len(), names.join(", "))
}

async fn reconcile(new_store: bool, context: &Context) -> Result<u8, Failure> {
    context.refuse_server(
        "a server puts right what it finds when it starts, and this is for this host's pools",
    )?;
    if new_store {
        context.refuse_database("`--new-store` is for a store that lies in a file")?;
        Store::replace_lost(context.store_file()?)?;
    }
    let done = context.engine().await?.reconciled_on_open().to_vec();
    if context.output.json {
        context.output.value(&done)?;
        return Ok(0);
    }
    let line = |done: &eyot_engine::Reconciled| format!("{}/{}: {}\n", done.pool, done.sandbox, done.what);
    context.output.text(&done.iter().map(line).collect::<String>())?;
    Ok(0)
}
