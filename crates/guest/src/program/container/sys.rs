//! System calls by which a container's guest changes to its own user.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::program::sys::{CAPABILITY_VERSION, set_capabilities};

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// No kernel has more capabilities than bits.
const MOST_CAPABILITIES: u32 = 64;

/// Makes this process this user and group, with no other groups. Must be called before there is
/// another thread. `keep`: the capabilities that it keeps, as a mask; those that it does not hold
/// are left out.
pub fn become_user(id: u32, keep: u64) -> io::Result<()> {
    // SAFETY: no memory but the empty list of groups is involved.
    unsafe {
        check(libc::prctl(libc::PR_SET_KEEPCAPS, libc::c_int::from(keep != 0), 0, 0, 0))?;
        check(libc::setgroups(0, std::ptr::null()))?;
        check(libc::setresgid(id, id, id))?;
        check(libc::setresuid(id, id, id))?;
        check(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))?;
    }
    set_capabilities(keep & permitted_capabilities()?)
}

/// The capabilities that this process may use, as a mask.
pub fn permitted_capabilities() -> io::Result<u64> {
    let header = [CAPABILITY_VERSION, 0];
    let mut sets = [0_u32; 6];
    // SAFETY: the pointers are to locals with the kernel's layout that outlive the call.
    check(unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) } as i32)?;
    Ok(u64::from(sets[1]) | u64::from(sets[4]) << 32)
}

/// Takes every capability but these from whatever this process starts, for good.
pub fn bound_capabilities(allowed: u64) -> io::Result<()> {
    for capability in (0..MOST_CAPABILITIES).filter(|capability| allowed >> capability & 1 == 0) {
        // SAFETY: no memory is involved.
        let bounded = unsafe { libc::prctl(libc::PR_CAPBSET_READ, capability, 0, 0, 0) };
        match bounded {
            1 => check(unsafe {
                // SAFETY: no memory is involved.
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0)
            })?,
            0 => {}
            // The kernel has no more of them.
            _ => return Ok(()),
        }
    }
    Ok(())
}

/// A descriptor that is readable once this process is asked to end. The signal must be blocked.
pub fn termination() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is used, and the descriptor is the
    // kernel's newest.
    unsafe {
        let mut wanted: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut wanted);
        libc::sigaddset(&raw mut wanted, libc::SIGTERM);
        let fd = libc::signalfd(-1, &raw const wanted, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Waits until one of the descriptors is readable, at most `patience_ms`. Returns for each whether
/// it is.
pub fn wait_readable<const N: usize>(fds: [RawFd; N], patience_ms: i32) -> io::Result<[bool; N]> {
    let mut watched = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    loop {
        // SAFETY: `watched` is valid for the call and has this many entries.
        let count = unsafe { libc::poll(watched.as_mut_ptr(), N as libc::nfds_t, patience_ms) };
        match check(count) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(watched.map(|watched| watched.revents != 0)),
        }
    }
}

/// Tells whether programs that this process starts can't gain privileges.
pub fn has_no_new_privileges() -> io::Result<bool> {
    // SAFETY: no memory is involved.
    let set = unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) };
    check(set).map(|()| set == 1)
}

/// Tells whether a seccomp filter is in force. A kernel without them has none.
pub fn has_seccomp_filter() -> bool {
    // SAFETY: no memory is involved.
    let mode = unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) };
    mode == libc::SECCOMP_MODE_FILTER as i32
}

/// Tells whether nothing can be written to the mount at this path.
pub fn is_read_only(path: &str) -> io::Result<bool> {
    let path = CString::new(path)?;
    // SAFETY: all zeroes are a value of this plain struct; it and the path are valid for the call.
    let found = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        check(libc::statvfs(path.as_ptr(), &raw mut found))?;
        found
    };
    Ok(found.f_flag & libc::ST_RDONLY != 0)
}

/// The running kernel's release.
pub fn kernel_release() -> io::Result<String> {
    // SAFETY: all zeroes are a value of this plain struct; it is valid for the call, which ends
    // every text with a null byte.
    let release = unsafe {
        let mut names: libc::utsname = std::mem::zeroed();
        check(libc::uname(&raw mut names))?;
        CStr::from_ptr(names.release.as_ptr()).to_owned()
    };
    Ok(release.to_string_lossy().into_owned())
}

/// Gives an open directory an owner.
pub fn change_owner(directory: &impl AsRawFd, uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: no memory is involved; the descriptor is open as long as its owner is borrowed.
    check(unsafe { libc::fchown(directory.as_raw_fd(), uid, gid) })
}
