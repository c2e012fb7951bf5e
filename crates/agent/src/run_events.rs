//! The events of a run as a stream: those that are stored, and then the new ones as they are stored.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};

use crate::event::{AgentEvent, AgentEventKind};
use crate::store::{AgentStore, RunStatus, RunWatch};

/// The number of events that are read at a time.
const EVENT_PAGE: u64 = 100;

/// The number of events that are read at a time, if only some are wanted.
const FILTER_PAGE: u64 = 1_000;

/// A reader of a run's events.
struct RunFollower {
    store: Arc<dyn AgentStore>,
    run: String,
    next: u64,
    watch: RunWatch,
}

/// Streams the events of a run from the number `from` on, until its last one. An event is told once it is stored, so no number
/// is told twice, even if the process is killed. It ends early if the run is deleted.
pub(crate) async fn follow_run(
    store: Arc<dyn AgentStore>,
    run: &str,
    from: u64,
) -> Result<BoxStream<'static, Result<AgentEvent>>> {
    // Watched before it is read, so that nothing is missed in between.
    let watch = store.watch_run(run).await?;
    if store.run(run).await?.is_none() {
        return Err(no_run(run));
    }
    let follower = RunFollower { store, run: run.to_owned(), next: from, watch };
    let pages = stream::unfold(Some(follower), async |follower| {
        let mut follower = follower?;
        match follower.page().await {
            Ok(None) => None,
            Ok(Some(events)) => {
                let is_last = events.last().is_some_and(is_end);
                let events = events.into_iter().map(Ok).collect::<Vec<_>>();
                Some((events, (!is_last).then_some(follower)))
            }
            Err(error) => Some((vec![Err(error)], None)),
        }
    });
    Ok(pages.flat_map(stream::iter).boxed())
}

pub(crate) fn no_run(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no run `{id}`"))
}

fn is_end(event: &AgentEvent) -> bool {
    matches!(event.kind, AgentEventKind::RunEnd { .. })
}

impl RunFollower {
    /// Returns the next events, and waits for them if need be. `None`: there are no more.
    async fn page(&mut self) -> Result<Option<Vec<AgentEvent>>> {
        loop {
            if let Some(events) = self.stored().await? {
                return Ok(Some(events));
            }
            match self.store.run(&self.run).await? {
                None => return Ok(None),
                // Its last events may have come in between.
                Some(record) if record.status != RunStatus::Active => return self.stored().await,
                Some(_) => {
                    self.watch.changed().await?;
                    // The run may have another owner now.
                    self.watch = self.store.watch_run(&self.run).await?;
                }
            }
        }
    }

    /// Returns the next stored events; `None`: there are none now.
    async fn stored(&mut self) -> Result<Option<Vec<AgentEvent>>> {
        let events = self.store.events(&self.run, self.next, EVENT_PAGE).await?;
        let Some(last) = events.last() else { return Ok(None) };
        self.next = last.event_index + 1;
        Ok(Some(events))
    }
}

/// Reads the stored events of a run from the number `from` on: those of some types (`None`: of all), at most `limit`.
pub async fn stored_events(
    store: &dyn AgentStore,
    run: &str,
    from: u64,
    types: Option<&[String]>,
    limit: u64,
) -> Result<Vec<AgentEvent>> {
    let Some(types) = types else { return store.events(run, from, limit).await };
    let (mut found, mut from) = (Vec::new(), from);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    while found.len() < limit {
        let page = store.events(run, from, FILTER_PAGE).await?;
        let Some(last) = page.last() else { break };
        from = last.event_index + 1;
        found.extend(page.into_iter().filter(|event| types.iter().any(|name| name == event.kind.name())));
    }
    found.truncate(limit);
    Ok(found)
}
