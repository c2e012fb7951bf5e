//! The tries of a call that may be sent again.

use std::time::Duration;

use super::status::GrpcFailure;

/// The most times that a call is sent.
const MAX_TRIES: u32 = 4;
/// The wait before the second try, where Modal names none; each later one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The most times that the stream of an output is opened without a byte of it.
const MAX_OPENED: u32 = 8;
/// The longest wait before it is opened again.
const MAX_OPENING_WAIT: Duration = Duration::from_secs(5);
/// The longest wait that Modal may ask for. A call whose turn comes later fails.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The tries of one call so far.
#[derive(Debug)]
pub(super) struct Retry {
    failed: u32,
    max_tries: u32,
    max_wait: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { failed: 0, max_tries: MAX_TRIES, max_wait: MAX_WAIT }
    }
}

impl Retry {
    /// The tries of a stream that a command depends on: for a quarter of a minute.
    pub fn of_output() -> Self {
        Self { failed: 0, max_tries: MAX_OPENED, max_wait: MAX_OPENING_WAIT }
    }

    /// Waits until a call that has failed may be sent again. Returns whether it may.
    pub async fn waits(&mut self, failure: &GrpcFailure) -> bool {
        match self.next_wait(failure) {
            Some(wait) => {
                tokio::time::sleep(wait).await;
                true
            }
            None => false,
        }
    }

    fn next_wait(&mut self, failure: &GrpcFailure) -> Option<Duration> {
        let usual = (FIRST_WAIT * 2_u32.pow(self.failed)).min(self.max_wait);
        self.failed += 1;
        let wait = failure.asked().map_or(usual, |asked| asked.max(usual));
        (failure.may_retry() && self.failed < self.max_tries && wait <= MAX_WAIT).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modal::status::GrpcCode;

    #[test]
    fn a_call_is_sent_as_often_as_allowed_and_waits_no_longer_than_allowed() {
        let mut retry = Retry::default();
        let lost = GrpcFailure::Lost(String::new());
        for wait_ms in [200, 400, 800] {
            assert_eq!(retry.next_wait(&lost), Some(Duration::from_millis(wait_ms)));
        }
        assert_eq!(retry.next_wait(&lost), None);
        let throttled = |asked| GrpcFailure::Refused {
            code: GrpcCode::RESOURCE_EXHAUSTED,
            message: String::new(),
            asked: Some(asked),
        };
        assert_eq!(Retry::default().next_wait(&throttled(MAX_WAIT)), Some(MAX_WAIT));
        assert_eq!(Retry::default().next_wait(&throttled(MAX_WAIT + Duration::from_millis(1))), None);
    }
}
