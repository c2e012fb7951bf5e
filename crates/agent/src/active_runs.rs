//! The runs that are active in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::{Error, ErrorKind, Result};

use crate::abort::AbortSwitch;

/// The default limit of active runs of one pool.
pub const DEFAULT_MAX_ACTIVE_RUNS_PER_POOL: usize = 100;

/// The runs that are active in this process. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct ActiveRuns {
    runs: Arc<Mutex<HashMap<String, ActiveRun>>>,
}

struct ActiveRun {
    pool: Option<String>,
    abort: AbortSwitch,
}

/// The place of a run among the active ones. Dropping it frees the place.
pub(crate) struct ActivePlace {
    runs: ActiveRuns,
    id: String,
}

impl ActiveRuns {
    /// Takes a place for a run. `quota`: as many runs of its pool are active as may be.
    pub(crate) fn take(
        &self,
        id: &str,
        pool: Option<&str>,
        abort: AbortSwitch,
        max_of_pool: usize,
    ) -> Result<ActivePlace> {
        let mut runs = self.lock();
        let of_pool = runs.values().filter(|run| run.pool.as_deref() == pool).count();
        if pool.is_some() && of_pool >= max_of_pool {
            let message =
                format!("start a run: {of_pool} runs of this pool are active, and that is the limit");
            return Err(
                Error::new(ErrorKind::Quota, message).with_hint("wait for the end of one, or abort it")
            );
        }
        runs.insert(id.to_owned(), ActiveRun { pool: pool.map(str::to_owned), abort });
        Ok(ActivePlace { runs: self.clone(), id: id.to_owned() })
    }

    /// Returns the switch that aborts a run, if the run is active here.
    pub(crate) fn abort_of(&self, id: &str) -> Option<AbortSwitch> {
        self.lock().get(id).map(|run| run.abort.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ActiveRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActivePlace {
    fn drop(&mut self) {
        self.runs.lock().remove(&self.id);
    }
}
