//! Mounting an image file through a loop device, without attaching the mount anywhere.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::retry_on_intr;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen,
};

use super::sys;

const FILE_SYSTEM: &str = "ext4";

/// The number of loop devices to try, if other processes take the free ones first.
const ATTEMPTS: usize = 64;

/// Tells whether this process may mount the file system, and the kernel supports it.
pub(super) fn may_mount() -> bool {
    rustix::process::geteuid().is_root() && fsopen(FILE_SYSTEM, FsOpenFlags::FSOPEN_CLOEXEC).is_ok()
}

/// Fails if no loop device can be opened by this process.
pub(super) fn find_loop_device() -> io::Result<()> {
    let path = free_path(&open("/dev/loop-control")?)?;
    // For reading: a device that is closed after writing is looked at by the host's device manager.
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(())
}

/// The longest wait for the kernel to release an image after its last user ended. It does so
/// asynchronously.
const PATIENCE: Duration = Duration::from_secs(20);

/// The access that a mount gives. Of the file system behind it there is one, which can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiskAccess {
    /// Nothing is changed through this mount.
    Read,
    Write,
}

/// The use that others make of an image.
pub(super) enum DiskUse {
    /// It is mounted nowhere, and will not be before this open file is closed.
    Free,
    /// It is mounted elsewhere, too; this is one more mount of the same file system.
    Shared(OwnedFd),
}

/// Takes an image that nobody has mounted. One that somebody has for long, which `is_kept` tells, is mounted once more through the
/// same device: two devices would be two file systems that destroy each other. Any other is being let go of, and is waited for.
///
/// A process that mounts an image locks it. The loop device keeps that open file, and with it the lock, for as long as it exists.
pub(super) fn take(image: &File, is_kept: bool, access: DiskAccess) -> io::Result<DiskUse> {
    if flock(image, FlockOperation::NonBlockingLockExclusive).is_ok() {
        return Ok(DiskUse::Free);
    }
    if is_kept && let Some(mount) = mount_once_more(image, access)? {
        return Ok(DiskUse::Shared(mount));
    }
    wait_until_let_go(image).map(|()| DiskUse::Free)
}

/// Waits until the kernel has released an image, whose lock is then this open file's.
pub(super) fn wait_until_let_go(image: &File) -> io::Result<()> {
    if flock(image, FlockOperation::NonBlockingLockExclusive).is_ok() {
        return Ok(());
    }
    let (tell, told) = std::sync::mpsc::channel();
    let waiting = image.try_clone()?;
    std::thread::Builder::new().spawn(move || {
        let locked = retry_on_intr(|| flock(&waiting, FlockOperation::LockExclusive));
        if tell.send(locked).is_err() {
            tracing::debug!("a disk was let go, too late for whoever waited for it");
        }
    })?;
    match told.recv_timeout(PATIENCE) {
        Ok(locked) => Ok(locked?),
        Err(_) => Err(io::Error::new(io::ErrorKind::ResourceBusy, "its disk is still in use")),
    }
}

/// Mounts the file system in an image once more, through the loop device that it is behind; `None` if it is behind none.
fn mount_once_more(image: &File, access: DiskAccess) -> io::Result<Option<OwnedFd>> {
    let wanted = rustix::fs::fstat(image)?;
    for entry in fs::read_dir("/sys/block")? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with("loop") {
            continue;
        }
        let path = format!("/dev/{name}");
        // For reading, as above. An open device keeps its file.
        let Ok(device) = rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else {
            continue;
        };
        if sys::file_behind(device.as_fd()).is_ok_and(|file| file == (wanted.st_dev, wanted.st_ino)) {
            return mount_device(&path, access).map(Some);
        }
    }
    Ok(None)
}

/// Mounts the file system in an image that is [free](DiskUse::Free). The mount and its loop device disappear with the last
/// descriptor or mount namespace that refers to them.
pub(super) fn mount(image: &File, access: DiskAccess) -> io::Result<OwnedFd> {
    flock(image, FlockOperation::NonBlockingLockExclusive)?;
    // The device is open until it is mounted: until then nothing else holds it.
    let (path, _device) = behind_a_device(image)?;
    mount_device(&path, access)
}

fn mount_device(path: &str, access: DiskAccess) -> io::Result<OwnedFd> {
    let context = fsopen(FILE_SYSTEM, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "source", path)?;
    // What lies here dies with the sandbox, so nobody waits for the host's disk; what is removed inside is given back to
    // it; and unused tables stay holes.
    for option in ["nobarrier", "discard", "noinit_itable"] {
        fsconfig_set_flag(&context, option)?;
    }
    fsconfig_create(&context)?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if access == DiskAccess::Read {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOATIME;
    }
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

fn behind_a_device(image: &File) -> io::Result<(String, OwnedFd)> {
    let control = open("/dev/loop-control")?;
    for _ in 0..ATTEMPTS {
        let path = free_path(&control)?;
        let device = open(&path)?;
        match sys::configure(device.as_fd(), image.as_fd()) {
            Ok(()) => return Ok((path, device)),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

fn open(path: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

fn free_path(control: &OwnedFd) -> io::Result<String> {
    Ok(format!("/dev/loop{}", sys::free_number(control.as_fd())?))
}
