//! A limit on the server's requests that wait for the client's answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::failure::HttpFailure;

/// The most requests of a server that wait for an answer. A client without capabilities only gets pings.
const MAX_WAITING: usize = 64;

/// The number of waiting requests. Clones share the count.
#[derive(Clone, Default)]
pub(super) struct PendingRequests(Arc<AtomicUsize>);

/// A guard for the answer to one request. Dropping it takes the request off the count.
pub(super) struct AnswerGuard(PendingRequests);

/// The fields of a message that show its kind.
#[derive(Deserialize)]
struct MessageKind {
    id: Option<IgnoredAny>,
    method: Option<IgnoredAny>,
}

impl PendingRequests {
    /// Counts a message if it is a request. Too many waiting requests are a failure, because they are kept in memory.
    pub(super) fn count(&self, message: &str) -> Result<(), HttpFailure> {
        let is_request = serde_json::from_str::<MessageKind>(message)
            .is_ok_and(|message| message.id.is_some() && message.method.is_some());
        if is_request && self.0.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.0.fetch_sub(1, Ordering::Relaxed);
            return Err(HttpFailure::TooManyRequests);
        }
        Ok(())
    }

    /// Returns the guard for the answer to a request.
    pub(super) fn answer(&self) -> AnswerGuard {
        AnswerGuard(self.clone())
    }
}

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        let counted =
            self.0.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| waiting.checked_sub(1));
        if counted.is_err() {
            tracing::trace!("a request was answered that was not counted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_count_and_answers_make_room() {
        let waiting = PendingRequests::default();
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
