//! The spans that are open, with a limit to their number.

use std::collections::HashMap;
use std::time::SystemTime;

use crate::event::AgentEvent;

/// The most spans that are open at once.
pub const MAX_OPEN_SPANS: usize = 10_000;

/// The work that a span is of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum SpanKey {
    Run(String),
    Operation(String),
    Task(String),
    Tool { operation: String, call: String },
}

/// A span that is open.
pub(super) struct OpenSpan<S> {
    pub(super) span: S,
    pub(super) started: SystemTime,
    /// The run that it belongs to.
    pub(super) run: Option<String>,
    /// The operation that it belongs to.
    pub(super) operation: Option<String>,
    /// The agent's name.
    pub(super) agent: Option<String>,
    /// The id of the conversation; of a run, that of the agent's instance.
    pub(super) conversation: Option<String>,
    /// The name says what kind of work it is. It does not where the beginning was not heard.
    pub(super) is_named: bool,
    /// The time at which the model's answer of the turn that goes on was complete.
    pub(super) answered: Option<SystemTime>,
}

struct KeptSpan<S> {
    open: OpenSpan<S>,
    heard: SystemTime,
    order: u64,
}

/// The spans that are open.
pub(super) struct OpenSpans<S> {
    spans: HashMap<SpanKey, KeptSpan<S>>,
    /// Counts what was heard.
    order: u64,
    limit: usize,
}

impl<S> OpenSpan<S> {
    pub(super) fn new(span: S, started: SystemTime, event: &AgentEvent) -> Self {
        Self {
            span,
            started,
            run: event.run_id.clone(),
            operation: event.operation_id.clone(),
            agent: None,
            conversation: None,
            is_named: true,
            answered: None,
        }
    }
}

impl<S> OpenSpans<S> {
    pub(super) fn new(limit: usize) -> Self {
        Self { spans: HashMap::new(), order: 0, limit }
    }

    pub(super) fn has(&self, key: &SpanKey) -> bool {
        self.spans.contains_key(key)
    }

    pub(super) fn get(&self, key: &SpanKey) -> Option<&OpenSpan<S>> {
        self.spans.get(key).map(|kept| &kept.open)
    }

    pub(super) fn get_mut(&mut self, key: &SpanKey) -> Option<&mut OpenSpan<S>> {
        self.spans.get_mut(key).map(|kept| &mut kept.open)
    }

    /// Notes that work is going on.
    pub(super) fn touch(&mut self, key: &SpanKey, time: SystemTime) {
        self.order += 1;
        if let Some(kept) = self.spans.get_mut(key) {
            (kept.heard, kept.order) = (time, self.order);
        }
    }

    /// Adds a span. Returns the one that has to give way, and the time at which it was last heard of.
    pub(super) fn insert(&mut self, key: SpanKey, open: OpenSpan<S>) -> Option<(OpenSpan<S>, SystemTime)> {
        self.order += 1;
        let kept = KeptSpan { heard: open.started, order: self.order, open };
        let replaced = self.spans.insert(key, kept);
        let removed = replaced.or_else(|| self.take_oldest())?;
        Some((removed.open, removed.heard))
    }

    pub(super) fn remove(&mut self, key: &SpanKey) -> Option<OpenSpan<S>> {
        self.spans.remove(key).map(|kept| kept.open)
    }

    /// Removes everything that this is true of.
    pub(super) fn remove_all(&mut self, is_meant: impl Fn(&OpenSpan<S>) -> bool) -> Vec<OpenSpan<S>> {
        self.spans.extract_if(|_, kept| is_meant(&kept.open)).map(|(_, kept)| kept.open).collect()
    }

    fn take_oldest(&mut self) -> Option<KeptSpan<S>> {
        if self.spans.len() <= self.limit {
            return None;
        }
        let (key, _) = self.spans.iter().min_by_key(|(_, kept)| kept.order)?;
        let key = key.clone();
        self.spans.remove(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str) -> SpanKey {
        SpanKey::Run(name.to_owned())
    }

    fn open(span: u64) -> OpenSpan<u64> {
        OpenSpan {
            span,
            started: SystemTime::UNIX_EPOCH,
            run: None,
            operation: None,
            agent: None,
            conversation: None,
            is_named: true,
            answered: None,
        }
    }

    #[test]
    fn beyond_the_limit_the_one_that_was_quiet_for_longest_gives_way() {
        let mut spans = OpenSpans::new(2);
        assert!(spans.insert(run("a"), open(1)).is_none());
        assert!(spans.insert(run("b"), open(2)).is_none());
        let later = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        spans.touch(&run("a"), later);
        assert_eq!(spans.insert(run("c"), open(3)).map(|(left, _)| left.span), Some(2));
        assert_eq!(spans.insert(run("d"), open(4)).map(|(left, heard)| (left.span, heard)), Some((1, later)));
        assert!(spans.has(&run("c")) && spans.has(&run("d")));
    }

    #[test]
    fn a_second_span_of_the_same_work_replaces_the_first() {
        let mut spans = OpenSpans::new(2);
        spans.insert(run("a"), open(1));
        assert_eq!(spans.insert(run("a"), open(2)).map(|(left, _)| left.span), Some(1));
        assert_eq!(spans.remove(&run("a")).map(|left| left.span), Some(2));
    }
}
