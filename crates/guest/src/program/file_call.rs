//! A file call's two ends: the main thread feeds it what arrives, a worker takes it and sends.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::activity::Activity;
use super::call_io::{CallIo, Stopped};
use super::outbox::Outbox;
use super::wire;
use crate::protocol::{CHANNEL_MAIN, Event, Failure, Kind, MAX_PAYLOAD_BYTES, Reply, WINDOW};

/// Credit is granted in steps of this many bytes.
const GRANT_BYTES: u32 = WINDOW / 4;

/// A call that a worker serves.
#[derive(Debug)]
pub struct FileCall {
    outbox: Arc<Outbox>,
    call: u32,
    work: ActivityKind,
    state: Mutex<State>,
    changed: Condvar,
}

/// The effect of a call that a worker serves on the sandbox's idle timeout.
#[derive(Debug)]
pub enum ActivityKind {
    /// It is an activity from its beginning to its end.
    Active,
    /// The call waits for changes. Only the events that it sends count as activity.
    Watch(Arc<Activity>),
    /// It asks how the sandbox is, and is no activity at all.
    Silent,
}

#[derive(Debug)]
struct State {
    credit: u64,
    inbox: VecDeque<Vec<u8>>,
    ended: bool,
    stopped: bool,
    done: bool,
    allowance: u32,
    consumed: u32,
    /// Rings when the call is stopped, for a worker that waits for a descriptor.
    bell: Option<Arc<OwnedFd>>,
}

impl FileCall {
    /// A call of that number, answered through that connection.
    pub fn new(outbox: Arc<Outbox>, call: u32, work: ActivityKind) -> Arc<Self> {
        let state = State {
            credit: u64::from(WINDOW),
            inbox: VecDeque::new(),
            ended: false,
            stopped: false,
            done: false,
            allowance: WINDOW,
            consumed: 0,
            bell: None,
        };
        Arc::new(Self { outbox, call, work, state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Main thread: bytes arrived. `false`: more than was granted.
    pub fn feed(&self, bytes: Vec<u8>) -> bool {
        let mut state = self.lock();
        let Some(allowance) = state.allowance.checked_sub(bytes.len() as u32) else {
            return false;
        };
        state.allowance = allowance;
        if !state.ended && !state.stopped && !bytes.is_empty() {
            state.inbox.push_back(bytes);
            self.changed.notify_all();
        }
        true
    }

    /// Main thread: no more bytes come.
    pub fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_all();
    }

    /// Main thread: the client takes this many bytes more.
    pub fn grant(&self, bytes: u32) {
        let mut state = self.lock();
        state.credit = state.credit.saturating_add(u64::from(bytes));
        self.changed.notify_all();
    }

    /// Stops the call for a caller that is gone. For the main thread.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        state.inbox.clear();
        if let Some(bell) = state.bell.take() {
            // It holds a number that has room for one more.
            let rung = rustix::io::write(&bell, &1_u64.to_ne_bytes());
            debug_assert!(rung.is_ok(), "ringing one's own bell: {rung:?}");
        }
        drop(state);
        self.changed.notify_all();
        self.outbox.wake_workers();
    }

    /// Tells whether the answer was given.
    pub fn is_done(&self) -> bool {
        self.lock().done
    }

    /// Tells whether it is being served and counts as activity meanwhile.
    pub fn is_busy(&self) -> bool {
        matches!(self.work, ActivityKind::Active) && !self.is_done()
    }

    /// Tells whether it never counts as activity.
    pub fn is_silent(&self) -> bool {
        matches!(self.work, ActivityKind::Silent)
    }

    /// Tells whether it is a watch that has not ended.
    pub fn is_watch(&self) -> bool {
        matches!(self.work, ActivityKind::Watch(_)) && !self.is_done()
    }

    /// Worker thread: gives the answer.
    pub fn answer(&self, result: &Result<Reply, Failure>) {
        // It went with a descriptor.
        if self.is_done() {
            return;
        }
        self.outbox.wait_for_room(|| false);
        // Done before the client can know: it may begin as many calls as it likes once it has the
        // answer.
        self.lock().done = true;
        self.outbox.send(|out| match result {
            Ok(reply) => wire::push_message(out, Kind::Reply, self.call, reply),
            Err(failure) => wire::push_message(out, Kind::Failure, self.call, failure),
        });
    }

    fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the descriptor that becomes readable when the call is stopped.
    fn bell(&self) -> Result<Arc<OwnedFd>, Stopped> {
        let mut state = self.lock();
        if state.stopped {
            return Err(Stopped);
        }
        if let Some(bell) = &state.bell {
            return Ok(Arc::clone(bell));
        }
        // Without a free descriptor the worker could not learn that the call is over, so the call
        // ends now.
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|_| Stopped)?);
        state.bell = Some(Arc::clone(&bell));
        Ok(bell)
    }

    fn take_credit(&self, bytes: usize) -> Result<(), Stopped> {
        let mut state = self.lock();
        while !state.stopped {
            if let Some(rest) = state.credit.checked_sub(bytes as u64) {
                state.credit = rest;
                return Ok(());
            }
            state = self.wait(state);
        }
        Err(Stopped)
    }

    fn next_piece(&self) -> Result<(Option<Vec<u8>>, Option<u32>), Stopped> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return Err(Stopped);
            }
            if let Some(piece) = state.inbox.pop_front() {
                state.consumed += piece.len() as u32;
                let due = state.consumed >= GRANT_BYTES && !state.ended;
                let grant = due.then(|| std::mem::take(&mut state.consumed));
                state.allowance += grant.unwrap_or(0);
                return Ok((Some(piece), grant));
            }
            if state.ended {
                return Ok((None, None));
            }
            state = self.wait(state);
        }
    }
}

