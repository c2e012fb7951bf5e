//! The anchor of a log: its last event, noted in the store, outside of its folder. A log that was
//! replaced by an older copy, or removed, comes to its end before its anchor.
//!
//! A thread of its own notes it soon after an event was appended, so that no event waits for the
//! store, and the store's work does not compete with the command that the event is about. A process
//! that is killed in between leaves an anchor behind the end of the log, never before it. The anchor
//! moves on only where the log still holds the event that it names; where it does not, that is noted
//! for good.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use eyot::{Error, Result};

use super::event::{Event, EventHash};
use super::head;
use super::read::Cursor;
use crate::store::{Anchor, Store};

/// The log's name in the store.
const LOG: &str = "events";
/// The pause before the anchor is moved, so that many events move it once.
const PAUSE: Duration = Duration::from_millis(50);

/// Keeps the anchor of one log for this process. Dropping it notes what is not noted yet.
pub(super) struct Anchorage {
    store: Arc<Store>,
    folder: PathBuf,
    pending: Arc<(Mutex<UnwrittenAnchor>, Condvar)>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

/// The events that this process has appended since it last looked at the anchor.
#[derive(Default)]
struct UnwrittenAnchor {
    appended: Option<Appended>,
    /// The thread sleeps until something is appended.
    is_asleep: bool,
    is_over: bool,
}

#[derive(Clone, Copy)]
struct Appended {
    /// The number of the first event, and the hash of the one before it.
    first: (u64, EventHash),
    /// The number of the last event, and its hash.
    last: (u64, EventHash),
}

impl Anchorage {
    pub(super) fn new(store: Arc<Store>, folder: PathBuf) -> Self {
        Self { store, folder, pending: Arc::default(), keeper: Mutex::new(None) }
    }

    /// Returns the anchor as it is now.
    pub(super) fn read(&self) -> Result<Option<Anchor>> {
        self.store.anchor(LOG)
    }

    /// Forgets the anchor: a new log begins.
    pub(super) fn forget(&self) -> Result<()> {
        self.store.forget_anchor(LOG)
    }

    /// Has the anchor moved to an event that was just appended.
    pub(super) fn note(&self, event: &Event) {
        let (pending, changed) = &*self.pending;
        let mut pending = lock(pending);
        let first = pending.appended.map_or((event.seq, event.previous), |appended| appended.first);
        pending.appended = Some(Appended { first, last: (event.seq, event.hash) });
        let wakes = std::mem::take(&mut pending.is_asleep);
        drop(pending);
        if wakes {
            changed.notify_all();
        }
        self.start_keeper();
    }

    fn start_keeper(&self) {
        let mut keeper = lock(&self.keeper);
        if keeper.is_some() {
            return;
        }
        let (store, folder, pending) =
            (Arc::clone(&self.store), self.folder.clone(), Arc::clone(&self.pending));
        let started = std::thread::Builder::new()
            .name("eyot-anchor".to_owned())
            .spawn(move || keep(&store, &folder, &pending));
        match started {
            Ok(handle) => *keeper = Some(handle),
            Err(error) => tracing::warn!(%error, "the anchor of the event log is noted with a later event"),
        }
    }
}

impl Drop for Anchorage {
    fn drop(&mut self) {
        let (pending, changed) = &*self.pending;
        lock(pending).is_over = true;
        changed.notify_all();
        if let Some(keeper) = lock(&self.keeper).take()
            && keeper.join().is_err()
        {
            tracing::warn!("the thread that notes the anchor of the event log ended early");
        }
    }
}

/// Moves the anchor whenever something was appended, until the log is closed.
fn keep(store: &Store, folder: &Path, pending: &(Mutex<UnwrittenAnchor>, Condvar)) {
    let (pending, changed) = pending;
    loop {
        let mut waiting = lock(pending);
        while waiting.appended.is_none() && !waiting.is_over {
            waiting.is_asleep = true;
            waiting = changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.is_asleep = false;
        let rested = changed.wait_timeout_while(waiting, PAUSE, |pending| !pending.is_over);
        let (mut waiting, _) = rested.unwrap_or_else(PoisonError::into_inner);
        let (appended, is_over) = (waiting.appended.take(), waiting.is_over);
        drop(waiting);
        if let Some(appended) = appended
            && let Err(error) = move_on(store, folder, appended)
        {
            tracing::warn!(%error, "the anchor of the event log stays behind until the next event");
        }
        if is_over {
            return;
        }
    }
}

fn move_on(store: &Store, folder: &Path, appended: Appended) -> Result<()> {
    let (seq, hash) = (appended.last.0, appended.last.1.to_string());
    loop {
        let known = store.anchor(LOG)?;
        let to = match &known {
            None => Anchor { seq, hash: hash.clone(), is_contradicted: false },
            Some(known) if known.is_contradicted => return Ok(()),
            Some(known) if is_held(folder, known, appended)? => {
                if known.seq >= seq {
                    return Ok(());
                }
                Anchor { seq, hash: hash.clone(), is_contradicted: false }
            }
            Some(known) => {
                tracing::error!(event = known.seq, "the event log was replaced by another one");
                Anchor { is_contradicted: true, ..known.clone() }
            }
        };
        if store.move_anchor(LOG, known.as_ref(), &to)? {
            return Ok(());
        }
    }
}

/// Tells whether the log holds the event of its anchor, or had it before its oldest segments went.
fn is_held(folder: &Path, known: &Anchor, appended: Appended) -> Result<bool> {
    let (first, previous) = appended.first;
    if first == known.seq + 1 {
        return Ok(previous.to_string() == known.hash);
    }
    let head = head::read_shared(folder).map_err(|error| Error::host("read the event log", error))?;
    let Some(head) = head.filter(|head| head.seq >= known.seq) else { return Ok(false) };
    if known.seq < head.first_seq {
        return Ok(true);
    }
    let event = Cursor::new(folder.to_owned(), known.seq).next_batch(1)?.pop();
    Ok(event.is_some_and(|event| event.seq > known.seq || event.hash.to_string() == known.hash))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
