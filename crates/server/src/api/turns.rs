//! How many requests of one key are under way at once. One more is refused before anything is done for it, so that whoever
//! asks too much waits, and nobody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use eyot::{Error, ErrorKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Refusal;

/// When to ask again, in seconds.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// The turns of every key.
pub(super) struct Turns {
    max: usize,
    of_keys: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// One request's turn, which is over when all of its clones are dropped. A socket's handler keeps one for as long as the socket.
#[derive(Clone)]
pub(super) struct Turn {
    _permit: Arc<OwnedSemaphorePermit>,
}

impl Turns {
    /// So many of each key.
    pub fn new(max: usize) -> Self {
        Self { max: max.clamp(1, Semaphore::MAX_PERMITS), of_keys: Mutex::default() }
    }

    /// A turn of the key with this id, unless all are taken; all that come without one share theirs.
    pub fn take(&self, key_id: Option<&str>) -> Option<Turn> {
        let key_id = key_id.unwrap_or_default();
        let mut of_keys = self.of_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = match of_keys.get(key_id) {
            Some(turns) => Arc::clone(turns),
            None => {
                let turns = Arc::new(Semaphore::new(self.max));
                of_keys.insert(key_id.to_owned(), Arc::clone(&turns));
                turns
            }
        };
        drop(of_keys);
        let permit = turns.try_acquire_owned().ok()?;
        Some(Turn { _permit: Arc::new(permit) })
    }

    /// What whoever got none is told.
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
    use super::*;

    #[test]
    fn a_key_has_its_turns_and_no_more_and_takes_none_of_anothers() {
        let turns = Turns::new(2);
        let (first, second) = (turns.take(Some("a")).unwrap(), turns.take(Some("a")).unwrap());
        assert!(turns.take(Some("a")).is_none());
        let refused = turns.refusal();
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (429, &RETRY_AFTER_SECONDS)
        );
        assert!(turns.take(Some("b")).is_some() && turns.take(None).is_some());
        let socket = first.clone();
        drop(first);
        assert!(turns.take(Some("a")).is_none());
        drop((socket, second));
        assert!(turns.take(Some("a")).is_some());
    }
}
