//! The past of a run that is gone on with, as its events tell it.

use eyot::Result;

use crate::event::{AgentEvent, AgentEventKind};
use crate::store::AgentStore;
use crate::unfinished::UnfinishedWork;
use crate::usage::TokenUsage;

/// The number of events that are read at once.
const EVENT_PAGE: u64 = 1_000;

/// The past of a run that is gone on with.
#[derive(Debug, Default)]
pub(super) struct RunPast {
    pub(super) next_index: u64,
    /// The lines of the log that the handler has written.
    pub(super) logs: u64,
    pub(super) unfinished: UnfinishedWork,
    pub(super) used: UsedBefore,
}

/// The part of the budget that is used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UsedBefore {
    pub(super) turns: u64,
    pub(super) usage: TokenUsage,
}

impl RunPast {
    pub(super) async fn read(store: &dyn AgentStore, run: &str) -> Result<Self> {
        let mut past = Self::default();
        loop {
            let events = store.events(run, past.next_index, EVENT_PAGE).await?;
            if events.is_empty() {
                return Ok(past);
            }
            events.iter().for_each(|event| past.add(event));
        }
    }

    fn add(&mut self, event: &AgentEvent) {
        self.next_index = event.event_index + 1;
        self.unfinished.add(event);
        match &event.kind {
            AgentEventKind::Log { .. } if event.harness.is_none() => self.logs += 1,
            AgentEventKind::Turn { usage, .. } => {
                self.used.turns += 1;
                self.used.usage += usage.unwrap_or_default();
            }
            _ => {}
        }
    }
}
