//! A call's streams in memory, for the tests of this directory.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::program::call_io::{CallIo, Stopped};
use crate::protocol::{Event, Location, Reply};

/// Records the frames that a call sent, and holds those that it will receive.
#[derive(Default)]
pub struct FakeIo {
    /// The bytes that `receive` gives, then the end.
    pub inbox: VecDeque<Vec<u8>>,
    /// Instead of the end, the call is over.
    pub cut_short: bool,
    /// Every piece that was sent.
    pub sent: Vec<Vec<u8>>,
    /// Every event.
    pub events: Vec<Event>,
    /// The client takes descriptors; otherwise none can be passed.
    pub takes_files: bool,
    /// Every descriptor that was passed.
    pub passed: Vec<OwnedFd>,
    /// The call is over after this many pieces.
    pub stop_after_sends: Option<usize>,
    /// The call is over.
    pub is_stopped: bool,
    /// Steps that run one after the other, each when the call waits and nothing happens. After the
    /// last one the call is over.
    pub steps: VecDeque<Box<dyn FnOnce()>>,
}

impl FakeIo {
    /// Will receive these pieces and then the end.
    pub fn receiving<P: Into<Vec<u8>>>(pieces: impl IntoIterator<Item = P>) -> Self {
        Self { inbox: pieces.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

impl CallIo for FakeIo {
    fn send(&mut self, bytes: &[u8]) -> Result<(), Stopped> {
        if self.is_stopped || self.stop_after_sends == Some(self.sent.len()) {
            return Err(Stopped);
        }
        self.sent.push(bytes.to_vec());
        Ok(())
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>, Stopped> {
        match self.inbox.pop_front() {
            Some(piece) => Ok(Some(piece)),
            None if self.cut_short => Err(Stopped),
            None => Ok(None),
        }
    }

    fn event(&mut self, event: Event) -> Result<(), Stopped> {
        self.events.push(event);
        Ok(())
    }

    fn pass(&mut self, file: BorrowedFd<'_>, event: Event, _: Option<Reply>) -> Result<bool, Stopped> {
        if self.takes_files {
            self.passed.push(file.try_clone_to_owned().expect("a descriptor"));
            self.events.push(event);
        }
        Ok(self.takes_files)
    }

    fn wait(&mut self, fd: BorrowedFd<'_>, until: Option<Instant>) -> Result<bool, Stopped> {
        loop {
            let patience = until.map(|until| until.saturating_duration_since(Instant::now()));
            let patience = Timespec::try_from(patience.unwrap_or_default()).expect("a short time");
            if poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&patience)).expect("a poll") > 0 {
                return Ok(true);
            }
            if until.is_some() {
                return Ok(false);
            }
            self.steps.pop_front().ok_or(Stopped)?();
        }
    }

    fn stopped(&self) -> bool {
        self.is_stopped
    }
}

/// A location in the sandbox's root.
pub fn at(path: impl AsRef<std::path::Path>) -> Location {
    Location { path: path.as_ref().to_str().expect("a path in UTF-8").to_owned(), beneath: None }
}

/// A location that is held beneath a directory.
pub fn beneath(directory: &std::path::Path, path: &str) -> Location {
    let directory = directory.to_str().expect("a path in UTF-8").to_owned();
    let path = if path.is_empty() { directory.clone() } else { format!("{directory}/{path}") };
    Location { path, beneath: Some(directory) }
}
