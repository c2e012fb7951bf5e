//! Device nodes that belong to one sandbox. A node's inode carries locks and notifications, so a
//! bind of the host's `/dev/null` would share them with the host and every other sandbox.
//!
//! Only the launcher can make them, and only as the host's root: on a file system that was mounted
//! in another user namespace the kernel opens no device.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, chmodat, makedev, mkdirat, mknodat};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};

use crate::plan::{ANCHORED_NAME, EMPTY_NAME, OWN_DEVICES};

/// Makes the nodes, and two empty folders, on a file system in memory that is attached nowhere. They
/// belong to the host's root, and everybody may use the nodes. Nobody inside may change the directory that they lie in. Whoever
/// leaves the root of a sandbox with a right to `chroot` finds it.
pub(super) fn make() -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "mode", "0555")?;
    fsconfig_set_string(&context, "size", "4k")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    let mode = Mode::from_raw_mode(0o666);
    for (name, major, minor) in OWN_DEVICES {
        mknodat(&mount, name, FileType::CharacterDevice, mode, makedev(major, minor))?;
        // Whatever the launcher's umask is.
        chmodat(&mount, name, mode, AtFlags::empty())?;
    }
    let closed = Mode::from_raw_mode(0o555);
    for name in [EMPTY_NAME, ANCHORED_NAME] {
        mkdirat(&mount, name, closed)?;
        chmodat(&mount, name, closed, AtFlags::empty())?;
    }
    Ok(mount)
}
