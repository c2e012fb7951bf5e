//! The two timers that end a sandbox: its time to live and its idle timeout. They run in the guest,
//! so they fire with no host process alive. An idle guest is not woken before one of them may have
//! fired.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::activity::Activity;
use super::poll::{Poll, PollToken};
use super::sys::{self, Timer};

/// The deadline that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// The time to live.
    Ttl,
    /// The idle timeout.
    Idle,
}

/// The time to live and the idle timeout.
#[derive(Debug)]
pub struct Deadlines {
    timer: Timer,
    activity: Arc<Activity>,
    ttl_ms: Option<u64>,
    idle_timeout_ms: Option<u64>,
}

impl Deadlines {
    /// Both in milliseconds; without either, nothing is ever set.
    pub fn new(
        poll: &Poll,
        activity: Arc<Activity>,
        ttl_ms: Option<u64>,
        idle_timeout_ms: Option<u64>,
    ) -> io::Result<Self> {
        let deadlines = Self { timer: Timer::new()?, activity, ttl_ms, idle_timeout_ms };
        poll.add_reader(deadlines.timer.fd(), PollToken::Deadline)?;
        if let Some((next, _)) = deadlines.next() {
            deadlines.timer.set(next)?;
        }
        Ok(deadlines)
    }

    /// Others: the sandbox is over this many milliseconds from now, and after so many without
    /// activity.
    pub fn change(&mut self, left_ms: Option<u64>, idle_timeout_ms: Option<u64>) -> io::Result<()> {
        self.ttl_ms = left_ms.map(|left| self.activity.uptime_ms().saturating_add(left));
        self.idle_timeout_ms = idle_timeout_ms;
        // Without either the timer may still fire once, and is then not set again.
        self.next().map_or(Ok(()), |(next, _)| self.timer.set(next))
    }

    /// The timer fired: why the sandbox is over, if it is. `busy`: a call is being served, which is
    /// activity. Otherwise the timer is set anew.
    pub fn have_passed(&self, busy: bool) -> io::Result<Option<Deadline>> {
        if busy {
            self.activity.note();
        }
        let Some((next, which)) = self.next() else { return Ok(None) };
        if sys::time_since_boot() >= next {
            return Ok(Some(which));
        }
        self.timer.set(next).map(|()| None)
    }

    fn next(&self) -> Option<(Duration, Deadline)> {
        let end = self.ttl_ms.map(|ms| (self.activity.after_start(ms), Deadline::Ttl));
        let idle_end = self.idle_timeout_ms.map(|ms| (self.activity.after_last(ms), Deadline::Idle));
        end.into_iter().chain(idle_end).min_by_key(|(at, _)| *at)
    }
}
