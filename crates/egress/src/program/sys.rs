//! The system calls that need unsafe code.

use std::io;

/// Continues in a child whose parent has ended, so that the starter need not wait for it later. The
/// process must have one thread.
pub(super) fn detach_from_parent() -> io::Result<()> {
    // SAFETY: the process has one thread, so the child's copy of the memory is consistent.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(()),
        // SAFETY: ends the process at once; no written data is left to be flushed.
        _ => unsafe { libc::_exit(0) },
    }
}

/// Lays a seccomp filter on this thread and those that it starts, for good. An empty filter is an
/// error.
pub(super) fn confine(packed: &[u64]) -> io::Result<()> {
    let unpack = |word: &u64| libc::sock_filter {
        code: (word >> 48) as u16,
        jt: (word >> 40) as u8,
        jf: (word >> 32) as u8,
        k: *word as u32,
    };
    let mut filter: Vec<libc::sock_filter> = packed.iter().map(unpack).collect();
    let len = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
    // SAFETY: the program points to `len` live instructions, which the kernel checks and copies.
    match unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
