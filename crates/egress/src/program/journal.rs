//! The log of decisions: the latest are remembered, and followers receive each new one.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::broadcast;

use crate::control::MAX_DECISIONS;
use crate::decision::{EgressDecision, EgressProtocol, EgressVerdict};

const MAX_HOST_BYTES: usize = 255;

/// The decisions of one sandbox.
pub(super) struct Journal {
    history: Mutex<History>,
    followers: broadcast::Sender<EgressDecision>,
}

#[derive(Default)]
struct History {
    decisions: VecDeque<EgressDecision>,
    count: u64,
}

/// The attempt that a decision is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccessAttempt<'a> {
    pub(super) protocol: EgressProtocol,
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
    pub(super) address: Option<IpAddr>,
}

impl Journal {
    pub(super) fn new() -> Self {
        Self { history: Mutex::default(), followers: broadcast::Sender::new(MAX_DECISIONS) }
    }

    /// Records a decision.
    pub(super) fn record(
        &self,
        attempt: AccessAttempt<'_>,
        verdict: EgressVerdict,
        reason: impl Into<String>,
    ) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.count += 1;
        let mut host = attempt.host.to_owned();
        host.truncate(host.floor_char_boundary(MAX_HOST_BYTES));
        let decision = EgressDecision {
            number: history.count,
            at_ms: now_ms(),
            verdict,
            protocol: attempt.protocol,
            host,
            port: attempt.port,
            address: attempt.address,
            reason: reason.into(),
        };
        if history.decisions.len() == MAX_DECISIONS {
            history.decisions.pop_front();
        }
        history.decisions.push_back(decision.clone());
        // It is fine if there are no followers.
        drop(self.followers.send(decision));
    }

    /// Returns the latest decisions, oldest first, and the stream of those to come.
    pub(super) fn read(&self, last: usize) -> (Vec<EgressDecision>, broadcast::Receiver<EgressDecision>) {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = history.decisions.len().saturating_sub(last);
        (history.decisions.iter().skip(skipped).cloned().collect(), self.followers.subscribe())
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
