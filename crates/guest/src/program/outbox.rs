//! The bytes that a connection has still to send. The main thread appends and flushes once per turn
//! of its loop. Workers append and flush at once, so that a file's bytes need no hop through the
//! main thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::poll::{Poll, PollToken};
use super::sys;

/// With so much unsent, commands' pipes are not read and workers wait.
pub const FULL_BYTES: usize = 1 << 20;
/// With so much unsent, not even the client's own frames are read.
const CHOKED_BYTES: usize = 4 << 20;
/// A buffer larger than this is given back once it is empty.
const KEPT_BYTES: usize = 256 * 1024;

/// The bytes that a connection has still to send, and its socket.
#[derive(Debug)]
pub struct Outbox {
    socket: OwnedFd,
    poll: Arc<Poll>,
    token: PollToken,
    unsent: Mutex<PendingBytes>,
    room: Condvar,
    dirty: AtomicBool,
}

#[derive(Debug, Default)]
struct PendingBytes {
    bytes: Vec<u8>,
    sent: usize,
    closed: bool,
    /// The client's frames are not read, whatever is unsent.
    rests: bool,
    /// They are not read now.
    choked: bool,
    watched_for_room: bool,
    main_waits: bool,
    waiting_workers: usize,
}

impl PendingBytes {
    fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    fn take_sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
            self.bytes.shrink_to(KEPT_BYTES);
        } else if self.sent > KEPT_BYTES {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }
}

impl Outbox {
    /// For a socket that `poll` does not watch yet; from now on it watches it for reading.
    pub fn new(socket: OwnedFd, poll: Arc<Poll>, token: PollToken) -> io::Result<Self> {
        poll.add_reader(socket.as_fd(), token)?;
        let (unsent, room, dirty) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
        Ok(Self { socket, poll, token, unsent, room, dirty })
    }

