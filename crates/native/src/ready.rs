//! The mark of a completed sandbox. It names the process of the guest, and says whether the sandbox
//! counts as asleep. It is a symbolic link used for its text, which needs no block on the disk and
//! changes as a whole. So a process that is killed leaves either the old or the new mark.
//!
//! | text | meaning |
//! |---|---|
//! | `<pid> <start>` | the sandbox runs with that guest, or did when the guest ended unexpectedly |
//! | `<pid> <start> asleep` | the sandbox sleeps; that guest is being ended, or was made by a wake that is not done |
//! | `<pid> <start> moving` | of an earlier version: as with `asleep` |
//! | `asleep` | the sandbox sleeps and has no guest |
//!
//! A running sandbox with a [change of its files](MOVE) has them moved below its guest by whoever has its lock. If nobody
//! has that, the mover was killed, and the sandbox counts as asleep.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::record::{GuestProcess, Lock};

const READY: &str = "ready";
const READY_IN_THE_MAKING: &str = "ready.new";
const ASLEEP: &str = "asleep";
/// The word of an earlier version for a sandbox whose files it moved.
const MOVING: &str = "moving";

/// The file that says how the files of a sandbox are to be moved ([`crate::files_move`]).
pub(crate) const MOVE: &str = "files-move.json";

/// The content of the mark, and whether files are being moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadyMark {
    pub guest: Option<GuestProcess>,
    pub asleep: bool,
    /// The holder of the sandbox's lock moves its files. Without a holder the sandbox counts as asleep.
    pub moving: bool,
}

impl ReadyMark {
    /// Asleep, without a guest.
    pub(crate) const ASLEEP: Self = Self { guest: None, asleep: true, moving: false };

    /// Awake, with this guest.
    pub(crate) fn running(guest: GuestProcess) -> Self {
        Self { guest: Some(guest), asleep: false, moving: false }
    }

    /// Asleep, with the same guest, which is not to be used.
    pub(crate) fn put_to_sleep(self) -> Self {
        Self { asleep: true, moving: false, ..self }
    }

    /// Tells whether the sandbox in this directory counts as asleep.
    pub(crate) fn is_asleep(self, directory: &Path) -> bool {
        if !self.moving {
            return self.asleep;
        }
        // Whoever moves the files makes the change the record, takes it back, or marks the sandbox as asleep, before the lock is
        // free.
        let Ok(Some(_lock)) = Lock::share_if_free(directory) else { return false };
        Self::read(directory).is_ok_and(|now| now == Some(self))
    }

    /// Marks a sandbox as asleep below whose guest a killed process has moved its files. The caller has just locked it.
    /// Returns whether that was so.
    pub(crate) fn end_move(directory: &Path) -> io::Result<bool> {
        match Self::read(directory) {
            Ok(Some(ready)) if ready.moving => ready.put_to_sleep().change(directory).map(|()| true),
            _ => Ok(false),
        }
    }

    /// Writes the first mark of a sandbox, which completes it.
    pub(crate) fn make(self, directory: &Path) -> io::Result<()> {
        symlink(self.text(), directory.join(READY))
    }

    /// Changes the mark of a completed sandbox. The caller holds its lock.
    pub(crate) fn change(self, directory: &Path) -> io::Result<()> {
        let made = directory.join(READY_IN_THE_MAKING);
        match fs::remove_file(&made) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        symlink(self.text(), &made)?;
        fs::rename(made, directory.join(READY))
    }

    /// Reads the mark of a sandbox; `None` if it was never completed. `InvalidData` or
    /// `InvalidInput` if the file is not a mark.
    pub(crate) fn read(directory: &Path) -> io::Result<Option<Self>> {
        let link = match fs::read_link(directory.join(READY)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let ready = Self::parse(link.to_str().unwrap_or_default()).ok_or(io::ErrorKind::InvalidData)?;
        let moving = !ready.asleep && directory.join(MOVE).try_exists()?;
        Ok(Some(Self { asleep: ready.asleep || moving, moving, ..ready }))
    }

    fn text(self) -> String {
        let guest = self.guest.map(|guest| guest.to_string());
        let state = self.asleep.then(|| ASLEEP.to_owned());
        guest.into_iter().chain(state).collect::<Vec<_>>().join(" ")
    }

    fn parse(text: &str) -> Option<Self> {
        if text == ASLEEP {
            return Some(Self::ASLEEP);
        }
        let without = |state: &str| text.strip_suffix(state).map(str::trim_end);
        let asleep = without(ASLEEP).or_else(|| without(MOVING));
        let guest = GuestProcess::parse(asleep.unwrap_or(text))?;
        Some(Self { guest: Some(guest), asleep: asleep.is_some(), moving: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_changed_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let guest = GuestProcess::of(std::process::id() as i32).unwrap();
        assert_eq!(ReadyMark::read(directory.path()).unwrap(), None);
        ReadyMark::running(guest).make(directory.path()).unwrap();
        assert!(ReadyMark::running(guest).make(directory.path()).is_err());
        let running = ReadyMark::running(guest);
        for ready in [running.put_to_sleep(), ReadyMark::ASLEEP, running] {
            // Somebody was killed in the middle of a change.
            symlink("half", directory.path().join(READY_IN_THE_MAKING)).unwrap();
            ready.change(directory.path()).unwrap();
            assert_eq!(ReadyMark::read(directory.path()).unwrap(), Some(ready));
        }
    }

    #[test]
    fn a_move_counts_as_a_sleep_once_nobody_has_the_lock() {
        let directory = tempfile::tempdir().unwrap();
        ReadyMark::running(GuestProcess::of(std::process::id() as i32).unwrap())
            .make(directory.path())
            .unwrap();
        fs::write(directory.path().join(MOVE), "").unwrap();
        let moving = ReadyMark::read(directory.path()).unwrap().unwrap();
        let lock = Lock::take(directory.path()).unwrap();
        assert!(!moving.is_asleep(directory.path()));
        drop(lock);
        assert!(moving.is_asleep(directory.path()));
        let _lock = Lock::take(directory.path()).unwrap();
        ReadyMark::end_move(directory.path()).unwrap();
        assert!(ReadyMark::read(directory.path()).unwrap().unwrap().is_asleep(directory.path()));
    }
}
