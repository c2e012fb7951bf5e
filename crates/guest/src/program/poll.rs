//! The descriptors that the main thread waits for, each with a name.

use std::io;
use std::os::fd::BorrowedFd;

use super::sys::{Epoll, EpollEvent};

/// The subject of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollToken {
    /// A client connects.
    Listener,
    /// A reaper has something to say.
    Status,
    /// A child has ended.
    Children,
    /// The time to live or the idle time may be over.
    Deadline,
    /// The container is to end.
    Stop,
    /// A connection.
    Connection(u32),
    /// The output of a command: which command, and 0 or 1 for its two streams.
    Output(u32, u8),
    /// The input of a command.
    Input(u32),
    /// A dialled port sends bytes.
    DialRead(u32),
    /// A dialled port takes more bytes.
    DialWrite(u32),
}

impl PollToken {
    fn to_number(self) -> u64 {
        let (kind, id) = match self {
            Self::Listener => (0, 0),
            Self::Status => (1, 0),
            Self::Children => (2, 0),
            Self::Deadline => (3, 0),
            Self::Connection(id) => (4, id),
            Self::Output(id, 0) => (5, id),
            Self::Output(id, _) => (6, id),
            Self::Input(id) => (7, id),
            Self::DialRead(id) => (8, id),
            Self::DialWrite(id) => (9, id),
            Self::Stop => (10, 0),
        };
        kind << 32 | u64::from(id)
    }

    fn from_number(number: u64) -> Self {
        let id = number as u32;
        match number >> 32 {
            0 => Self::Listener,
            1 => Self::Status,
            2 => Self::Children,
            3 => Self::Deadline,
            4 => Self::Connection(id),
            5 => Self::Output(id, 0),
            6 => Self::Output(id, 1),
            7 => Self::Input(id),
            8 => Self::DialRead(id),
            9 => Self::DialWrite(id),
            _ => Self::Stop,
        }
    }
}

/// The operations that a descriptor is ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// Something can be read, or the end.
    pub readable: bool,
    /// Something can be written.
    pub writable: bool,
    /// The other side is gone.
    pub hung_up: bool,
}

/// The descriptors that are watched, level-triggered.
#[derive(Debug)]
pub struct Poll(Epoll);

const EVENTS_AT_ONCE: usize = 64;

impl Poll {
    /// Watches nothing yet.
    pub fn new() -> io::Result<Self> {
        Epoll::new().map(Self)
    }

    /// Begins to watch for something to read. A failure means that the kernel has no room for it.
    pub fn add_reader(&self, fd: BorrowedFd<'_>, token: PollToken) -> io::Result<()> {
        self.0.add(fd, token.to_number(), libc::EPOLLIN)
    }

    /// Begins to watch for room to write.
    pub fn add_writer(&self, fd: BorrowedFd<'_>, token: PollToken) -> io::Result<()> {
        self.0.add(fd, token.to_number(), libc::EPOLLOUT)
    }

    /// Changes the events that a descriptor is watched for.
    pub fn modify(&self, fd: BorrowedFd<'_>, token: PollToken, read: bool, write: bool) -> io::Result<()> {
        let events = if read { libc::EPOLLIN } else { 0 } | if write { libc::EPOLLOUT } else { 0 };
        self.0.modify(fd, token.to_number(), events)
    }

    /// Watches it no longer.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.0.remove(fd)
    }

    /// Waits for events, at most `timeout_ms` (-1: for ever).
    pub fn wait(&self, timeout_ms: i32) -> io::Result<Vec<(PollToken, Readiness)>> {
        let mut events = [EpollEvent { events: 0, u64: 0 }; EVENTS_AT_ONCE];
        let count = self.0.wait(&mut events, timeout_ms)?;
        let decoded = events[..count].iter().map(|event| {
            let has = |flags: i32| event.events & flags as u32 != 0;
            let hung_up = has(libc::EPOLLHUP | libc::EPOLLERR);
            let ready = Readiness { readable: has(libc::EPOLLIN), writable: has(libc::EPOLLOUT), hung_up };
            (PollToken::from_number(event.u64), ready)
        });
        Ok(decoded.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_survives_the_kernel() {
        let some = [
            PollToken::Listener,
            PollToken::Status,
            PollToken::Children,
            PollToken::Deadline,
            PollToken::Connection(7),
        ];
        let more = [
            PollToken::Output(7, 0),
            PollToken::Output(u32::MAX, 1),
            PollToken::Input(1),
            PollToken::DialRead(2),
        ];
        for token in some.into_iter().chain(more).chain([PollToken::DialWrite(3), PollToken::Stop]) {
            assert_eq!(PollToken::from_number(token.to_number()), token);
        }
    }
}
