//! The system call that needs unsafe code.

use std::io;

/// Goes on in a child whose parent has ended: whoever started the program need not wait for it later. The process must
/// have one thread.
pub(super) fn leave_parent() -> io::Result<()> {
    // SAFETY: the process has one thread, so the child's copy of the memory is consistent.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(()),
        // SAFETY: ends the process at once; nothing was written that is still to be flushed.
        _ => unsafe { libc::_exit(0) },
    }
}