    /// Takes what the client sent; 0 at the end.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        sys::receive(self.socket.as_fd(), buffer)
    }

    /// Main thread: appends; sent at the end of this turn.
    pub fn append(&self, write: impl FnOnce(&mut Vec<u8>)) {
        self.append_lazily(write);
        self.dirty.store(true, Ordering::Relaxed);
    }

    /// Main thread: appends; sent together with whatever follows.
    pub fn append_lazily(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut unsent = self.lock();
        if !unsent.closed {
            write(&mut unsent.bytes);
        }
    }

    /// Main thread: sends what was appended, as far as the socket takes it.
    pub fn flush(&self) {
        if self.dirty.swap(false, Ordering::Relaxed) {
            self.send_pending(&mut self.lock());
        }
    }

    /// Worker thread: appends and sends at once.
    pub fn send(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut unsent = self.lock();
        if !unsent.closed {
            write(&mut unsent.bytes);
            self.send_pending(&mut unsent);
        }
    }

    /// Sends a large frame at once, and copies only the part that the socket does not take. For
    /// worker threads.
    pub fn send_frame(&self, header: &[u8], payload: &[u8]) {
        let mut unsent = self.lock();
        if unsent.closed {
            return;
        }
        let mut sent = 0;
        if unsent.len() == 0 {
            // An error is met, and dealt with, by the attempt to send the rest.
            sent = sys::send_both(self.socket.as_fd(), header, payload).unwrap_or(0);
        }
        let of_header = sent.min(header.len());
        unsent.bytes.extend_from_slice(&header[of_header..]);
        unsent.bytes.extend_from_slice(&payload[sent - of_header..]);
        self.send_pending(&mut unsent);
    }

    /// Sends messages at once, together with a descriptor; `false` if the socket does not take them
    /// now, and then nothing was sent. For worker threads.
    pub fn send_with_descriptor(&self, bytes: &[u8], file: BorrowedFd<'_>) -> bool {
        let mut unsent = self.lock();
        if unsent.len() > 0 {
            self.send_pending(&mut unsent);
        }
        if unsent.closed || unsent.len() > 0 {
            return false;
        }
        // A client that is gone is noticed by whatever is sent instead.
        let Ok(sent) = sys::send_with_descriptor(self.socket.as_fd(), bytes, file) else {
            return false;
        };
        unsent.bytes.extend_from_slice(&bytes[sent..]);
        self.send_pending(&mut unsent);
        true
    }

    /// Worker thread: waits until there is room; `false` once the connection is gone or `stopped`
    /// says so.
    pub fn wait_for_room(&self, stopped: impl Fn() -> bool) -> bool {
        let mut unsent = self.lock();
        while !unsent.closed && !stopped() && unsent.len() > FULL_BYTES {
            unsent.waiting_workers += 1;
            unsent = self.room.wait(unsent).unwrap_or_else(PoisonError::into_inner);
            unsent.waiting_workers -= 1;
        }
        !unsent.closed && !stopped()
    }

    /// Wakes the workers that wait, so that they look again whether they are stopped.
    pub fn wake_workers(&self) {
        drop(self.lock());
        self.room.notify_all();
    }

    /// Main thread: whether too much is unsent. If so, the socket's event comes when there is room
    /// again.
    pub fn is_full(&self) -> bool {
        let mut unsent = self.lock();
        let full = unsent.len() > FULL_BYTES && !unsent.closed;
        if full {
            unsent.main_waits = true;
            self.send_pending(&mut unsent);
        }
        full
    }

    /// Main thread: the socket takes more. Whether those who were told that it is full may go on.
    pub fn on_writable(&self) -> bool {
        let mut unsent = self.lock();
        self.send_pending(&mut unsent);
        let drained = unsent.main_waits && unsent.len() <= FULL_BYTES / 2;
        if drained {
            unsent.main_waits = false;
            self.watch(&mut unsent);
        }
        drained
    }

    /// Main thread: whether the client's frames are left in the socket.
    pub fn rest(&self, rests: bool) {
        let mut unsent = self.lock();
        unsent.rests = rests;
        self.watch(&mut unsent);
    }

    /// At the guest's end: sends the rest, and waits for room if it must.
    pub fn flush_finally(&self, patience: Duration) {
        let give_up = Instant::now() + patience;
        let mut unsent = self.lock();
        self.send_pending(&mut unsent);
        while unsent.len() > 0 && Instant::now() < give_up {
            sys::wait_for_room(self.socket.as_fd(), give_up.saturating_duration_since(Instant::now()));
            self.send_pending(&mut unsent);
        }
    }

    /// Closes the outbox of a connection that is gone: nothing is sent any more, and no worker
    /// waits.
    pub fn close(&self) {
        let mut unsent = self.lock();
        unsent.closed = true;
        unsent.bytes = Vec::new();
        unsent.sent = 0;
        drop(unsent);
        self.room.notify_all();
        // The socket may be closed only when the last worker lets go of it, and must not be heard
        // of until then.
        if let Err(error) = self.poll.remove(self.socket.as_fd()) {
            debug_assert!(false, "unwatching one's own socket: {error}");
        }
        // The peer must hear of it now. It fails if the peer has closed already.
        drop(sys::shut_down(self.socket.as_fd()));
    }

    /// Tells whether [`Outbox::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, PendingBytes> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_pending(&self, unsent: &mut PendingBytes) {
        while unsent.len() > 0 && !unsent.closed {
            match sys::send(self.socket.as_fd(), &unsent.bytes[unsent.sent..]) {
                Ok(count) => unsent.take_sent(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The peer is gone; the reading side finds out and closes.
                Err(_) => unsent.take_sent(unsent.len()),
            }
        }
        // Waking without a waiter would still be a system call.
        if unsent.len() <= FULL_BYTES && unsent.waiting_workers > 0 {
            self.room.notify_all();
        }
        self.watch(unsent);
    }

    fn watch(&self, unsent: &mut PendingBytes) {
        let wants_room = unsent.len() > 0 || unsent.main_waits;
        let most = if unsent.choked { FULL_BYTES } else { CHOKED_BYTES };
        let choked = unsent.rests || unsent.len() > most;
        if (wants_room, choked) == (unsent.watched_for_room, unsent.choked) || unsent.closed {
            return;
        }
        (unsent.watched_for_room, unsent.choked) = (wants_room, choked);
        if let Err(error) = self.poll.modify(self.socket.as_fd(), self.token, !choked, wants_room) {
            debug_assert!(false, "watching one's own socket: {error}");
        }
    }
}
