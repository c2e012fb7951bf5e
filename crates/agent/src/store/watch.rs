//! Watches of runs: they tell that a store may have more of a run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyot::Result;
use eyot_engine::ChangeWatch;
use tokio::sync::watch;

/// The least time between two looks at a store that another process writes.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// The signals of a store: a commit of a run wakes those who watch it, and so does the end of its lease. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct RunSignals {
    runs: Arc<Mutex<HashMap<String, watch::Sender<u64>>>>,
}

/// A watch of one run.
pub struct RunWatch {
    signal: watch::Receiver<u64>,
    /// The changes of the store's files, if another process may write the run.
    folder: Option<ChangeWatch>,
}

impl RunSignals {
    /// Watches a run from now on.
    pub fn watch(&self, run: &str) -> RunWatch {
        let mut runs = self.lock();
        runs.retain(|_, sender| sender.receiver_count() > 0);
        let signal = runs.entry(run.to_owned()).or_default().subscribe();
        RunWatch { signal, folder: None }
    }

    /// Wakes those who watch the run.
    pub fn tell(&self, run: &str) {
        if let Some(sender) = self.lock().get(run) {
            sender.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<u64>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunWatch {
    /// The same watch, which also wakes when the store's files change.
    #[must_use]
    pub(crate) fn with_folder(self, folder: Option<ChangeWatch>) -> Self {
        Self { folder, ..self }
    }

    /// Waits until the store may have more of the run than at the last call, or until the run has another owner. It may wake
    /// without a reason. `unavailable`: the store's files are not watched any more.
    pub async fn changed(&mut self) -> Result<()> {
        let Self { signal, folder } = self;
        tokio::select! {
            // The sender lives as long as this watch.
            _ = signal.changed() => Ok(()),
            changed = folder_change(folder) => changed,
        }
    }
}

/// Waits for a change of the store's files; for ever, if no other process can write them.
async fn folder_change(folder: &mut Option<ChangeWatch>) -> Result<()> {
    let Some(changes) = folder else { return std::future::pending().await };
    changes.changed().await?;
    tokio::time::sleep(BETWEEN_LOOKS).await;
    changes.mark_seen();
    Ok(())
}
