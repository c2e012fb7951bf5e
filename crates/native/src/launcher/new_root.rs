//! The child's last steps when it replaces the root of a living sandbox. The sandbox's guest knows nothing of it: the kernel changes
//! the root and the working directory of every process that has the old one. Whoever has a file of the old root open goes on to
//! read it.
//!
//! The child enters the sandbox's mount namespace, whose top is the anchor ([`crate::plan::ANCHOR`]). From there it sees all
//! mounts, whatever root the guest has. Nobody inside can mount anything, but whoever is inside may rename the directories above a
//! mount.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::mount::{MoveMountFlags, UnmountFlags, move_mount, unmount};
use rustix::process::{chroot, fchdir, pivot_root};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::mount_line::MountLine;
use crate::plan::{ANCHORED_NAME, EMPTY_NAME};
use crate::sys;

/// The table of mounts of a sandbox with some dozens of them.
const USUAL_TABLE_BYTES: usize = 16 * 1024;

/// The root of a living sandbox, which nothing can be written to any more, and the one that is to take its place. It is in the
/// launcher's memory, which must own no descriptor of the child's table; they close when the child ends.
pub(super) struct ClosedRoot {
    old: RawFd,
    new: RawFd,
    id: u64,
    points: Vec<MountPoint>,
}

/// Takes the file system that is mounted at `new` along into the mount namespace of a sandbox, and makes the root there read-only.
///
/// # Errors
/// `EBUSY` if a file of the root is open for writing; `EOPNOTSUPP` if another one can't take its place.
pub(super) fn close(new: &str, namespace: BorrowedFd<'_>) -> io::Result<ClosedRoot> {
    let new = sys::take_tree(new, false)?;
    let PresentRoot { mount, id, points } = PresentRoot::enter(namespace)?;
    sys::make_read_only(mount.as_fd())?;
    Ok(ClosedRoot { old: mount.into_raw_fd(), new: new.into_raw_fd(), id, points })
}

impl ClosedRoot {
    /// Puts the new root in its place. The old one ends with this process: its last descriptor closes once the process has left
    /// the launcher's memory. With many files the end of an overlay takes long, and so nobody waits for it.
    pub(super) fn replace(self) -> io::Result<()> {
        let (old, new) = (sys::duplicate(self.old)?, sys::duplicate(self.new)?);
        attach(&new, &folder(&anchored())?)?;
        self.points.iter().try_for_each(|point| carry(point, (&old, self.id), &new))?;
        fchdir(&old)?;
        chroot(".")?;
        fchdir(&new)?;
        // Old and new root being the same stacks the old one on top, and the unmount lets it go.
        pivot_root(".", ".")?;
        Ok(unmount(".", UnmountFlags::DETACH)?)
    }
}

/// The root of a living sandbox, seen from the top of its mount namespace.
struct PresentRoot {
    mount: OwnedFd,
    id: u64,
    points: Vec<MountPoint>,
}

impl PresentRoot {
    /// Enters a mount namespace and looks at the root in it.
    fn enter(namespace: BorrowedFd<'_>) -> io::Result<Self> {
        // The host's: it shows this process, which is in no process namespace of the sandbox.
        let proc = folder("/proc")?;
        // Its top becomes the root and the working directory.
        move_into_link_name_space(namespace, Some(LinkNameSpaceType::Mount))?;
        let how = OFlags::RDONLY | OFlags::CLOEXEC;
        let table = rustix::fs::openat(&proc, "self/mountinfo", how, Mode::empty())?;
        // Room for all of it: the kernel writes a table anew for each read.
        let mut text = Vec::with_capacity(USUAL_TABLE_BYTES);
        std::fs::File::from(table).read_to_end(&mut text)?;
        let unsupported = || io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        let (id, points) = points_of(&text).ok_or_else(unsupported)?;
        let mount = folder(&anchored())?;
        if mount_id(&mount)? == id { Ok(Self { mount, id, points }) } else { Err(unsupported()) }
    }
}

/// A place of the root at which something is mounted.
#[derive(Debug, PartialEq, Eq)]
struct MountPoint {
    /// Relative to the root.
    path: PathBuf,
    /// The number of mounts on top of each other.
    depth: usize,
}

