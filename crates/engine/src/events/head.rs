//! The log's knowledge of itself: where it begins, where it ends. A small file that is written
//! after every line, and whose lock is the log's.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::event::EventHash;
use super::segment::{is_at, none_if_missing};

const NAME: &str = "head";
/// The file is always this long, so that one write replaces all of it, and finds room on a disk that is full.
const BYTES: usize = 256;

/// The first and the last event of the log, and the length of its newest segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// The first event that is kept; one more than `seq` if none is.
    pub first_seq: u64,
    /// The last event; 0 if there never was one.
    pub seq: u64,
    /// The hash of the last event.
    pub hash: EventHash,
    /// The first event of the newest segment, whose file may be yet to be made.
    pub segment: u64,
    /// The length of the newest segment, in bytes.
    pub bytes: u64,
}

impl Head {
    /// That of a log without events.
    pub(super) fn empty() -> Self {
        Self { first_seq: 1, seq: 0, hash: EventHash::ZERO, segment: 1, bytes: 0 }
    }

    /// The head in this file; `None` if it holds none.
    pub(super) fn read(file: &File) -> io::Result<Option<Self>> {
        let mut text = [0; BYTES];
        let read = file.read_at(&mut text, 0)?;
        Ok(serde_json::from_slice(&text[..read]).ok())
    }

    /// Replaces the head in this file.
    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.resize(BYTES - 1, b' ');
        text.push(b'\n');
        file.write_all_at(&text, 0)
    }
}

/// The head's file, made if there is none, with its lock, which closing the file gives back. Waits
/// until it is free.
///
/// `opened` is what an earlier call answered: it serves as long as it still is the file of that name.
pub(super) fn lock_to_append(folder: &Path, mut opened: Option<File>) -> io::Result<File> {
    loop {
        let file = match opened.take() {
            Some(file) => file,
            None => open_to_write(folder)?,
        };
        file.lock()?;
        // If somebody has emptied the folder or moved it away, this is the lock of a file that no
        // other process will open.
        if is_at(&file, &folder.join(NAME))? {
            return Ok(file);
        }
    }
}

/// Takes the lock of a head that was open already, unless somebody has it, or the head is another file now.
pub(super) fn try_lock(folder: &Path, file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
        Ok(()) => {}
    }
    if is_at(file, &folder.join(NAME))? { Ok(true) } else { file.unlock().map(|()| false) }
}

fn open_to_write(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(folder.join(NAME))
}

/// The head as it is now, read under the lock; `None` if there is none.
pub(super) fn read_shared(folder: &Path) -> io::Result<Option<Head>> {
    let Some(file) = none_if_missing(File::open(folder.join(NAME)))? else {
        return Ok(None);
    };
    file.lock_shared()?;
    Head::read(&file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_head_fits_and_reads_as_it_was_written() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(Head::read(&file).unwrap(), None);
        let hash = EventHash::new([255; 32]);
        let max = u64::MAX;
        for head in [Head { first_seq: max, seq: max, hash, segment: max, bytes: max }, Head::empty()] {
            head.write(&file).unwrap();
            assert_eq!(Head::read(&file).unwrap(), Some(head));
            assert_eq!(file.metadata().unwrap().len(), BYTES as u64);
        }
    }
}
