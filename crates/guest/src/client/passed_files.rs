//! The files that a guest has passed and that are in use. A descriptor that is held pins the
//! sandbox's disk, so the connection can take all of them back at once.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::lock;

/// The most passed files in use at a time. When all are taken, files travel as streams.
const MOST_FILES: usize = 32;

/// The passed files of a connection.
#[derive(Debug)]
pub(super) struct PassedFiles {
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_revoked: bool,
    last: u64,
    files: HashMap<u64, Arc<OwnedFd>>,
}

/// The right to use one more file.
pub(super) type FilePlace = OwnedSemaphorePermit;

/// A passed file. It is closed when this is dropped, or when the connection revokes it.
#[derive(Debug)]
pub(super) struct PassedFile {
    files: Arc<PassedFiles>,
    number: u64,
    _place: FilePlace,
}

impl PassedFiles {
    /// No files yet.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { places: Arc::new(Semaphore::new(MOST_FILES)), state: Mutex::default() })
    }

    /// Reserves a place without waiting; `None` if none is free.
    pub(super) fn reserve(&self) -> Option<FilePlace> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Takes in a file. After [`Self::revoke`] it is closed at once.
    pub(super) fn add(self: &Arc<Self>, file: OwnedFd, place: FilePlace) -> PassedFile {
        let mut state = lock(&self.state);
        state.last += 1;
        let number = state.last;
        if !state.is_revoked {
            state.files.insert(number, Arc::new(file));
        }
        PassedFile { files: Arc::clone(self), number, _place: place }
    }

    /// Closes every file, now and later. A read or write that is under way ends first, which takes
    /// one step.
    pub(super) fn revoke(&self) {
        let files = {
            let mut state = lock(&self.state);
            state.is_revoked = true;
            std::mem::take(&mut state.files)
        };
        drop(files);
    }
}

impl PassedFile {
    /// Returns the file for one step; `None` once it is revoked.
    pub(super) fn open(&self) -> Option<Arc<OwnedFd>> {
        lock(&self.files.state).files.get(&self.number).cloned()
    }
}

impl Drop for PassedFile {
    fn drop(&mut self) {
        let file = lock(&self.files.state).files.remove(&self.number);
        drop(file);
    }
}
