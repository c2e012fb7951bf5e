//! The programs of the guest and the launcher, in sealed memory that can no longer be changed.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};

static LAUNCHER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/eyot-launcher"));

/// Puts the launcher into sealed memory.
pub(crate) fn sealed_launcher() -> io::Result<OwnedFd> {
    sealed("eyot-launcher", LAUNCHER)
}

/// Puts the guest into sealed memory that its own process can't read. The guest's files in `/proc`
/// then belong to the host's root, not to the inner root, so no user inside can change the guest's
/// `oom_score_adj`, say.
pub(crate) fn sealed_guest() -> io::Result<OwnedFd> {
    let guest = sealed("eyot-guest", eyot_guest::PROGRAM)?;
    rustix::fs::fchmod(&guest, Mode::from_raw_mode(0o111))?;
    Ok(guest)
}

/// Puts a program into sealed memory, opened read-only.
pub(crate) fn sealed(name: &str, program: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Where `vm.memfd_noexec` is 1, a program has to be asked for; kernels before 6.3 don't know the flag.
    let memfd = match rustix::fs::memfd_create(name, flags | MemfdFlags::EXEC) {
        Err(rustix::io::Errno::INVAL) => rustix::fs::memfd_create(name, flags)?,
        made => made?,
    };
    let mut file = std::fs::File::from(memfd);
    file.write_all(program)?;
    rustix::fs::fcntl_add_seals(
        &file,
        SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE,
    )?;
    // An open for writing, even one that can't write any more, would make the exec fail with ETXTBSY.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}
