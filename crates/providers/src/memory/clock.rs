//! Deadlines that need no caller: a thread that is there while something is due.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

type Action = Box<dyn FnOnce() + Send>;

/// Runs actions at their time. Clones share them.
#[derive(Clone, Default)]
pub(super) struct DeadlineClock {
    shared: Arc<ClockState>,
}

#[derive(Default)]
struct ClockState {
    due: Mutex<Due>,
    changed: Condvar,
}

#[derive(Default)]
struct Due {
    actions: BTreeMap<(Instant, u64), Action>,
    last: u64,
    has_thread: bool,
}

/// An action that is due. It is taken back when this is dropped.
pub(super) struct Scheduled {
    shared: Weak<ClockState>,
    key: (Instant, u64),
}

impl Drop for Scheduled {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let action = shared.lock().actions.remove(&self.key);
        // It may hold the last handle of something whose end schedules or takes back another.
        drop(action);
        shared.changed.notify_one();
    }
}

impl ClockState {
    fn lock(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs what is due until nothing is left.
    fn run(&self) {
        let mut due = self.lock();
        loop {
            let Some(((at, _), _)) = due.actions.first_key_value() else {
                due.has_thread = false;
                return;
            };
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let action = due.actions.pop_first();
                drop(due);
                if let Some((_, action)) = action {
                    action();
                }
                due = self.lock();
            } else {
                let waited = self.changed.wait_timeout(due, left);
                due = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(due, _)| due);
            }
        }
    }
}

impl DeadlineClock {
    /// Runs an action at a time.
    ///
    /// # Errors
    /// The system starts no thread.
    pub(super) fn at(
        &self,
        at: Instant,
        action: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Scheduled> {
        let mut due = self.shared.lock();
        due.last += 1;
        let key = (at, due.last);
        due.actions.insert(key, Box::new(action));
        if !due.has_thread {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("eyot-deadlines".to_owned());
            if let Err(error) = thread.spawn(move || shared.run()) {
                due.actions.remove(&key);
                return Err(error);
            }
            due.has_thread = true;
        }
        drop(due);
        self.shared.changed.notify_one();
        Ok(Scheduled { shared: Arc::downgrade(&self.shared), key })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn actions_run_in_the_order_of_their_times_and_those_taken_back_do_not() {
        let clock = DeadlineClock::default();
        let (done, heard) = mpsc::channel();
        let at = |ms: u64, name: &'static str| {
            let done = done.clone();
            clock.at(Instant::now() + Duration::from_millis(ms), move || done.send(name).unwrap()).unwrap()
        };
        let (later, never, sooner) = (at(60, "later"), at(30, "never"), at(5, "sooner"));
        drop(never);
        let patience = Duration::from_secs(10);
        assert_eq!(heard.recv_timeout(patience), Ok("sooner"));
        assert_eq!(heard.recv_timeout(patience), Ok("later"));
        drop((later, sooner));
        let _again = at(1, "again");
        assert_eq!(heard.recv_timeout(patience), Ok("again"));
    }
}
