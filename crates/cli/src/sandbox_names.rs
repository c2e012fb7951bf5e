//! Names of this host's sandboxes: NAME is in the pool `default` or in no pool, POOL/NAME in that
//! pool.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use eyot::{Error, ErrorKind, SandboxId, SandboxInfo, SandboxName, SandboxProvider};
use eyot_engine::store::Store;
use eyot_engine::{DEFAULT_SANDBOX, shown_name};
use serde_json::Value;

use crate::errors::Failure;

/// A sandbox of a pool, by its names there.
pub struct PooledSandbox {
    /// The pool.
    pub pool: SandboxName,
    /// The name in the pool.
    pub name: SandboxName,
}

/// The sandboxes of all pools, by id. The provider has other names for them, and the labels of their
/// create.
#[derive(Default)]
pub struct SandboxNames {
    pooled: HashMap<SandboxId, (PooledSandbox, BTreeMap<String, String>)>,
    /// Those that are in the memory of other processes, by the names by which commands find them.
    elsewhere: Vec<String>,
}

impl SandboxNames {
    /// Reads them from the store; there are none without one, as on a server's side.
    pub fn read(store: Option<&Store>) -> Result<Self, Error> {
        let rows = store.map(Store::all_sandboxes).transpose()?.unwrap_or_default();
        let is_elsewhere = |row: &&eyot_engine::store::SandboxRow| row.is_in_another_process();
        let elsewhere =
            rows.iter().filter(is_elsewhere).map(|row| shown_name(&row.pool, &row.name)).collect();
        let pooled = |row: eyot_engine::store::SandboxRow| {
            (row.id, (PooledSandbox { pool: row.pool, name: row.name }, row.spec.labels))
        };
        Ok(Self { pooled: rows.into_iter().map(pooled).collect(), elsewhere })
    }

    /// Returns the pool of a sandbox and its name there, if it is in one.
    pub fn pooled(&self, id: &SandboxId) -> Option<&PooledSandbox> {
        self.pooled.get(id).map(|(pooled, _)| pooled)
    }

    /// Says which sandboxes no list of a provider has, because they are in the memory of other processes.
    pub fn elsewhere(&self) -> Option<String> {
        let [first, rest @ ..] = self.elsewhere.as_slice() else { return None };
        let (who, are) = match rest.len() {
            0 => (format!("`{first}`"), "is"),
            more => (format!("`{first}` and {more} more"), "are"),
        };
        Some(format!(
            "{who} {are} in the memory of another process, such as a server: --server URL lists what it has"
        ))
    }

    /// Gives a sandbox of a pool the labels that it has now.
    pub fn relabel(&self, info: &mut SandboxInfo) {
        if let Some((_, labels)) = self.pooled.get(&info.id) {
            info.spec.labels.clone_from(labels);
        }
    }

    /// Puts the pool of a sandbox into its record, with its name there.
    pub fn add_pool(&self, facts: &mut Value, id: &SandboxId) {
        if let Some(PooledSandbox { pool, name }) = self.pooled(id) {
            (facts["name"], facts["pool"]) = (name.as_str().into(), pool.as_str().into());
        }
    }

    /// Returns the name by which commands find a sandbox: without the pool if that is `default`.
    pub fn shown(&self, info: &SandboxInfo) -> String {
        match self.pooled(&info.id) {
            Some(PooledSandbox { pool, name }) => shown_name(pool, name),
            None => info.name.to_string(),
        }
    }
}

/// Finds the sandbox of a pool that NAME or an id means.
pub async fn pooled(
    named: &str,
    store: &Store,
    provider: &Arc<dyn SandboxProvider>,
) -> Result<Option<PooledSandbox>, Failure> {
    if let Ok(id) = SandboxId::parse(named) {
        let row = store.sandbox(&id)?;
        return Ok(row.map(|row| PooledSandbox { pool: row.pool, name: row.name }));
    }
    let Ok(name) = SandboxName::parse(named) else { return Ok(None) };
    let pool = SandboxName::parse(DEFAULT_SANDBOX)?;
    let Some(row) = store.sandbox_named(&pool, &name)? else { return Ok(None) };
    match provider.info(named).await {
        Ok(other) if other.id != row.id => Err(meant_twice(named, &row.id, &other.id).into()),
        _ => Ok(Some(PooledSandbox { pool, name })),
    }
}

fn meant_twice(name: &str, pooled: &SandboxId, other: &SandboxId) -> Error {
    let message =
        format!("two sandboxes are called `{name}`: {pooled} of the pool `{DEFAULT_SANDBOX}`, and {other}");
    Error::new(ErrorKind::Conflict, message)
        .with_hint(format!("say `{DEFAULT_SANDBOX}/{name}`, or the id of the other"))
}
