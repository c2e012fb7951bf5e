//! Following: history, then what comes, told by the kernel when a file of the folder changes.

use std::path::Path;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::watch;

use super::event::Event;
use super::read::Cursor;
use super::{EventLog, blocking};
use crate::error::{Error, ErrorKind, Result};

/// How many events are read at once.
const BATCH: usize = 256;

/// Tells that the log's folder changed; shared by all followers of one [`EventLog`].
pub(super) struct Changes {
    /// Counts the changes. Closed if the watching ends.
    count: watch::Receiver<u64>,
    _watcher: RecommendedWatcher,
}

impl Changes {
    /// Watches the folder. Blocks.
    pub(super) fn watch(folder: &Path) -> Result<Self> {
        let (sender, count) = watch::channel(0);
        let told = move |change: notify::Result<notify::Event>| {
            // Opening and reading are what followers do themselves.
            if !change.is_ok_and(|change| change.kind.is_access()) {
                sender.send_modify(|count: &mut u64| *count = count.wrapping_add(1));
            }
        };
        let watcher = notify::recommended_watcher(told).and_then(|mut watcher| {
            watcher.watch(folder, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        let watcher = watcher.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "follow the event log: its folder can't be watched")
                .with_hint("the limits are /proc/sys/fs/inotify/max_user_instances and max_user_watches")
                .with_source(error)
        })?;
        Ok(Self { count, _watcher: watcher })
    }
}

/// What a follower has: its place, what it waits for, and what it has read ahead.
struct Follower {
    cursor: Cursor,
    /// Keeps the watch going.
    _changes: Arc<Changes>,
    seen: watch::Receiver<u64>,
    ahead: std::vec::IntoIter<Event>,
}

enum State {
    Beginning(Arc<EventLog>, u64),
    Following(Box<Follower>),
    Ended,
}

pub(super) fn follow(
    log: Arc<EventLog>,
    from_seq: u64,
) -> impl Stream<Item = Result<Event>> + Send + 'static {
    stream::unfold(State::Beginning(log, from_seq), |state| async move {
        let follower = match state {
            State::Beginning(log, from_seq) => blocking(move || Follower::begin(&log, from_seq)).await,
            State::Following(follower) => Ok(follower),
            State::Ended => return None,
        };
        let next = match follower {
            Ok(follower) => follower.next().await,
            Err(error) => Err(error),
        };
        Some(match next {
            Ok((event, follower)) => (Ok(event), State::Following(follower)),
            Err(error) => (Err(error), State::Ended),
        })
    })
}

impl Follower {
    fn begin(log: &EventLog, from_seq: u64) -> Result<Box<Self>> {
        // Watched before it is read, so that nothing falls between.
        let changes = log.changes()?;
        let seen = changes.count.clone();
        let cursor = Cursor::new(log.folder.clone(), from_seq);
        Ok(Box::new(Self { cursor, _changes: changes, seen, ahead: Vec::new().into_iter() }))
    }

    /// The next event, however long it takes, and the follower that has read it.
    async fn next(mut self: Box<Self>) -> Result<(Event, Box<Self>)> {
        loop {
            if let Some(event) = self.ahead.next() {
                return Ok((event, self));
            }
            self.seen.mark_unchanged();
            self = blocking(move || {
                self.ahead = self.cursor.next_batch(BATCH)?.into_iter();
                Ok(self)
            })
            .await?;
            if self.ahead.len() == 0 {
                self.wait().await?;
            }
        }
    }

    async fn wait(&mut self) -> Result<()> {
        let changed = self.seen.changed().await;
        changed.map_err(|error| {
            Error::new(ErrorKind::Unavailable, "follow the event log: the watch of its folder ended")
                .with_source(error)
        })
    }
}
