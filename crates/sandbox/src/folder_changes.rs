//! Tells that a file of a folder changed, by the kernel's word.

use std::path::Path;
use std::sync::Arc;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;

use crate::error::{Error, ErrorKind, Result};

/// Changes of the files in one folder, whichever process makes them. Clones share one watch, and each sees every change.
#[derive(Clone)]
pub struct FolderChanges {
    /// Counts the changes. Closed if the watching ends.
    count: watch::Receiver<u64>,
    _watcher: Arc<RecommendedWatcher>,
}

impl FolderChanges {
    /// Watches the folder, to do `what`. Blocks.
    pub(crate) fn watch(folder: &Path, what: &str) -> Result<Self> {
        let (sender, count) = watch::channel(0);
        let told = move |change: notify::Result<notify::Event>| {
            // Opening and reading are what those who wait do themselves.
            if !change.is_ok_and(|change| change.kind.is_access()) {
                sender.send_modify(|count: &mut u64| *count = count.wrapping_add(1));
            }
        };
        let watcher = notify::recommended_watcher(told).and_then(|mut watcher| {
            watcher.watch(folder, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        let watcher = watcher.map_err(|error| {
            Error::new(ErrorKind::Unavailable, format!("{what}: its folder can't be watched"))
                .with_hint("the limits are /proc/sys/fs/inotify/max_user_instances and max_user_watches")
                .with_source(error)
        })?;
        Ok(Self { count, _watcher: Arc::new(watcher) })
    }

    /// From here on only later changes are told.
    pub fn mark_seen(&mut self) {
        self.count.mark_unchanged();
    }

    /// Comes back when there was a change since the last time, or since [`FolderChanges::mark_seen`]; at once if there
    /// was one meanwhile. `unavailable`: the watch has ended.
    pub async fn changed(&mut self) -> Result<()> {
        let changed = self.count.changed().await;
        changed.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "wait for a change: the watch of the folder ended")
                .with_source(error)
        })
    }
}
