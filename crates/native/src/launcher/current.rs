//! The launcher that a provider uses now. It is started with the first create, and anew once it has
//! ended: somebody may kill it at any moment.

use std::sync::{Arc, Mutex, PoisonError};

use eyot::{Error, ErrorKind, Result};

use super::client::Launcher;
use crate::cgroup;
use crate::state::StateDir;

/// The place of a provider's launcher.
#[derive(Default)]
pub(crate) struct CurrentLauncher(Mutex<Option<Arc<Launcher>>>);

impl CurrentLauncher {
    /// Returns the launcher that runs, or starts one. Callers wait for each other, so that only one
    /// is started.
    pub(crate) fn get(&self, state: &StateDir, in_process: bool) -> Result<Arc<Launcher>> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(launcher) = current.as_ref().filter(|launcher| !launcher.has_ended()) {
            return Ok(Arc::clone(launcher));
        }
        if current.take().is_some() {
            tracing::warn!("the sandbox launcher has ended; a new one is started");
        }
        let started = Launcher::start(in_process)?;
        if let Ok(home) = started.home() {
            cgroup::note(&state.cgroups(), home).map_err(|error| {
                let message = format!("note where control groups are made: {}", crate::sentence(&error));
                Error::new(ErrorKind::Setup, message).with_source(error)
            })?;
        }
        Ok(Arc::clone(current.insert(Arc::new(started))))
    }
}
