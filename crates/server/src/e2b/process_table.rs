//! The processes of one sandbox that envd's calls have started, by their numbers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;

use super::connect::{Code, RpcError};
use super::started::E2bProcess;

/// The time for which the end of a process is kept, so that a late client hears of it.
const KEPT: Duration = Duration::from_secs(30);

/// The processes.
#[derive(Default)]
pub(super) struct ProcessTable(Arc<Mutex<BTreeMap<u32, Arc<E2bProcess>>>>);

/// The choice of a process in a request.
#[derive(Debug, Deserialize)]
pub(super) struct Selector {
    pid: Option<u32>,
    tag: Option<String>,
}

impl ProcessTable {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Arc<E2bProcess>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a process, and forgets it a while after its end.
    pub fn add(&self, process: &Arc<E2bProcess>) {
        self.lock().insert(process.pid, Arc::clone(process));
        let (table, process) = (Arc::downgrade(&self.0), Arc::clone(process));
        tokio::spawn(async move {
            process.ended().await;
            tokio::time::sleep(KEPT).await;
            let Some(table) = table.upgrade() else { return };
            let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
            if table.get(&process.pid).is_some_and(|now| Arc::ptr_eq(now, &process)) {
                table.remove(&process.pid);
            }
        });
    }

    /// Lists the processes that run.
    pub fn running(&self) -> Vec<Arc<E2bProcess>> {
        self.lock().values().filter(|process| process.runs()).cloned().collect()
    }

    /// Finds a process, also one that has just ended.
    pub fn find(&self, selector: &Selector) -> Result<Arc<E2bProcess>, RpcError> {
        let table = self.lock();
        let found = match (selector.pid, &selector.tag) {
            (Some(pid), _) => table.get(&pid),
            (None, Some(tag)) => table.values().find(|process| process.tag.as_ref() == Some(tag)),
            (None, None) => return Err(RpcError::new(Code::Unimplemented, "the request names no process")),
        };
        let named = || match (selector.pid, &selector.tag) {
            (Some(pid), _) => format!("pid {pid}"),
            (None, tag) => format!("tag {}", tag.as_deref().unwrap_or_default()),
        };
        let missing = || RpcError::new(Code::NotFound, format!("process with {} not found", named()));
        found.cloned().ok_or_else(missing)
    }

    /// Finds a process that runs.
    pub fn find_running(&self, selector: &Selector) -> Result<Arc<E2bProcess>, RpcError> {
        let process = self.find(selector)?;
        if process.runs() {
            return Ok(process);
        }
        Err(RpcError::new(Code::NotFound, format!("process with pid {} not found", process.pid)))
    }

    pub fn clear(&self) {
        self.lock().clear();
    }
}
