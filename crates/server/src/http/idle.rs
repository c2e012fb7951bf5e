//! Selects the connections that are closed when there are too many: first those without a request
//! under way, the longest idle one first; then those whose request was not authenticated. A client
//! that opens thousands and asks for nothing, or has no key, closes its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::Extensions;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::held::Hold;

/// The connections of a listener that may be closed to make room.
#[derive(Default)]
pub(super) struct Idle {
    line: Mutex<Line>,
    /// Notified when a connection becomes one that may be closed.
    news: Notify,
}

/// Those connections, in the order in which they became idle or unauthenticated.
#[derive(Default)]
struct Line {
    next: u64,
    idle: BTreeMap<u64, CancellationToken>,
    strangers: BTreeMap<u64, CancellationToken>,
}

/// The state of a connection; the number is its place in the line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    Idle(u64),
    /// A request that has not been authenticated is under way.
    Asked(u64),
    LetIn,
}

/// One connection in the line.
#[derive(Clone)]
pub(super) struct Member {
    inner: Arc<Inner>,
}

struct Inner {
    idle: Arc<Idle>,
    end: CancellationToken,
    course: Mutex<Course>,
}

impl Idle {
    /// Adds an idle connection. It is told to end through `end`.
    pub fn enter(self: &Arc<Self>, end: CancellationToken) -> Member {
        let inner = Inner { idle: Arc::clone(self), end, course: Mutex::new(Course::LetIn) };
        let member = Member { inner: Arc::new(inner) };
        member.inner.change(Course::Idle);
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

impl Line {
    fn add(&mut self, course: impl Fn(u64) -> Course, end: &CancellationToken) -> Course {
        self.next += 1;
        let course = course(self.next);
        match course {
            Course::Idle(place) => drop(self.idle.insert(place, end.clone())),
            Course::Asked(place) => drop(self.strangers.insert(place, end.clone())),
            Course::LetIn => {}
        }
        course
    }

    fn remove(&mut self, course: Course) {
        match course {
            Course::Idle(place) => drop(self.idle.remove(&place)),
            Course::Asked(place) => drop(self.strangers.remove(&place)),
            Course::LetIn => {}
        }
    }
}

impl Member {
    /// Notes that a request has come. It is under way until the returned value is dropped.
    pub fn begin(&self) -> UnderWay {
        self.inner.change(Course::Asked);
        UnderWay(self.clone())
    }

    /// Tells whether the connection may end at once: no answer is lost that the client has a right
    /// to.
    pub fn may_be_cut(&self, is_stopping: bool) -> bool {
        match *lock(&self.inner.course) {
            Course::Idle(_) => true,
            // Answers that are under way may end when the server stops, to whoever asked.
            Course::Asked(_) => !is_stopping,
            Course::LetIn => false,
        }
    }
}

impl Inner {
    fn change(&self, course: impl Fn(u64) -> Course) {
        let mut now = lock(&self.course);
        let mut line = lock(&self.idle.line);
        line.remove(*now);
        *now = line.add(course, &self.end);
        if *now != Course::LetIn {
            self.idle.news.notify_one();
        }
    }
}

/// Takes the closed connection out of the line.
impl Drop for Inner {
    fn drop(&mut self) {
        lock(&self.idle.line).remove(*lock(&self.course));
    }
}

/// A request's handle on its connection.
#[derive(Clone)]
pub(crate) struct Knocker(Member);

impl Knocker {
    /// Notes that the request was authenticated. The connection is not closed for another one while
    /// the request is under way.
    pub fn let_in(&self) {
        self.0.inner.change(|_| Course::LetIn);
    }
}

/// Notes on the connection of a request, if it came by one, that the request was authenticated.
pub(crate) fn let_in(request: &Extensions) {
    if let Some(knocker) = request.get::<Knocker>() {
        knocker.let_in();
    }
}

/// A request under way. Dropping it makes the connection idle.
pub(super) struct UnderWay(Member);

impl UnderWay {
    pub fn knocker(&self) -> Knocker {
        Knocker(self.0.clone())
    }
}

impl Hold for UnderWay {}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.inner.change(Course::Idle);
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
        let idle = Arc::new(Idle::default());
        let ends = [(); 4].map(|()| CancellationToken::new());
        let [first, second, third, fourth] = ends.clone().map(|end| idle.enter(end));
        drop(first.begin());
        let (stranger, busy) = (third.begin(), fourth.begin());
        busy.knocker().let_in();
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
        let idle = Arc::new(Idle::default());
        drop(idle.enter(CancellationToken::new()));
        assert!(!idle.shed());
    }
}
