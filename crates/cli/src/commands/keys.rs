//! `eyot keys`: manages the keys of a server.

use eyot_engine::store::KeyRow;
use eyot_server::api::Keys;
use serde_json::json;

use super::rm::settle;
use crate::args::{KeysArgs, KeysCommand};
use crate::context::Context;
use crate::durations::moment;
use crate::errors::Failure;
use crate::table::Table;

pub async fn run(args: KeysArgs, context: &Context) -> Result<u8, Failure> {
    if matches!(args.command, KeysCommand::Ls) && context.has_no_state()? {
        show(&[], context)?;
        return Ok(0);
    }
    let keys = Keys::new(context.store().await?);
    match args.command {
        KeysCommand::Create { name, pool } => {
            let pools = if pool.is_empty() { vec![name.clone()] } else { pool };
            let made = keys.create(name, pools).await?;
            if context.output.json {
                context.output.value(&json!({ "key": made.row, "secret": made.secret }))?
            } else {
                context.output.text(&format!("{}\n", made.secret))?
            }
            context.output.note(&format!(
                "Created key `{}` for {} `{}`. Save it; it won't be shown again.",
                made.row.name,
                if made.row.pools.len() == 1 { "pool" } else { "pools" },
                pools_of(&made.row).replace(", ", "`, `")
            ));
        }
        KeysCommand::Ls => show(&keys.list().await?, context)?,
        KeysCommand::Revoke { keys: named } => return revoke(&keys, &named, context).await,
    }
    Ok(0)
}

/// Revokes keys. Each is tried; failures are reported at the end.
async fn revoke(keys: &Keys, named: &[String], context: &Context) -> Result<u8, Failure> {
    let (mut revoked, mut failures) = (Vec::new(), Vec::new());
    for key in named {
        match keys.revoke(key).await {
            Ok(row) => revoked.push(row),
            Err(error) => failures.push(error),
        }
    }
    if context.output.json {
        context.output.value(&json!({ "revoked": revoked }))?;
    }
    let names: Vec<_> = revoked.iter().map(|key| &key.name).collect();
    settle(failures, ("revoked", &names), context)
}

fn show(keys: &[KeyRow], context: &Context) -> Result<(), Failure> {
    if context.output.json { context.output.value(&keys) } else { context.output.text(&table(keys)) }
}

fn pools_of(key: &KeyRow) -> String {
    key.pools.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn table(keys: &[KeyRow]) -> String {
    let mut table = Table::new(["NAME", "ID", "POOLS", "CREATED", "REVOKED"]);
    for key in keys {
        table.row([
            key.name.to_string(),
            key.id.clone(),
            pools_of(key),
            moment(key.created_ms),
            key.revoked_ms.map_or_else(|| "-".to_owned(), moment),
        ]);
    }
    table.render()
}
