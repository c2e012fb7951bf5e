//! Selects the connections that are closed when there are too many: first those without a request
//! under way, the longest idle one first; then those whose request was not authenticated. A client
//! that opens thousands and asks for nothing, or has no key, closes its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::Extensions;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::holding::HeldValue;

/// The connections of a listener that may be closed to make room.
#[derive(Default)]
pub(super) struct IdleConnections {
    line: Mutex<WaitingLine>,
    /// Notified when a connection becomes one that may be closed.
    news: Notify,
}

/// Those connections, in the order in which they became idle or unauthenticated.
#[derive(Default)]
struct WaitingLine {
    next: u64,
    idle: BTreeMap<u64, CancellationToken>,
    strangers: BTreeMap<u64, CancellationToken>,
}

/// The state of a connection; the number is its place in the line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectionActivity {
    Idle(u64),
    /// A request that has not been authenticated is under way.
    Asked(u64),
    LetIn,
}

/// One connection in the line.
#[derive(Clone)]
pub(super) struct TrackedConnection {
    inner: Arc<Inner>,
}

struct Inner {
    idle: Arc<IdleConnections>,
    end: CancellationToken,
    state: Mutex<ConnectionActivity>,
}

impl IdleConnections {
    /// Adds an idle connection. It is told to end through `end`.
    pub fn enter(self: &Arc<Self>, end: CancellationToken) -> TrackedConnection {
        let inner = Inner { idle: Arc::clone(self), end, state: Mutex::new(ConnectionActivity::LetIn) };
        let member = TrackedConnection { inner: Arc::new(inner) };
        member.inner.change(ConnectionActivity::Idle);
        member
    }

    /// Tells the longest idle connection to end, or else the first unauthenticated one. Returns
    /// whether there was one.
    pub fn shed(&self) -> bool {
        let mut line = lock(&self.line);
        let first = line.idle.pop_first().or_else(|| line.strangers.pop_first());
        first.inspect(|(_, end)| end.cancel()).is_some()
    }

    /// Waits until a connection may be closed. One that became so since the last wait counts.
    pub async fn one_more(&self) {
        self.news.notified().await;
    }
}

impl WaitingLine {
    fn add(
        &mut self,
        state: impl Fn(u64) -> ConnectionActivity,
        end: &CancellationToken,
    ) -> ConnectionActivity {
        self.next += 1;
        let state = state(self.next);
        match state {
            ConnectionActivity::Idle(place) => drop(self.idle.insert(place, end.clone())),
            ConnectionActivity::Asked(place) => drop(self.strangers.insert(place, end.clone())),
            ConnectionActivity::LetIn => {}
        }
        state
    }

    fn remove(&mut self, state: ConnectionActivity) {
        match state {
            ConnectionActivity::Idle(place) => drop(self.idle.remove(&place)),
            ConnectionActivity::Asked(place) => drop(self.strangers.remove(&place)),
            ConnectionActivity::LetIn => {}
        }
    }
}

impl TrackedConnection {
    /// Notes that a request has come. It is under way until the returned value is dropped.
    pub fn begin(&self) -> UnderWay {
        self.inner.change(ConnectionActivity::Asked);
        UnderWay(self.clone())
    }

    /// Tells whether the connection may end at once: no answer is lost that the client has a right
    /// to.
    pub fn may_be_cut(&self, is_stopping: bool) -> bool {
        match *lock(&self.inner.state) {
            ConnectionActivity::Idle(_) => true,
            // Answers that are under way may end when the server stops, to whoever asked.
            ConnectionActivity::Asked(_) => !is_stopping,
            ConnectionActivity::LetIn => false,
        }
    }
}

impl Inner {
    fn change(&self, state: impl Fn(u64) -> ConnectionActivity) {
        let mut now = lock(&self.state);
        let mut line = lock(&self.idle.line);
        line.remove(*now);
        *now = line.add(state, &self.end);
        if *now != ConnectionActivity::LetIn {
            self.idle.news.notify_one();
        }
    }
}

/// Takes the closed connection out of the line.
impl Drop for Inner {
    fn drop(&mut self) {
        lock(&self.idle.line).remove(*lock(&self.state));
    }
}

/// A request's handle on its connection.
#[derive(Clone)]
pub(crate) struct ConnectionHandle(TrackedConnection);

impl ConnectionHandle {
    /// Notes that the request was authenticated. The connection is not closed for another one while
    /// the request is under way.
    pub fn let_in(&self) {
        self.0.inner.change(|_| ConnectionActivity::LetIn);
    }
}

/// Notes on the connection of a request, if it came by one, that the request was authenticated.
pub(crate) fn let_in(request: &Extensions) {
    if let Some(connection_handle) = request.get::<ConnectionHandle>() {
        connection_handle.let_in();
    }
}

/// A request under way. Dropping it makes the connection idle.
pub(super) struct UnderWay(TrackedConnection);

impl UnderWay {
    pub fn connection_handle(&self) -> ConnectionHandle {
        ConnectionHandle(self.0.clone())
    }
}

impl HeldValue for UnderWay {}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.inner.change(ConnectionActivity::Idle);
    }
}

/// Locks a mutex, even a poisoned one: only plain values are moved in and out.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_is_idle_for_longest_is_shed_then_strangers_and_none_that_was_let_in() {
        let idle = Arc::new(IdleConnections::default());
        let ends = [(); 4].map(|()| CancellationToken::new());
        let [first, second, third, fourth] = ends.clone().map(|end| idle.enter(end));
        drop(first.begin());
        let (stranger, busy) = (third.begin(), fourth.begin());
        busy.connection_handle().let_in();
        assert!(first.may_be_cut(true) && third.may_be_cut(false) && !third.may_be_cut(true));
        assert!(!fourth.may_be_cut(false));
        assert!(idle.shed() && ends[1].is_cancelled() && !ends[0].is_cancelled());
        assert!(idle.shed() && ends[0].is_cancelled() && !ends[2].is_cancelled());
        assert!(idle.shed() && ends[2].is_cancelled());
        assert!(!idle.shed());
        drop((busy, stranger));
        drop((first, second));
        assert!(idle.shed() && idle.shed() && ends[3].is_cancelled());
    }

    #[test]
    fn a_connection_that_is_gone_is_nobody_to_shed() {
        let idle = Arc::new(IdleConnections::default());
        drop(idle.enter(CancellationToken::new()));
        assert!(!idle.shed());
    }
}
