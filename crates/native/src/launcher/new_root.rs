//! The child's last step when it replaces the root of a living sandbox. The sandbox's guest knows nothing of it: the kernel
//! changes the root and the working directory of every process that has the old one. Whoever has a file of the old root open
//! goes on to read it, and nobody can write to it.
//!
//! The child begins in a mount namespace of its own, where the new root was mounted, and enters the sandbox's. There the top is
//! the anchor ([`crate::plan::ANCHOR`]), which no process inside has for its root.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::mount::{MoveMountFlags, UnmountFlags, move_mount, unmount};
use rustix::process::{chroot, fchdir, pivot_root};

use crate::plan::{ANCHORED_NAME, EMPTY_NAME, MountPoint};
use crate::sys;

/// Puts the file system that is mounted at `root` in the place of the root of the sandbox with this mount namespace.
pub(super) fn replace(root: &str, points: &[MountPoint], namespace: BorrowedFd<'_>) -> io::Result<()> {
    let new = sys::take_tree(root, false)?;
    sys::enter_mounts(namespace)?;
    let anchored = format!("/{ANCHORED_NAME}");
    let old = open_anchored(&anchored)?;
    sys::make_read_only(old.as_fd())?;
    attach(&new, &rustix::fs::open(&anchored, FOLDER, Mode::empty())?)?;
    points.iter().try_for_each(|point| carry(point, &old, &new))?;
    fchdir(&old)?;
    chroot(".")?;
    fchdir(&new)?;
    // Old and new root being the same stacks the old one on top, and the unmount lets it go. What is left of it ends with
    // this process: with many files that takes long, and nobody waits for it.
    pivot_root(".", ".")?;
    Ok(unmount(".", UnmountFlags::DETACH)?)
}

const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FOLDER: OFlags = PLACE.union(OFlags::DIRECTORY);

/// Opens the root of the sandbox.
///
/// # Errors
/// `EOPNOTSUPP` if the top of the namespace is no anchor: an older Eyot made the sandbox.
fn open_anchored(path: &str) -> io::Result<OwnedFd> {
    let is_overlay = |found: rustix::fs::StatFs| found.f_type == libc::OVERLAYFS_SUPER_MAGIC;
    if is_overlay(rustix::fs::statfs("/")?) {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    Ok(rustix::fs::open(path, FOLDER, Mode::empty())?)
}

/// Moves what is mounted at a place of the old root to the same place of the new one.
fn carry(point: &MountPoint, old: &OwnedFd, new: &OwnedFd) -> io::Result<()> {
    let own = mount_id(old)?;
    if point.depth == 1 {
        return attach(&mounted_at(old, own, &point.path)?, &place(new, &point.path)?);
    }
    // Only what is on top can be moved: so the stack is turned over twice.
    let aside = || rustix::fs::open(format!("/{EMPTY_NAME}"), FOLDER, Mode::empty());
    let anchor = mount_id(&aside()?)?;
    for _ in 0..point.depth {
        attach(&mounted_at(old, own, &point.path)?, &aside()?)?;
    }
    for _ in 0..point.depth {
        let top = aside()?;
        refuse_mount(&top, anchor)?;
        attach(&top, &place(new, &point.path)?)?;
    }
    Ok(())
}

/// Opens what is mounted on top at a place of the old root.
fn mounted_at(old: &OwnedFd, own: u64, path: &str) -> io::Result<OwnedFd> {
    let found = place(old, path)?;
    refuse_mount(&found, own)?;
    Ok(found)
}

/// Refuses a place of this mount, at which nothing is mounted.
fn refuse_mount(place: &OwnedFd, mount: u64) -> io::Result<()> {
    if mount_id(place)? == mount { Err(io::Error::from_raw_os_error(libc::EINVAL)) } else { Ok(()) }
}

/// Opens a place below a folder. No link is followed.
fn place(below: &OwnedFd, path: &str) -> io::Result<OwnedFd> {
    let how = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS;
    Ok(rustix::fs::openat2(below, path, PLACE, Mode::empty(), how)?)
}

fn mount_id(place: &OwnedFd) -> io::Result<u64> {
    Ok(rustix::fs::statx(place, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?.stx_mnt_id)
}

fn attach(mount: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let how = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", place, "", how)?)
}
