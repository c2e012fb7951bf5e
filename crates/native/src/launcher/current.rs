//! The launcher that a provider uses now. It starts with the first create. It is started again
//! after it has ended, because it can be killed at any moment.

use std::sync::{Arc, Mutex, PoisonError};

use eyot::internal::system_reason;
use eyot::{Error, ErrorKind, Result};

use super::client::Launcher;
use crate::cgroup;
use crate::state::StateDir;

/// A provider's launcher, if one was started.
#[derive(Default)]
pub(crate) struct CurrentLauncher(Mutex<Option<Arc<Launcher>>>);

impl CurrentLauncher {
    /// Returns the running launcher, or starts one. Callers wait for each other, so that only one
    /// is started.
    pub(crate) fn get(&self, state: &StateDir, in_process: bool) -> Result<Arc<Launcher>> {
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(launcher) = current.as_ref().filter(|launcher| !launcher.has_ended()) {
            return Ok(Arc::clone(launcher));
        }
        if current.take().is_some() {
            tracing::warn!("the sandbox launcher has ended; a new one is started");
        }
        let started = Launcher::start(state, in_process)?;
        if let Ok(home) = started.home() {
            cgroup::note(&state.cgroups(), home).map_err(|error| {
                let message = format!("note where control groups are made: {}", system_reason(&error));
                Error::new(ErrorKind::Setup, message).with_source(error)
            })?;
        }
        Ok(Arc::clone(current.insert(Arc::new(started))))
    }
}
