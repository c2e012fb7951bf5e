//! Tells that something changed. Of a folder, by the kernel's word, or where that can't be had by looking once a second;
//! of a database, by its own word.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;

/// The time between two looks at a folder that the kernel does not watch for us.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A watch on the files of a folder, or on a database, whichever process changes them. Clones share it, and each sees every
/// change.
#[derive(Clone)]
pub struct ChangeWatch {
    /// Counts the changes. Closed if the watching ends.
    count: watch::Receiver<u64>,
    _source: Arc<ChangeSource>,
}

/// The source of the changes. The watching ends when this is dropped.
enum ChangeSource {
    Inotify { _watcher: RecommendedWatcher },
    Polling { _stop: Sender<()> },
    Database,
}

impl ChangeWatch {
    /// Watches the folder, to do `what`. Blocks.
    ///
    /// The kernel gives each user few watches, and sandboxes of the same user take from the same few. Without one the folder
    /// is looked at once a second, and a warning says so.
    pub(crate) fn of_folder(folder: &Path, what: &str) -> Result<Self> {
        match Self::watch_with_inotify(folder) {
            Ok(changes) => Ok(changes),
            Err(error) => {
                tracing::warn!(
                    %error,
                    "{what}: the kernel gives no inotify watch, so the folder is looked at once a second; more of \
                     fs.inotify.max_user_instances and fs.inotify.max_user_watches (sysctl) end that"
                );
                Self::watch_by_polling(folder).map_err(|error| {
                    Error::new(ErrorKind::Unavailable, format!("{what}: its folder can't be watched"))
                        .with_source(error)
                })
            }
        }
    }

    /// Takes the counter of a database's changes.
    pub(crate) fn of_database(count: watch::Receiver<u64>) -> Self {
        Self { count, _source: Arc::new(ChangeSource::Database) }
    }

    fn watch_with_inotify(folder: &Path) -> notify::Result<Self> {
        let (sender, count) = watch::channel(0);
        let told = move |change: notify::Result<notify::Event>| {
            // Opening and reading are what those who wait do themselves.
            if !change.is_ok_and(|change| change.kind.is_access()) {
                count_change(&sender);
            }
        };
        let mut watcher = notify::recommended_watcher(told)?;
        watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(Self { count, _source: Arc::new(ChangeSource::Inotify { _watcher: watcher }) })
    }

    fn watch_by_polling(folder: &Path) -> io::Result<Self> {
        let (sender, count) = watch::channel(0);
        let (stop, stopped) = channel();
        let folder = folder.to_owned();
        // Looked at before this returns: a change from here on is seen.
        let seen = snapshot(&folder);
        let looking = move || poll_until_stopped(&folder, seen, &sender, &stopped);
        thread::Builder::new().name("eyot-looks".to_owned()).spawn(looking)?;
        Ok(Self { count, _source: Arc::new(ChangeSource::Polling { _stop: stop }) })
    }

    /// From here on only later changes are told.
    pub fn mark_seen(&mut self) {
        self.count.mark_unchanged();
    }

    /// Comes back when there was a change since the last time, or since [`ChangeWatch::mark_seen`]; at once if there
    /// was one meanwhile. `unavailable`: the watch has ended.
    pub async fn changed(&mut self) -> Result<()> {
        let changed = self.count.changed().await;
        changed.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "wait for a change: the watch has ended").with_source(error)
        })
    }
}

fn count_change(sender: &watch::Sender<u64>) {
    sender.send_modify(|count| *count = count.wrapping_add(1));
}

/// The facts that tell one state of a file from another.
type FileStamp = (u64, u64, i64, i64);
/// The files of a folder; `None`: it can't be read, which those who wait find out themselves.
type FolderSnapshot = Option<BTreeMap<OsString, FileStamp>>;

fn poll_until_stopped(
    folder: &Path,
    mut seen: FolderSnapshot,
    sender: &watch::Sender<u64>,
    stopped: &Receiver<()>,
) {
    while stopped.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let now = snapshot(folder);
        if now != seen {
            seen = now;
            count_change(sender);
        }
    }
}

fn snapshot(folder: &Path) -> FolderSnapshot {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).ok()? {
        let entry = entry.ok()?;
        // A file that is gone since is no part of this look.
        if let Ok(metadata) = entry.metadata() {
            files.insert(entry.file_name(), stamp(&metadata));
        }
    }
    Some(files)
}

fn stamp(metadata: &Metadata) -> FileStamp {
    (metadata.ino(), metadata.size(), metadata.mtime(), metadata.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    /// Waits for a change that `make` makes.
    async fn wait_for_change(changes: &mut ChangeWatch, make: impl FnOnce()) {
        changes.mark_seen();
        make();
        changes.changed().await.unwrap();
    }

    #[tokio::test]
    async fn looks_see_files_that_come_grow_are_replaced_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("a"), folder.path().join("b"));
        let mut changes = ChangeWatch::watch_by_polling(folder.path()).unwrap();
        wait_for_change(&mut changes, || fs::write(&file, "one").unwrap()).await;
        let more = || OpenOptions::new().append(true).open(&file).unwrap().write_all(b"two").unwrap();
        wait_for_change(&mut changes, more).await;
        wait_for_change(&mut changes, || fs::write(&other, "onetwo").unwrap()).await;
        wait_for_change(&mut changes, || fs::rename(&other, &file).unwrap()).await;
        wait_for_change(&mut changes, || fs::remove_file(&file).unwrap()).await;
    }

    #[tokio::test]
    async fn looks_end_with_the_last_who_waits() {
        let folder = tempfile::tempdir().unwrap();
        let changes = ChangeWatch::watch_by_polling(folder.path()).unwrap();
        let mut count = changes.count.clone();
        drop(changes.clone());
        assert!(count.has_changed().is_ok());
        drop(changes);
        assert!(count.changed().await.is_err());
    }
}
