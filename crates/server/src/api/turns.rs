//! Limits the requests of one key that are under way at once. One more is refused before anything
//! is done, so a client that asks too much slows down nobody else. Requests under way end when
//! their key is revoked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::body::Bytes;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use eyot::{Error, ErrorKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

use crate::http::holding::HeldValue;
use crate::problem::Refusal;

/// The value of `Retry-After`, in seconds.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// The turns of every key.
pub(super) struct RequestTurns {
    max: usize,
    by_key: Mutex<HashMap<String, KeyTurns>>,
}

#[derive(Clone)]
struct KeyTurns {
    turns: Arc<Semaphore>,
    revoked: CancellationToken,
}

/// One request's turn, which is over when all of its clones are dropped. A socket's handler keeps
/// one for as long as the socket.
#[derive(Clone)]
pub(super) struct Turn {
    _permit: Arc<OwnedSemaphorePermit>,
    right: Right,
}

/// The right to go on with a request. It ends when the key is revoked, or with the session that the
/// request came by.
#[derive(Clone, Default)]
pub(super) struct Right {
    pub ended: CancellationToken,
    /// The end of the session; `None`: no session.
    pub until: Option<Instant>,
}

impl Right {
    /// Waits until the right has ended.
    async fn over(self) {
        let ended = self.ended.cancelled();
        match self.until {
            Some(until) => drop(timeout_at(until.into(), ended).await),
            None => ended.await,
        }
    }
}

impl Turn {
    /// Does `work` to its end; `None`: the caller's right ended before.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.right.clone().over() => None,
            done = work => Some(done),
        }
    }

    /// Tells whether the caller's right has ended before its time, because the key was revoked or
    /// the session closed.
    pub fn is_over(&self) -> bool {
        self.right.ended.is_cancelled()
    }
}

impl HeldValue for Turn {
    const WHY: &'static str = "the key was revoked, or the session ended";

    fn last_event(&self) -> Option<Bytes> {
        let refusal = Refusal::from(Error::new(ErrorKind::Permission, Self::WHY));
        let problem = serde_json::to_string(&refusal.problem()).ok()?;
        Some(format!("event: problem\ndata: {problem}\n\n").into())
    }

    fn is_over(&self) -> bool {
        self.is_over()
    }

    fn over(&self) -> impl Future<Output = ()> + Send + 'static {
        self.right.clone().over()
    }
}

impl RequestTurns {
    /// Allows each key this many requests at once.
    pub fn new(max: usize) -> Self {
        Self { max: max.clamp(1, Semaphore::MAX_PERMITS), by_key: Mutex::default() }
    }

    /// Takes a turn of this key; `None`: all are taken. Requests without a key share the turns of
    /// one key. `right` is the session's, if the request came by one.
    pub fn take(&self, key_id: Option<&str>, right: Option<Right>) -> Option<Turn> {
        let KeyTurns { turns, revoked } = self.of(key_id.unwrap_or_default());
        let permit = turns.try_acquire_owned().ok()?;
        let right = right.unwrap_or(Right { ended: revoked, until: None });
        Some(Turn { _permit: Arc::new(permit), right })
    }

    /// Returns the token that is cancelled when the key with this id is revoked.
    pub fn revoked(&self, key_id: &str) -> CancellationToken {
        self.of(key_id).revoked
    }

    /// Ends the requests of this key, those under way and later ones.
    pub fn end(&self, key_id: &str) {
        self.of(key_id).revoked.cancel();
    }

    fn of(&self, key_id: &str) -> KeyTurns {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = by_key.get(key_id) {
            return there.clone();
        }
        let made = KeyTurns { turns: Arc::new(Semaphore::new(self.max)), revoked: CancellationToken::new() };
        by_key.insert(key_id.to_owned(), made.clone());
        made
    }

    /// Returns the refusal of a request that got no turn.
    pub fn refusal(&self) -> Response {
        let message = format!("{} requests of this key are under way already", self.max);
        let error = Error::new(ErrorKind::Quota, message).with_hint(
            "wait for some to end, or ask whoever runs the server for a larger --max-requests-per-key",
        );
        let mut response = Refusal::from(error).into_response();
        response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS);
        response
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_key_has_its_turns_and_no_more_and_takes_none_of_anothers() {
        let turns = RequestTurns::new(2);
        let (first, second) = (turns.take(Some("a"), None).unwrap(), turns.take(Some("a"), None).unwrap());
        assert!(turns.take(Some("a"), None).is_none());
        let refused = turns.refusal();
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (429, &RETRY_AFTER_SECONDS)
        );
        assert!(turns.take(Some("b"), None).is_some() && turns.take(None, None).is_some());
        let socket = first.clone();
        drop(first);
        assert!(turns.take(Some("a"), None).is_none());
        drop((socket, second));
        assert!(turns.take(Some("a"), None).is_some());
    }

    #[tokio::test]
    async fn what_is_under_way_ends_when_its_key_is_revoked_or_its_session_is_over_and_nothing_elses_does() {
        let turns = RequestTurns::new(8);
        let take = |key, right| turns.take(Some(key), right).unwrap();
        let session = Right { ended: turns.revoked("a").child_token(), until: None };
        let timed = Right { until: Some(Instant::now()), ..Right::default() };
        let (of_key, of_session) = (take("a", None), take("a", Some(session.clone())));
        let goes_on = |turn: Turn| async move { turn.during(std::future::pending::<()>()).await.is_some() };
        assert!(!goes_on(take("a", Some(timed))).await);
        session.ended.cancel();
        assert!(!goes_on(of_session).await);
        assert!(goes_on(of_key.clone()).now_or_never().is_none());
        turns.end("a");
        assert!(!goes_on(of_key).await && !goes_on(take("a", None)).await);
        assert!(goes_on(take("b", None)).now_or_never().is_none());
        assert_eq!(take("b", None).during(async { 1 }).await, Some(1));
    }
}
