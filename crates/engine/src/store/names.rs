//! The names by which users know the sandboxes of pools.

use std::sync::Arc;

use eyot::{SandboxId, SandboxNamer};

use super::Store;
use crate::name_in_pool::shown_name;

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
        Some(shown_name(&row.pool, &row.name))
    }
}
