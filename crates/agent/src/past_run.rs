//! The past of a resumed run, read from its events.

use std::collections::BTreeMap;
use std::time::SystemTime;

use eyot::Result;

use crate::budget::BudgetUsage;
use crate::event::{AgentEvent, AgentEventKind};
use crate::store::AgentStore;
use crate::unfinished::UnfinishedWork;

/// The number of events that are read at a time.
const EVENT_PAGE: u64 = 1_000;

/// The past of a resumed run.
#[derive(Debug, Default)]
pub(crate) struct RunHistory {
    pub(crate) next_index: u64,
    /// The number of log lines that the handler has written.
    pub(crate) logs: u64,
    /// An `idle` was told.
    pub(crate) has_told_idle: bool,
    pub(crate) unfinished: UnfinishedWork,
    /// The part of its budget that each harness has used.
    pub(crate) used: BTreeMap<String, BudgetUsage>,
    /// The time of the first event of each harness.
    begun: BTreeMap<String, SystemTime>,
}

impl RunHistory {
    pub(crate) async fn read(store: &dyn AgentStore, run: &str) -> Result<Self> {
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
            AgentEventKind::Idle => self.has_told_idle = true,
            _ => {}
        }
        self.use_budget(event);
    }

    /// Counts what the event's harness had used by then.
    fn use_budget(&mut self, event: &AgentEvent) {
        let Some(harness) = &event.harness else { return };
        let used = self.used.entry(harness.clone()).or_default();
        if let AgentEventKind::Turn { usage, .. } = &event.kind {
            used.turns += 1;
            used.usage += usage.unwrap_or_default();
        }
        if let Ok(now) = humantime::parse_rfc3339(&event.timestamp) {
            let begun = *self.begun.entry(harness.clone()).or_insert(now);
            used.time_before = now.duration_since(begun).unwrap_or_default();
        }
    }
}
