//! Rate limits for new requests: of one key, so that a client in a loop does not slow down the
//! others; and of one address without a right key, so that guessing does not fill the log.
//!
//! A limiter keeps a moment per key, and per recent address, of these at most [`MAX_KEPT`].

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use eyot::{Error, ErrorKind};
use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::http::Peer;
use crate::http::limits::ServeLimits;
use crate::problem::Refusal;

/// The most addresses that are remembered. Quiet ones are forgotten now and then. If it is still
/// full, all addresses share the allowance of one.
const MAX_KEPT: usize = 10_000;

/// The rate limits of a server.
pub(super) struct Rates {
    keys: Rate<String>,
    strangers: Rate<Peer>,
}

/// The time that a client has to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RetryAfter(Duration);

impl Rates {
    /// Makes the limiters from the server's limits.
    pub fn new(limits: &ServeLimits) -> Self {
        Self {
            // Nobody but the server's owner makes keys.
            keys: Rate::new(
                limits.max_requests_per_second,
                limits.max_request_burst,
                usize::MAX,
                MonotonicClock,
            ),
            strangers: Rate::new(
                limits.wrong_keys_per_second,
                limits.wrong_key_burst,
                MAX_KEPT,
                MonotonicClock,
            ),
        }
    }

    /// Counts a new request of this key. Requests without a key count as those of one key.
    pub fn begin(&self, key_id: Option<&str>) -> Result<(), RetryAfter> {
        self.keys.begin(Some(key_id.unwrap_or_default().to_owned()))
    }

    /// Counts a new request from this address without a right key.
    pub fn begin_stranger(&self, peer: Peer) -> Result<(), RetryAfter> {
        self.strangers.begin(Some(peer))
    }
}

impl RetryAfter {
    /// Returns the refusal for a client with a key.
    pub fn of_key(self) -> Response {
        let hint =
            "ask for less at once, or ask whoever runs the server for a larger --max-requests-per-second";
        self.refusal("this key has asked too much of late", hint)
    }

    /// Returns the refusal for a client without a right key.
    pub fn of_stranger(self) -> Response {
        let hint = "`eyot keys ls` on the server's host lists the keys there are";
        self.refusal("too many requests without a right key came from your address", hint)
    }

    fn refusal(self, reason: &str, hint: &str) -> Response {
        let seconds = self.0.as_millis().div_ceil(1000).max(1);
        let error = Error::new(ErrorKind::Quota, format!("{reason}: wait {seconds} s")).with_hint(hint);
        let mut response = Refusal::from(error).into_response();
        response.headers_mut().insert(header::RETRY_AFTER, seconds_value(seconds));
        response
    }
}

fn seconds_value(seconds: u128) -> HeaderValue {
    HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX))
}

type Limiter<K, C> = RateLimiter<K, HashMapStateStore<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// A rate limit for each of many clients. `None` stands for all those that are not remembered.
struct Rate<K: Hash + Eq + Clone, C: Clock = MonotonicClock> {
    limiter: Limiter<Option<K>, C>,
    clock: C,
    max_kept: usize,
    /// The number of requests since quiet clients were last forgotten.
    since_swept: AtomicUsize,
}

impl<K: Hash + Eq + Clone, C: Clock + Clone> Rate<K, C> {
    fn new(per_second: u32, burst: u32, max_kept: usize, clock: C) -> Self {
        let some = |count: u32| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(some(per_second)).allow_burst(some(burst));
        let limiter = RateLimiter::new(quota, HashMapStateStore::default(), clock.clone());
        Self { limiter, clock, max_kept, since_swept: AtomicUsize::new(0) }
    }

    fn begin(&self, who: Option<K>) -> Result<(), RetryAfter> {
        let who = if self.is_full() { None } else { who };
        self.limiter
            .check_key(&who)
            .map_err(|not_until| RetryAfter(not_until.wait_time_from(self.clock.now())))
    }

    /// Tells whether no further client can be remembered. Forgetting the quiet ones takes a pass
    /// over all, so it is done once in [`MAX_KEPT`] requests.
    fn is_full(&self) -> bool {
        if self.since_swept.fetch_add(1, Ordering::Relaxed) >= MAX_KEPT {
            self.since_swept.store(0, Ordering::Relaxed);
            self.limiter.retain_recent();
            self.limiter.shrink_to_fit();
        }
        self.limiter.len() >= self.max_kept
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    fn rate(per_second: u32, burst: u32) -> (Rate<u32, FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (Rate::new(per_second, burst, MAX_KEPT, clock.clone()), clock)
    }

    #[test]
    fn as_many_begin_as_the_burst_and_then_one_whenever_its_share_of_a_second_is_over() {
        let (rate, clock) = rate(10, 3);
        assert!((0..3).all(|_| rate.begin(Some(1)).is_ok()));
        assert_eq!(rate.begin(Some(1)), Err(RetryAfter(Duration::from_millis(100))));
        assert!(rate.begin(Some(2)).is_ok(), "another one has a share of their own");
        clock.advance(Duration::from_millis(99));
        assert_eq!(rate.begin(Some(1)), Err(RetryAfter(Duration::from_millis(1))));
        clock.advance(Duration::from_millis(1));
        assert!(rate.begin(Some(1)).is_ok() && rate.begin(Some(1)).is_err());
    }

    #[test]
    fn who_is_refused_is_told_whole_seconds_and_never_none() {
        for (wait_ms, told) in [(1, "1"), (1000, "1"), (1001, "2")] {
            let refused = RetryAfter(Duration::from_millis(wait_ms)).of_key();
            assert_eq!(
                (refused.status().as_u16(), &refused.headers()["retry-after"]),
                (429, &HeaderValue::from_static(told))
            );
        }
    }

    #[test]
    fn no_more_is_kept_than_the_bound_and_what_was_quiet_is_forgotten() {
        let (rate, clock) = rate(1, 1);
        let many = u32::try_from(MAX_KEPT).unwrap() * 3;
        let refused = (0..many).filter(|who| rate.begin(Some(*who)).is_err()).count();
        assert!(rate.limiter.len() <= MAX_KEPT + 1, "{}", rate.limiter.len());
        assert!(refused > 0, "those of whom nothing is kept share one burst");
        clock.advance(Duration::from_secs(60));
        let begun = (0..many).filter(|_| rate.begin(Some(1)).is_ok()).count();
        // Of what all share, as long as those are kept who are quiet now; and then of one's own.
        assert_eq!(begun, 2);
        assert!(rate.limiter.len() <= 2, "{}", rate.limiter.len());
    }
}