/// The worker's end, as the file code sees it.
pub struct WorkerIo<'a>(pub &'a FileCall);

impl CallIo for WorkerIo<'_> {
    fn send(&mut self, bytes: &[u8]) -> Result<(), Stopped> {
        for piece in bytes.chunks(MAX_PAYLOAD_BYTES) {
            self.0.take_credit(piece.len())?;
            if !self.0.outbox.wait_for_room(|| self.0.is_stopped()) {
                return Err(Stopped);
            }
            let header = wire::data_header(self.0.call, CHANNEL_MAIN, piece.len());
            self.0.outbox.send_frame(&header, piece);
            if let ActivityKind::Watch(activity) = &self.0.work {
                activity.note();
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, Stopped> {
        let (piece, grant) = self.0.next_piece()?;
        if let Some(bytes) = grant {
            self.0.outbox.send(|out| wire::push_credit(out, self.0.call, CHANNEL_MAIN, bytes));
        }
        Ok(piece)
    }

    fn event(&mut self, event: Event) -> Result<(), Stopped> {
        if self.stopped() {
            return Err(Stopped);
        }
        self.0.outbox.send(|out| wire::push_message(out, Kind::Event, self.0.call, &event));
        Ok(())
    }

    fn pass(&mut self, file: BorrowedFd<'_>, event: Event, answer: Option<Reply>) -> Result<bool, Stopped> {
        if self.stopped() {
            return Err(Stopped);
        }
        let mut bytes = Vec::new();
        wire::push_message(&mut bytes, Kind::Event, self.0.call, &event);
        if let Some(reply) = &answer {
            wire::push_message(&mut bytes, Kind::Reply, self.0.call, reply);
        }
        // Done before the client can know, as for any answer.
        self.0.lock().done = answer.is_some();
        let is_passed = self.0.outbox.send_with_descriptor(&bytes, file);
        if !is_passed {
            self.0.lock().done = false;
        }
        Ok(is_passed)
    }

    fn wait(&mut self, fd: BorrowedFd<'_>, until: Option<Instant>) -> Result<bool, Stopped> {
        let bell = self.0.bell()?;
        let mut fds =
            [PollFd::new(&fd, PollFlags::IN), PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN)];
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        // A time that does not fit a timespec is for ever.
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, left.as_ref()) {
            Ok(_) if self.stopped() => Err(Stopped),
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            // An interruption is not an event. The caller checks again.
            Err(_) => Ok(false),
        }
    }

    fn stopped(&self) -> bool {
        self.0.is_stopped() || self.0.outbox.is_closed()
    }
}
