//! Following: history, then what comes, told by the kernel when a file of the folder changes, or by the database.

use std::sync::Arc;

use eyot::Result;
use futures_util::Stream;
use futures_util::stream;

use super::EventLog;
use super::event::Event;
use super::read::LogCursor;
use crate::blocking::blocking;
use crate::changes::ChangeWatch;

/// The number of events that are read at once.
const BATCH: usize = 256;

/// A reader that waits for new events: its place in the log, what it waits for, and what it has
/// read ahead.
struct EventFollower {
    cursor: LogCursor,
    changes: ChangeWatch,
    /// Keeps the watch of all followers going.
    _shared: Arc<ChangeWatch>,
    ahead: std::vec::IntoIter<Event>,
}

enum FollowState {
    Beginning(Arc<EventLog>, u64),
    Following(Box<EventFollower>),
    Ended,
}

pub(super) fn follow(
    log: Arc<EventLog>,
    from_seq: u64,
) -> impl Stream<Item = Result<Event>> + Send + 'static {
    stream::unfold(FollowState::Beginning(log, from_seq), |state| async move {
        let follower = match state {
            FollowState::Beginning(log, from_seq) => {
                blocking(move || EventFollower::begin(&log, from_seq)).await
            }
            FollowState::Following(follower) => Ok(follower),
            FollowState::Ended => return None,
        };
        let next = match follower {
            Ok(follower) => follower.next().await,
            Err(error) => Err(error),
        };
        Some(match next {
            Ok((event, follower)) => (Ok(event), FollowState::Following(follower)),
            Err(error) => (Err(error), FollowState::Ended),
        })
    })
}

impl EventFollower {
    fn begin(log: &EventLog, from_seq: u64) -> Result<Box<Self>> {
        // Watched before it is read, so that nothing falls between.
        let shared = log.changes()?;
        let changes = ChangeWatch::clone(&shared);
        let cursor = log.reader(from_seq);
        Ok(Box::new(Self { cursor, changes, _shared: shared, ahead: Vec::new().into_iter() }))
    }

    /// The next event, however long it takes, and the follower that has read it.
    async fn next(mut self: Box<Self>) -> Result<(Event, Box<Self>)> {
        loop {
            if let Some(event) = self.ahead.next() {
                return Ok((event, self));
            }
            self.changes.mark_seen();
            self = blocking(move || {
                self.ahead = self.cursor.next_batch(BATCH)?.into_iter();
                Ok(self)
            })
            .await?;
            if self.ahead.len() == 0 {
                self.changes.changed().await?;
            }
        }
    }
}