/// Returns the number of the mount that is the sandbox's root, and the places at which something is mounted on it. `None` if another
/// root can't take its place: an older Eyot made the sandbox, so that nothing is above its root, or its file system is mounted
/// elsewhere, too.
fn points_of(table: &[u8]) -> Option<(u64, Vec<MountPoint>)> {
    let lines = table.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mounts: Vec<(MountLine<'_>, PathBuf)> = lines
        .map(|line| MountLine::parse(line).map(|mount| (mount, mount.point())))
        .collect::<Option<_>>()?;
    let (top, _) = mounts.iter().find(|(_, point)| point == Path::new("/"))?;
    let place = PathBuf::from(anchored());
    let (root, _) = mounts.iter().find(|(mount, point)| *point == place && mount.parent == top.id)?;
    let is_whole_overlay = root.kind == b"overlay" && root.part() == Path::new("/");
    let is_elsewhere = mounts.iter().any(|(mount, _)| mount.id != root.id && mount.device == root.device);
    if !is_whole_overlay || is_elsewhere {
        return None;
    }
    let above: HashMap<(u64, &Path), u64> =
        mounts.iter().map(|(mount, point)| ((mount.parent, point.as_path()), mount.id)).collect();
    let on_root = mounts.iter().filter(|(mount, _)| mount.parent == root.id);
    let points = on_root.map(|(mount, point)| {
        let next = |below: &u64| above.get(&(*below, point.as_path())).copied();
        let depth = std::iter::successors(Some(mount.id), next).count();
        Some(MountPoint { path: point.strip_prefix(&place).ok()?.to_owned(), depth })
    });
    Some((root.id, points.collect::<Option<_>>()?))
}

/// Returns the place of the root below the top.
fn anchored() -> String {
    format!("/{ANCHORED_NAME}")
}

const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn folder(path: &str) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, PLACE | OFlags::DIRECTORY, Mode::empty())?)
}

/// Moves what is mounted at a place of the old root to the same place of the new one.
fn carry(point: &MountPoint, (old, id): (&OwnedFd, u64), new: &OwnedFd) -> io::Result<()> {
    if point.depth == 1 {
        // It fails where nothing is mounted.
        return attach(&place(old, &point.path)?, &place(new, &point.path)?);
    }
    // Only what is on top can be moved: so the stack is turned over twice.
    let aside = || folder(&format!("/{EMPTY_NAME}"));
    let top = mount_id(&aside()?)?;
    for _ in 0..point.depth {
        attach(&unless_of(id, place(old, &point.path)?)?, &aside()?)?;
    }
    for _ in 0..point.depth {
        attach(&unless_of(top, aside()?)?, &place(new, &point.path)?)?;
    }
    Ok(())
}

/// Refuses a place of this mount, at which nothing is mounted.
fn unless_of(mount: u64, place: OwnedFd) -> io::Result<OwnedFd> {
    if mount_id(&place)? == mount { Err(io::Error::from_raw_os_error(libc::EINVAL)) } else { Ok(place) }
}

/// Opens a place below a folder. No link is followed.
fn place(below: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "69 28 0:40 / / rw,nosuid - tmpfs none rw,mode=555\n\
        887 884 0:125 / /root/usr ro,nosuid - overlay overlay ro\n\
        884 69 0:121 / /root rw,nosuid - overlay overlay rw,upperdir=upper\n\
        891 884 0:245 / /root/proc rw - proc proc rw\n\
        892 891 0:245 /sys /root/proc/sys ro - proc proc rw\n\
        893 884 0:250 / /root/run rw - tmpfs tmpfs rw\n\
        894 893 0:250 /1 /root/run rw - tmpfs tmpfs rw\n\
        950 884 254:0 /state/w1 /root/work\\040space\\134x rw - ext4 /dev/vda rw\n\
        951 950 254:0 /srv /root/work\\040space\\134x/srv rw - ext4 /dev/vda rw\n";

    #[test]
    fn the_places_on_the_root_are_found_with_what_lies_on_top_of_each_other() {
        let (id, found) = points_of(TABLE.as_bytes()).unwrap();
        let expected = [("usr", 1), ("proc", 1), ("run", 2), ("work space\\x", 1)];
        assert_eq!(found, expected.map(|(path, depth)| MountPoint { path: path.into(), depth }));
        assert_eq!(id, 884);
    }

    #[test]
    fn a_root_that_is_mounted_twice_or_is_the_top_itself_stays() {
        let bound = format!("{TABLE}960 884 0:121 /home/user /root/home/user rw - overlay overlay rw\n");
        let of_old =
            TABLE.replace("69 28 0:40 / / rw,nosuid - tmpfs none rw,mode=555\n", "").replace("/root", "/");
        let part = TABLE.replace("0:121 / /root", "0:121 /part /root");
        for table in [&bound, &of_old, &part, "rubbish", ""] {
            assert_eq!(points_of(table.as_bytes()), None, "{table}");
        }
    }
}
