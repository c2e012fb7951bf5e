//! The entries of a directory.

use std::os::fd::AsFd;

use rustix::fs::{Dir, DirEntry};
use rustix::io::Errno;

/// Reads the entries of a directory except `.` and `..`.
///
/// # Errors
/// Those of the kernel, also for each entry.
pub fn entries(directory: impl AsFd) -> Result<impl Iterator<Item = Result<DirEntry, Errno>>, Errno> {
    let is_itself = |entry: &DirEntry| matches!(entry.file_name().to_bytes(), b"." | b"..");
    Ok(Dir::read_from(directory)?.filter(move |entry| !entry.as_ref().is_ok_and(is_itself)))
}
