//! The names by which users know the sandboxes of pools.

use std::sync::Arc;

use eyot::{SandboxId, SandboxNamer};

use super::Store;
use crate::pool_options::DEFAULT_SANDBOX;

impl Store {
    /// Returns a function that names sandboxes of pools as lists do: NAME in the pool `default`,
    /// else POOL/NAME. It returns `None` for one that is in no pool.
    pub fn namer(self: &Arc<Self>) -> SandboxNamer {
        let store = Arc::clone(self);
        Arc::new(move |id| store.shown_name(id))
    }

    fn shown_name(&self, id: &SandboxId) -> Option<String> {
        let found = self.sandbox(id).inspect_err(|error| tracing::debug!(%error, "name a sandbox"));
        let row = found.ok().flatten()?;
        if row.pool.as_str() == DEFAULT_SANDBOX {
            return Some(row.name.to_string());
        }
        Some(format!("{}/{}", row.pool, row.name))
    }
}
