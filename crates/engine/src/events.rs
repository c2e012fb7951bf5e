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
//! A log of a shared store lies in its database instead, in the same lines (`database_log.rs`).
//!
//! The chain holds no key. It proves nothing against somebody who may write in the folder and in
//! the store, and who computes every hash anew.

mod anchor;
mod append;
mod database_log;
mod event;
mod filter;
mod folder_log;
mod follow;
mod head;
mod line;
mod read;
mod recorder;
mod segment;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{Error, ErrorKind, Result};
use futures_util::Stream;

pub use event::{Event, EventHash, EventKind, MAX_COMMAND_BYTES, MAX_REASON_BYTES, MAX_TEXT_BYTES, NewEvent};
pub use filter::EventFilter;
pub use recorder::EventRecorder;
pub use verify::{BrokenChain, VerifiedLog};

use crate::blocking::Turns;
use crate::changes::ChangeWatch;
use crate::store::Store;
use database_log::DatabaseLog;
use folder_log::FolderLog;
use read::LogCursor;

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

/// An event log.
pub struct EventLog {
    place: LogPlace,
    turns: Turns,
}

/// The place of a log.
enum LogPlace {
    Folder(FolderLog),
    Database(DatabaseLog),
}

/// The most appends of one process to a database that are under way at once.
const APPENDS_AT_ONCE: usize = 4;

impl EventLog {
    /// Opens the log in this folder, which is made (mode 0700, parents too) where there is none. Blocks.
    pub fn open(folder: impl AsRef<Path>, options: EventLogOptions) -> Result<Arc<Self>> {
        Ok(Self::of_folder(FolderLog::open(folder.as_ref(), options, None)?))
    }

    /// Opens the log in this folder, which notes its last event in a store: its anchor.
    /// [`EventLog::verify`] finds a log that ends before its anchor, because an older copy was put
    /// in its place, or because it was removed.
    pub fn open_anchored(
        folder: impl AsRef<Path>,
        options: EventLogOptions,
        store: Arc<Store>,
    ) -> Result<Arc<Self>> {
        Ok(Self::of_folder(FolderLog::open(folder.as_ref(), options, Some(store))?))
    }

    fn of_folder(log: FolderLog) -> Arc<Self> {
        Arc::new(Self { place: LogPlace::Folder(log), turns: Turns::new(1) })
    }

    /// Opens the log of a shared store, which lies in its database. It keeps the last 100,000 events.
    pub fn in_database(store: Arc<Store>) -> Arc<Self> {
        let place = LogPlace::Database(DatabaseLog::new(store));
        Arc::new(Self { place, turns: Turns::new(APPENDS_AT_ONCE) })
    }

    /// Adds an event, and answers it with its number, time and hash. Texts longer than the limits of [`NewEvent`] are cut.
    ///
    /// Blocks, for some microseconds unless another process holds the lock: from async code use [`EventLog::record`].
    /// After an error the event is most likely not there, but it may be (as with any interrupted write).
    pub fn append(&self, event: NewEvent) -> Result<Event> {
        let event = event.checked()?;
        match &self.place {
            LogPlace::Folder(log) => log.append(event),
            LogPlace::Database(log) => log.append(event),
        }
    }

    fn append_at_once(&self, event: &mut Option<NewEvent>) -> Option<Result<Event>> {
        match &self.place {
            LogPlace::Folder(log) => log.append_at_once(event),
            LogPlace::Database(_) => None,
        }
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
    /// leaves it, is no fault. Blocks, for as long as it takes to read all of it; others can
    /// append meanwhile. A log with an anchor must hold the event that it names.
    ///
    /// A chain that does not hold is an error of kind `conflict` whose source is a [`BrokenChain`].
    pub fn verify(&self) -> Result<VerifiedLog> {
        match &self.place {
            LogPlace::Folder(log) => log.verify(),
            LogPlace::Database(log) => log.verify(),
        }
    }

    /// Begins a new log: what there is stays in a folder beside it, whose path is returned, and the
    /// anchor is forgotten. Blocks. `unsupported`: it lies in a database.
    pub fn begin_anew(&self) -> Result<PathBuf> {
        match &self.place {
            LogPlace::Folder(log) => log.begin_anew(),
            LogPlace::Database(_) => {
                let message = "begin a new event log: it lies in a database, which keeps one";
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }

    /// The number of the last event, 0 if there never was one. Blocks.
    pub fn last_seq(&self) -> Result<u64> {
        match &self.place {
            LogPlace::Folder(log) => log.last_seq(),
            LogPlace::Database(log) => log.last_seq(),
        }
    }

    /// At most `limit` events from number `from_seq` on, or from the first that is kept if that one is gone. Fewer than
    /// `limit` means that there are no more yet. Hashes are not checked. Blocks.
    pub fn read(&self, from_seq: u64, limit: usize) -> Result<Vec<Event>> {
        self.reader(from_seq).next_batch(limit)
    }

    fn reader(&self, from_seq: u64) -> LogCursor {
        match &self.place {
            LogPlace::Folder(log) => LogCursor::Folder(log.cursor(from_seq)),
            LogPlace::Database(log) => LogCursor::Database(log.cursor(from_seq)),
        }
    }

    /// Streams the events from number `from_seq` on, first those that are there, then each as any
    /// process appends it. Numbers have no gaps, except where so much was appended meanwhile that
    /// the oldest went before they were read: the stream goes on with the first event that is kept.
    /// It ends with an error; dropping it is how to stop.
    ///
    /// Must be polled within a Tokio runtime.
    pub fn follow(
        self: &Arc<Self>,
        from_seq: u64,
    ) -> impl Stream<Item = Result<Event>> + Send + 'static + use<> {
        follow::follow(self.clone(), from_seq)
    }

    fn changes(&self) -> Result<Arc<ChangeWatch>> {
        match &self.place {
            LogPlace::Folder(log) => log.changes(),
            LogPlace::Database(log) => log.changes(),
        }
    }
}
