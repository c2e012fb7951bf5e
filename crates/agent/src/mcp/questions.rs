//! The requests of a server that wait for this side's answer, and how many there may be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::failure::HttpFailure;

/// The most requests of a server that wait for an answer. A client that offers nothing is only pinged.
const MAX_WAITING: usize = 64;

/// The number of requests that wait. Clones count together.
#[derive(Clone, Default)]
pub(super) struct WaitingRequests(Arc<AtomicUsize>);

/// The answer to one of them; it no longer waits when this is dropped.
pub(super) struct AnswerGuard(WaitingRequests);

/// The parts of a message that tell what it is.
#[derive(Deserialize)]
struct MessageKind {
    id: Option<IgnoredAny>,
    method: Option<IgnoredAny>,
}

impl WaitingRequests {
    /// Counts a message if it is a request. A server that asks too much at once is a failure: everything that waits is held
    /// in memory.
    pub(super) fn count(&self, message: &str) -> Result<(), HttpFailure> {
        let is_request = serde_json::from_str::<MessageKind>(message)
            .is_ok_and(|message| message.id.is_some() && message.method.is_some());
        if is_request && self.0.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.0.fetch_sub(1, Ordering::Relaxed);
            return Err(HttpFailure::TooManyRequests);
        }
        Ok(())
    }

    /// Begins with an answer.
    pub(super) fn answer(&self) -> AnswerGuard {
        AnswerGuard(self.clone())
    }
}

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        let counted =
            self.0.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| waiting.checked_sub(1));
        if counted.is_err() {
            tracing::trace!("an answer to a request that was not counted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_count_and_answers_make_room() {
        let waiting = WaitingRequests::default();
        for _ in 0..2 * MAX_WAITING {
            waiting.count(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#).unwrap();
            waiting.count(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).unwrap();
        }
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        for _ in 0..MAX_WAITING {
            waiting.count(ping).unwrap();
        }
        assert_eq!(waiting.count(ping), Err(HttpFailure::TooManyRequests));
        drop(waiting.answer());
        waiting.count(ping).unwrap();
        assert_eq!(waiting.count(ping), Err(HttpFailure::TooManyRequests));
    }
}
