//! What was decided: the latest are remembered, and whoever follows hears of each.

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
    kept: Mutex<Kept>,
    followers: broadcast::Sender<EgressDecision>,
}

#[derive(Default)]
struct Kept {
    decisions: VecDeque<EgressDecision>,
    count: u64,
}

/// What a decision is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) protocol: EgressProtocol,
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
    pub(super) address: Option<IpAddr>,
}

impl Journal {
    pub(super) fn new() -> Self {
        Self { kept: Mutex::default(), followers: broadcast::Sender::new(MAX_DECISIONS) }
    }

    /// Notes a decision.
    pub(super) fn note(&self, about: About<'_>, verdict: EgressVerdict, reason: impl Into<String>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.count += 1;
        let mut host = about.host.to_owned();
        host.truncate(host.floor_char_boundary(MAX_HOST_BYTES));
        let decision = EgressDecision {
            number: kept.count,
            at_ms: now_ms(),
            verdict,
            protocol: about.protocol,
            host,
            port: about.port,
            address: about.address,
            reason: reason.into(),
        };
        if kept.decisions.len() == MAX_DECISIONS {
            kept.decisions.pop_front();
        }
        kept.decisions.push_back(decision.clone());
        // Nobody following is fine.
        drop(self.followers.send(decision));
    }

    /// The latest decisions, oldest first, and what will be told of those that follow them.
    pub(super) fn read(&self, last: usize) -> (Vec<EgressDecision>, broadcast::Receiver<EgressDecision>) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = kept.decisions.len().saturating_sub(last);
        (kept.decisions.iter().skip(skipped).cloned().collect(), self.followers.subscribe())
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
