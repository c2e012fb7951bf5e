//! Connections that have no request under way. When there are too many connections, those are closed, the one first that has
//! been idle for longest: whoever opens thousands and asks for nothing closes their own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The idle connections of a listener.
#[derive(Default)]
pub(super) struct Idle {
    line: Mutex<Line>,
    /// There is one more.
    news: Notify,
}

/// By the order in which they became idle.
#[derive(Default)]
struct Line {
    next: u64,
    waiting: BTreeMap<u64, CancellationToken>,
}

/// One connection: whether it has a request under way, and how it is told to end.
#[derive(Clone)]
pub(super) struct Member {
    inner: Arc<Inner>,
}

struct Inner {
    idle: Arc<Idle>,
    end: CancellationToken,
    /// Its place in the line; `None`: a request is under way.
    place: Mutex<Option<u64>>,
}

impl Idle {
    /// A connection that is idle, and ends when `end` is cancelled.
    pub fn enter(self: &Arc<Self>, end: CancellationToken) -> Member {
        let member =
            Member { inner: Arc::new(Inner { idle: Arc::clone(self), end, place: Mutex::new(None) }) };
        member.rest();
        member
    }

    /// Tells the connection to end that has been idle for longest. Whether there was one.
    pub fn shed(&self) -> bool {
        let longest = lock(&self.line).waiting.pop_first();
        longest.inspect(|(_, end)| end.cancel()).is_some()
    }

    /// Waits until a connection becomes idle. One that did since the last wait counts.
    pub async fn one_more(&self) {
        self.news.notified().await;
    }
}

impl Member {
    /// A request has come. It is under way until what is returned is dropped.
    pub fn begin(&self) -> UnderWay {
        if let Some(place) = lock(&self.inner.place).take() {
            lock(&self.inner.idle.line).waiting.remove(&place);
        }
        UnderWay(self.clone())
    }

    pub fn is_idle(&self) -> bool {
        lock(&self.inner.place).is_some()
    }

    fn rest(&self) {
        let mut place = lock(&self.inner.place);
        let mut line = lock(&self.inner.idle.line);
        line.next += 1;
        let next = line.next;
        line.waiting.insert(next, self.inner.end.clone());
        *place = Some(next);
        self.inner.idle.news.notify_one();
    }
}

/// The connection is gone.
impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(place) = lock(&self.place).take() {
            lock(&self.idle.line).waiting.remove(&place);
        }
    }
}

/// A request under way.
pub(super) struct UnderWay(Member);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.rest();
    }
}

/// Only plain values are moved in and out.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_is_idle_for_longest_is_shed_and_none_with_a_request_is() {
        let idle = Arc::new(Idle::default());
        let ends = [(); 3].map(|()| CancellationToken::new());
        let [first, second, third] = ends.clone().map(|end| idle.enter(end));
        drop(first.begin());
        let busy = third.begin();
        assert!(first.is_idle() && !third.is_idle());
        assert!(idle.shed() && ends[1].is_cancelled() && !ends[0].is_cancelled());
        assert!(idle.shed() && ends[0].is_cancelled());
        assert!(!idle.shed());
        drop(busy);
        drop((first, second));
        assert!(idle.shed() && ends[2].is_cancelled());
    }

    #[test]
    fn a_connection_that_is_gone_is_nobody_to_shed() {
        let idle = Arc::new(Idle::default());
        drop(idle.enter(CancellationToken::new()));
        assert!(!idle.shed());
    }
}
