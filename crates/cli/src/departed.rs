//! Sandboxes that are not there any more: when they were destroyed, and why, by the event log.

use std::path::Path;
use std::sync::Arc;

use eyot::SandboxName;
use eyot_engine::DEFAULT_SANDBOX;
use eyot_engine::events::{Event, EventFilter, EventKind, EventLog, EventLogOptions};

use crate::durations::{age, since};

/// The number of events, back from the last, in which a sandbox's end is looked for.
const LOOKED_THROUGH: usize = 4096;

/// Says when and why the last sandbox of this name or id was destroyed; `None` if the log of this
/// state folder does not tell.
pub fn what_became_of(named: &str, state_folder: &Path) -> Option<String> {
    let folder = state_folder.join("events");
    if !folder.is_dir() {
        return None;
    }
    let pool = SandboxName::parse(DEFAULT_SANDBOX).ok()?;
    let filter = EventFilter::parse(named, &pool).ok()?;
    let log = EventLog::open(folder, EventLogOptions::default()).ok()?;
    let end = last_end(&log, &filter)?;
    let when = if end.is_late() {
        "it is gone".to_owned()
    } else {
        format!("it was destroyed {} ago", age(since(end.time_ms)))
    };
    let reason = end.reason;
    Some(format!("{when}: {reason}; `eyot events --sandbox {named}` tells more"))
}

/// Finds the end of the last sandbox that the filter takes, if none was made since.
fn last_end(log: &Arc<EventLog>, filter: &EventFilter) -> Option<Event> {
    let last = log.last_seq().ok()?;
    let from = last.saturating_sub(LOOKED_THROUGH as u64 - 1).max(1);
    let events = log.read(from, LOOKED_THROUGH).ok()?;
    let is_change = |event: &Event| matches!(event.kind, EventKind::Created | EventKind::Destroyed);
    let change = events.into_iter().rev().find(|event| is_change(event) && filter.takes(event))?;
    matches!(change.kind, EventKind::Destroyed).then_some(change)
}
