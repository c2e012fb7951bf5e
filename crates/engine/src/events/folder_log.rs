//! The log of a folder. Opened by any number of processes at once, each with options of its own.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

use eyot::internal::now_ms;
use eyot::{Error, Result};

use super::anchor::Anchorage;
use super::append::Writer;
use super::event::{Event, NewEvent};
use super::read::Cursor;
use super::verify::VerifiedLog;
use super::{EventLogOptions, head, verify};
use crate::changes::ChangeWatch;
use crate::store::Store;

/// The log of a folder.
pub(super) struct FolderLog {
    folder: PathBuf,
    writer: Mutex<Writer>,
    /// Notes how far the log has come outside of its folder.
    anchorage: Option<Anchorage>,
    /// The changes that followers wait for; made for the first of them, gone with the last.
    changes: Mutex<Weak<ChangeWatch>>,
}

impl FolderLog {
    /// Opens it, and makes the folder (mode 0700, parents too) where there is none.
    pub(super) fn open(folder: &Path, options: EventLogOptions, store: Option<Arc<Store>>) -> Result<Self> {
        if options.max_segment_bytes == 0 {
            return Err(Error::invalid("max_segment_bytes", "must be at least 1"));
        }
        if options.max_segments == 0 {
            return Err(Error::invalid("max_segments", "must be at least 1"));
        }
        let folder = folder.to_owned();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| Error::host("open the event log", error))?;
        let writer = Mutex::new(Writer::new(folder.clone(), options));
        let anchorage = store.map(|store| Anchorage::new(store, folder.clone()));
        Ok(Self { folder, writer, anchorage, changes: Mutex::new(Weak::new()) })
    }

    /// Adds an event.
    pub(super) fn append(&self, event: NewEvent) -> Result<Event> {
        // A thread that panicked while it wrote left at most what a killed process leaves, which every append expects.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let appended = writer.append(event).map_err(|error| Error::host("append to the event log", error));
        drop(writer);
        self.note_anchor(appended)
    }

    fn note_anchor(&self, appended: Result<Event>) -> Result<Event> {
        if let (Some(anchorage), Ok(event)) = (&self.anchorage, &appended) {
            anchorage.note(event);
        }
        appended
    }

    /// Appends unless another thread or process writes; then returns `None`, and the event stays
    /// where it is.
    pub(super) fn append_at_once(&self, event: &mut Option<NewEvent>) -> Option<Result<Event>> {
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let appended = writer.append_at_once(event)?;
        drop(writer);
        Some(self.note_anchor(appended.map_err(|error| Error::host("append to the event log", error))))
    }

    /// Checks the chain, and the anchor.
    pub(super) fn verify(&self) -> Result<VerifiedLog> {
        // Read first: the log only grows.
        let anchor = self.anchorage.as_ref().map(Anchorage::read).transpose()?.flatten();
        verify::verify(&self.folder, anchor.as_ref())
    }

    /// Begins a new log, and returns the folder of the old one.
    pub(super) fn begin_anew(&self) -> Result<PathBuf> {
        let host = |error| Error::host("begin a new event log", error);
        let mut name = self.folder.as_os_str().to_owned();
        name.push(format!(".until-{}", now_ms()));
        let aside = PathBuf::from(name);
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        std::fs::rename(&self.folder, &aside).map_err(host)?;
        DirBuilder::new().mode(0o700).create(&self.folder).map_err(host)?;
        self.anchorage.as_ref().map_or(Ok(()), Anchorage::forget)?;
        Ok(aside)
    }

    /// Returns the number of the last event.
    pub(super) fn last_seq(&self) -> Result<u64> {
        let head = head::read_shared(&self.folder);
        let head = head.map_err(|error| Error::host("read the event log", error))?;
        Ok(head.map_or(0, |head| head.seq))
    }

    /// Returns a reader at this event.
    pub(super) fn cursor(&self, from_seq: u64) -> Cursor {
        Cursor::new(self.folder.clone(), from_seq)
    }

    /// Returns the watch that all followers share.
    pub(super) fn changes(&self) -> Result<Arc<ChangeWatch>> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = changes.upgrade() {
            return Ok(shared);
        }
        let watched = Arc::new(ChangeWatch::of_folder(&self.folder, "follow the event log")?);
        *changes = Arc::downgrade(&watched);
        Ok(watched)
    }
}
