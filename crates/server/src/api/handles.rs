//! Open handles of sandboxes by id, so that a request by id need not ask the store.

use std::collections::HashMap;

use eyot::{Sandbox, SandboxId, SandboxName};

/// A sandbox's handle, and its pool.
#[derive(Clone)]
pub(super) struct Held {
    pub pool: SandboxName,
    pub sandbox: Sandbox,
}

/// The handles.
#[derive(Default)]
pub(super) struct Handles {
    by_id: HashMap<SandboxId, Held>,
    /// The number of handles that may still be added before all are looked through.
    until_sweep: usize,
}

/// The fewest handles that are added between two sweeps.
const LEAST_UNTIL_SWEEP: usize = 64;

impl Handles {
    pub(super) fn get(&self, id: &SandboxId) -> Option<&Held> {
        self.by_id.get(id)
    }

    pub(super) fn remove(&mut self, id: &SandboxId) {
        self.by_id.remove(id);
    }

    /// Keeps a handle, at most this many in all. Forgets those whose sandboxes have ended once as
    /// many handles were added as there are, so that a create takes no longer where many sandboxes
    /// live.
    pub(super) fn hold(&mut self, held: Held, most: usize) {
        if self.until_sweep == 0 {
            self.by_id.retain(|_, held| held.sandbox.is_connected());
            self.until_sweep = self.by_id.len().max(LEAST_UNTIL_SWEEP);
        }
        self.until_sweep -= 1;
        let id = held.sandbox.id().clone();
        if self.by_id.len() >= most
            && let Some(other) = self.by_id.keys().find(|other| **other != id).cloned()
        {
            self.by_id.remove(&other);
        }
        self.by_id.insert(id, held);
    }
}
