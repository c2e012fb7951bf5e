//! The guest's own user in a container. Commands run as others, root included, so that none of them
//! can signal the guest, read its memory, or reach its sockets: their directory is its alone.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use super::sys;
use crate::program::sys::forbid_dumping;
use crate::protocol::container::{CONTAINER_GUEST_ID, RUN_DIR};

/// Takes the directory of the sockets, then becomes the user, with every capability that the
/// container has.
pub fn become_guest() -> io::Result<()> {
    let directory = open_directory(RUN_DIR)?;
    sys::change_owner(&directory, CONTAINER_GUEST_ID, CONTAINER_GUEST_ID)?;
    sys::become_user(CONTAINER_GUEST_ID, u64::MAX)?;
    // A change of ids can undo it; see `fs.suid_dumpable`.
    forbid_dumping()?;
    directory.set_permissions(Permissions::from_mode(0o700))
}

/// Becomes the user without any capability.
pub fn become_relay() -> io::Result<()> {
    forbid_dumping()?;
    sys::become_user(CONTAINER_GUEST_ID, 0)?;
    forbid_dumping()
}

/// Opens a directory; a link is refused.
pub fn open_directory(path: &str) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(path)
}
