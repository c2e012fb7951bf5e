//! Those who watch files in memory.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use eyot::{Error, ErrorKind, Result, WatchEvent, WatchEventKind, WatchOptions};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::sync::Notify;

use super::names::{joined, odd_bytes, shown};
use super::node::NodeId;
use super::place::Place;

/// The events that wait for one reader. With more of them some are lost, and it is told so.
const MAX_WAITING: usize = 4096;

/// Everybody who watches.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    all: Vec<FileWatcher>,
}

#[derive(Debug)]
struct FileWatcher {
    /// The watched place, whatever its path is.
    node: NodeId,
    is_directory: bool,
    options: WatchOptions,
    directories: u32,
    events: Weak<Events>,
}

/// The events that wait for a reader.
#[derive(Debug)]
struct Events {
    waiting: Mutex<WaitingEvents>,
    arrived: Notify,
    is_directory: bool,
}

#[derive(Debug, Default)]
struct WaitingEvents {
    events: VecDeque<Result<WatchEvent>>,
    has_lost: bool,
    has_ended: bool,
}

impl Events {
    fn lock(&self) -> MutexGuard<'_, WaitingEvents> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: Result<WatchEvent>) {
        let mut waiting = self.lock();
        if waiting.events.len() < MAX_WAITING && !waiting.has_lost {
            waiting.events.push_back(event);
        } else {
            waiting.has_lost = true;
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    fn end(&self) {
        self.lock().has_ended = true;
        self.arrived.notify_one();
    }

    /// Takes the next one; `Err` says whether there will be more.
    fn take(&self) -> std::result::Result<Result<WatchEvent>, bool> {
        let mut waiting = self.lock();
        if let Some(event) = waiting.events.pop_front() {
            return Ok(event);
        }
        if std::mem::take(&mut waiting.has_lost) {
            return Ok(Ok(WatchEvent {
                kind: WatchEventKind::Overflow,
                path: String::new(),
                path_bytes: None,
                is_directory: self.is_directory,
            }));
        }
        Err(!waiting.has_ended)
    }

    async fn next(&self) -> Option<Result<WatchEvent>> {
        loop {
            match self.take() {
                Ok(event) => return Some(event),
                Err(true) => self.arrived.notified().await,
                Err(false) => return None,
            }
        }
    }
}

impl Watchers {
    /// Tells whether nobody watches.
    pub(super) fn are_none(&self) -> bool {
        self.all.is_empty()
    }

    /// Watches a place. `directories`: how many are there now.
    pub(super) fn watch(
        &mut self,
        node: NodeId,
        is_directory: bool,
        directories: u32,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, Result<WatchEvent>>> {
        if directories > options.max_directories {
            return Err(too_many(options));
        }
        let events = Arc::new(Events { waiting: Mutex::default(), arrived: Notify::new(), is_directory });
        let listener = Arc::downgrade(&events);
        self.all.push(FileWatcher { node, is_directory, options, directories, events: listener });
        let stream = futures_util::stream::unfold(events, |events| async move {
            let event = events.next().await?;
            Some((event, events))
        });
        Ok(stream.boxed())
    }

    pub(super) fn tell(&mut self, kind: &WatchEventKind, place: &Place, is_directory: bool) {
        self.all.retain_mut(|watcher| watcher.tell(kind, place, is_directory));
    }

    /// Tells that a node has moved, with what is inside.
    pub(super) fn renamed(
        &mut self,
        id: NodeId,
        inside: &HashSet<NodeId>,
        places: (&Place, &Place),
        is_directory: bool,
    ) {
        self.all.retain_mut(|watcher| {
            // The watched place has moved, so it is not there any more.
            if watcher.node == id || inside.contains(&watcher.node) {
                return watcher.end_removed();
            }
            watcher.renamed(id, places, is_directory)
        });
    }
}

impl FileWatcher {
    /// The path of something relative to the watched place, if it is told of it.
    fn sees(&self, place: &Place) -> Option<Vec<u8>> {
        if place.node == Some(self.node) {
            return Some(Vec::new());
        }
        let depth = place.chain.iter().position(|directory| *directory == self.node)?;
        let rest = place.names.get(depth..)?;
        (rest.len() == 1 || self.options.recursive).then(|| joined(rest))
    }

    /// Tells it, and says whether it still listens.
    fn tell(&mut self, kind: &WatchEventKind, place: &Place, is_directory: bool) -> bool {
        let Some(events) = self.events.upgrade() else { return false };
        let Some(path) = self.sees(place) else { return true };
        let is_itself = path.is_empty();
        if is_itself && self.is_directory && *kind != WatchEventKind::Removed {
            return true;
        }
        if is_directory && self.options.recursive && *kind == WatchEventKind::Created {
            self.directories += 1;
            if self.directories > self.options.max_directories {
                events.push(Err(too_many(self.options)));
                events.end();
                return false;
            }
        }
        events.push(Ok(event(kind.clone(), &path, is_directory)));
        let is_over = is_itself && *kind == WatchEventKind::Removed;
        if is_over {
            events.end();
        }
        !is_over
    }

    /// Tells it that the watched place has gone. It listens no more.
    fn end_removed(&self) -> bool {
        if let Some(events) = self.events.upgrade() {
            events.push(Ok(event(WatchEventKind::Removed, b"", self.is_directory)));
            events.end();
        }
        false
    }

    /// The places are as they were before.
    fn renamed(&mut self, id: NodeId, (from, to): (&Place, &Place), is_directory: bool) -> bool {
        let Some(events) = self.events.upgrade() else { return false };
        // What has replaced the watched file is watched from now on.
        if to.node == Some(self.node) {
            let goes_on = self.tell(&WatchEventKind::Modified, to, is_directory);
            self.node = id;
            return goes_on;
        }
        match (self.sees(from), self.sees(to)) {
            (Some(from), Some(to)) => {
                let kind = WatchEventKind::Renamed { from: shown(&from), from_bytes: odd_bytes(&from) };
                events.push(Ok(event(kind, &to, is_directory)));
                true
            }
            (Some(_), None) => self.tell(&WatchEventKind::Removed, from, is_directory),
            (None, Some(_)) => self.tell(&WatchEventKind::Created, to, is_directory),
            (None, None) => true,
        }
    }
}

fn event(kind: WatchEventKind, path: &[u8], is_directory: bool) -> WatchEvent {
    WatchEvent { kind, path: shown(path), path_bytes: odd_bytes(path), is_directory }
}

fn too_many(options: WatchOptions) -> Error {
    Error::new(
        ErrorKind::Quota,
        format!("there are more than {} directories to watch", options.max_directories),
    )
}
