//! The mark that a store was here: some bytes in its lock file. Without the mark a lost store would
//! look like one that never existed, and its pools and keys would be forgotten silently.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use eyot::{Error, ErrorKind, Result};

use super::Store;

const MARK: &[u8] = b"a store is beside this file\n";
/// The ways to go on without the store.
pub(crate) const WAYS_ON: &str = "put it back from a backup; or begin a new one, without its keys and the names of its sandboxes: eyot pool reconcile --new-store";

/// Notes that there is a store.
pub(super) fn note(lock: &File) {
    let written = lock.metadata().and_then(|metadata| match metadata.len() {
        0 => lock.write_all_at(MARK, 0),
        _ => Ok(()),
    });
    // The store is good without it; the next opening tries again.
    if let Err(error) = written {
        tracing::warn!(%error, "that there is a store could not be noted beside it");
    }
}

/// Refuses to make a store in the place of one that is gone.
pub(super) fn refuse_lost_store(path: &Path, lock: &File) -> Result<()> {
    let was_here = lock.metadata().is_ok_and(|metadata| metadata.len() > 0);
    if was_here && Store::is_missing(path) { Err(lost_store_error("a store was here")) } else { Ok(()) }
}

/// Makes the error of a store that is gone; `sign` says how that shows.
pub(crate) fn lost_store_error(sign: &str) -> Error {
    let message = format!("open the store: `eyot.db` is missing or empty, and {sign}");
    Error::new(ErrorKind::Conflict, message).with_hint(WAYS_ON)
}
