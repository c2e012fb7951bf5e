//! Times of spans, as events tell them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::event::{AgentEvent, AgentEventKind};

/// The time at which an event was told.
pub(super) fn time_of(event: &AgentEvent) -> SystemTime {
    humantime::parse_rfc3339(&event.timestamp).unwrap_or_else(|_| SystemTime::now())
}

/// The time at which that began of which an event tells: for an event of an end, its time less its duration.
pub(super) fn start_of(event: &AgentEvent) -> SystemTime {
    let time = time_of(event);
    let duration_ms = match event.kind {
        AgentEventKind::ToolCall { duration_ms, .. }
        | AgentEventKind::Turn { duration_ms, .. }
        | AgentEventKind::Task { duration_ms, .. }
        | AgentEventKind::Operation { duration_ms, .. }
        | AgentEventKind::RunEnd { duration_ms, .. } => duration_ms,
        _ => 0,
    };
    let start = time.checked_sub(Duration::from_millis(duration_ms));
    start.filter(|start| *start >= UNIX_EPOCH).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_end(timestamp: &str, duration_ms: u64) -> AgentEvent {
        let kind = AgentEventKind::RunEnd {
            result: serde_json::Value::Null,
            is_error: false,
            error: None,
            duration_ms,
        };
        AgentEvent { timestamp: timestamp.to_owned(), ..AgentEvent::of_kind(kind) }
    }

    #[test]
    fn the_start_is_the_time_of_the_end_less_the_duration() {
        let event = run_end("2026-11-25T00:00:02.500Z", 1_500);
        assert_eq!(start_of(&event), humantime::parse_rfc3339("2026-11-25T00:00:01Z").unwrap());
    }

    #[test]
    fn a_time_and_a_duration_that_cannot_be_are_no_reason_to_panic() {
        let event = run_end("2026-11-25T00:00:02Z", u64::MAX);
        assert_eq!(start_of(&event), time_of(&event));
        assert!(time_of(&run_end("yesterday", 0)) > UNIX_EPOCH);
    }
}
