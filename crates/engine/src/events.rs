//! The event log: what happened to whom, when and why. One JSON line for each event, in segment files of a bounded size
//! of which the oldest go; every line carries the hash of the one before it, so that a change shows.
//!
//! Several processes append to one log. What it knows of itself (the last event, how far the newest segment goes) lies
//! in a small file, `head`, which is also the lock that a writer holds while it appends; a process that is killed
//! between the line and the head leaves a line more than the head knows, or a torn one. The next append takes the first
//! in and cuts the second off, and notes it. Nothing is synced: an event that was acknowledged survives the end of
//! every process, but not a power failure.
//!
//! A log with a store has an anchor there: its last event, which `anchor.rs` notes.
//!
//! The chain holds no key. It proves nothing against somebody who may write in the folder and in
//! the store, and who computes every hash anew.

mod anchor;
mod append;
mod event;
mod filter;
mod follow;
mod head;
mod line;
mod read;
mod recorder;
mod segment;
mod verify;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result};
use futures_util::Stream;

pub use event::{Event, EventHash, EventKind, MAX_COMMAND_BYTES, MAX_REASON_BYTES, MAX_TEXT_BYTES, NewEvent};
pub use filter::EventFilter;
pub use recorder::EventRecorder;
pub use verify::{BrokenChain, VerifiedLog};

use crate::blocking::Turns;
use crate::folder_changes::FolderChanges;
use crate::store::Store;
use anchor::Anchorage;
use append::Writer;
use read::Cursor;

/// Limits on how much of the past is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventLogOptions {
    /// A segment gets no further line beyond this size, in bytes; at least 1. By default 8 MiB. A single line may be larger.
    pub max_segment_bytes: u64,
    /// The number of segments that are kept, the newest included; at least 1. By default 16.
    pub max_segments: usize,
}

impl Default for EventLogOptions {
    fn default() -> Self {
        Self { max_segment_bytes: 8 << 20, max_segments: 16 }
    }
}

/// A log in a folder. Opened by any number of processes at once, each with options of its own.
pub struct EventLog {
    folder: PathBuf,
    writer: Mutex<Writer>,
    turns: Turns,
    /// Notes how far the log has come outside of its folder.
    anchorage: Option<Anchorage>,
    /// The changes that followers wait for; made for the first of them, gone with the last.
    changes: Mutex<Weak<FolderChanges>>,
}

impl EventLog {
    /// Opens the log in this folder, which is made (mode 0700, parents too) where there is none. Blocks.
    pub fn open(folder: impl AsRef<Path>, options: EventLogOptions) -> Result<Arc<Self>> {
        Self::open_with(folder.as_ref(), options, None)
    }

    /// Opens the log in this folder, which notes its last event in a store: its anchor.
    /// [`EventLog::verify`] finds a log that ends before its anchor, because an older copy was put
    /// in its place, or because it was removed.
    pub fn open_anchored(
        folder: impl AsRef<Path>,
        options: EventLogOptions,
        store: Arc<Store>,
    ) -> Result<Arc<Self>> {
        Self::open_with(folder.as_ref(), options, Some(store))
    }

    fn open_with(folder: &Path, options: EventLogOptions, store: Option<Arc<Store>>) -> Result<Arc<Self>> {
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
        Ok(Arc::new(Self {
            folder,
            writer,
            turns: Turns::new(),
            anchorage,
            changes: Mutex::new(Weak::new()),
        }))
    }

    /// Adds an event, and answers it with its number, time and hash. Texts longer than the limits of [`NewEvent`] are cut.
    ///
    /// Blocks, for some microseconds unless another process holds the lock: from async code use [`EventLog::record`].
    /// After an error the event is most likely not there, but it may be (as with any interrupted write).
    pub fn append(&self, event: NewEvent) -> Result<Event> {
        let event = event.checked()?;
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
    fn append_at_once(&self, event: &mut Option<NewEvent>) -> Option<Result<Event>> {
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let appended = writer.append_at_once(event)?;
        drop(writer);
        Some(self.note_anchor(appended.map_err(|error| Error::host("append to the event log", error))))
    }

    /// [`EventLog::append`]: at once if no other writer is active, which is a matter of
    /// microseconds; else on a thread that may block. Once begun it is carried out, even if the
    /// caller stops waiting.
    pub async fn record(self: &Arc<Self>, event: NewEvent) -> Result<Event> {
        let mut event = Some(event.checked()?);
        if let Some(appended) = self.append_at_once(&mut event) {
            return appended;
        }
        let Some(event) = event else {
            return Err(Error::new(ErrorKind::Internal, "append to the event log: the event is gone"));
        };
        let log = self.clone();
        self.turns.blocking(move || log.append(event)).await
    }

    /// Checks every line that is kept against its own hash, the line before it, its number, and the
    /// head's account of where the log begins and ends. A line that is torn, as a killed process
    /// leaves it, is no fault. Blocks, for as long as it takes to read all segments; others can
    /// append meanwhile. A log with an anchor must hold the event that it names.
    ///
    /// A chain that does not hold is an error of kind `conflict` whose source is a [`BrokenChain`].
    pub fn verify(&self) -> Result<VerifiedLog> {
        // Read first: the log only grows.
        let anchor = self.anchorage.as_ref().map(Anchorage::read).transpose()?.flatten();
        verify::verify(&self.folder, anchor.as_ref())
    }

    /// Begins a new log: what there is stays in a folder beside it, whose path is returned, and the
    /// anchor is forgotten. Blocks.
    pub fn begin_anew(&self) -> Result<PathBuf> {
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

    /// The number of the last event, 0 if there never was one. Blocks.
    pub fn last_seq(&self) -> Result<u64> {
        let head = head::read_shared(&self.folder);
        let head = head.map_err(|error| Error::host("read the event log", error))?;
        Ok(head.map_or(0, |head| head.seq))
    }

    /// At most `limit` events from number `from_seq` on, or from the first that is kept if that one is gone. Fewer than
    /// `limit` means that there are no more yet. Hashes are not checked. Blocks.
    pub fn read(&self, from_seq: u64, limit: usize) -> Result<Vec<Event>> {
        Cursor::new(self.folder.clone(), from_seq).next_batch(limit)
    }

    /// Streams the events from number `from_seq` on, first those that are there, then each as any
    /// process appends it. Numbers have no gaps, except where so much was appended meanwhile that
    /// segments went before they were read: the stream goes on with the first event that is kept.
    /// It ends with an error; dropping it is how to stop.
    ///
    /// Must be polled within a Tokio runtime.
    pub fn follow(
        self: &Arc<Self>,
        from_seq: u64,
    ) -> impl Stream<Item = Result<Event>> + Send + 'static + use<> {
        follow::follow(self.clone(), from_seq)
    }

    fn changes(&self) -> Result<Arc<FolderChanges>> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = changes.upgrade() {
            return Ok(shared);
        }
        let watched = Arc::new(FolderChanges::watch(&self.folder, "follow the event log")?);
        *changes = Arc::downgrade(&watched);
        Ok(watched)
    }
}
