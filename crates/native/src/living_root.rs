//! The root of a sandbox whose guest lives, seen from the host: its namespaces, and what is mounted on it. Nobody inside can mount
//! anything, but whoever is inside may rename the directories above a mount.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::plan::MountPoint;
use crate::record::GuestProcess;

/// The root of a sandbox whose guest lives.
pub(crate) struct LivingRoot {
    users: OwnedFd,
    mounts: OwnedFd,
    /// The places on it at which something is mounted.
    pub points: Vec<MountPoint>,
}

impl LivingRoot {
    /// Looks at the root of this guest; `None` if another root can't take its place, since its file system is mounted at other
    /// places, too.
    pub(crate) fn of(guest: GuestProcess) -> io::Result<Option<Self>> {
        let namespace = |kind: &str| File::open(format!("/proc/{}/ns/{kind}", guest.pid)).map(OwnedFd::from);
        let (users, mounts) = (namespace("user")?, namespace("mnt")?);
        let table = std::fs::read_to_string(format!("/proc/{}/mountinfo", guest.pid))?;
        // Looked at after the opening: it is no later process.
        guest.open()?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(points_of(&table).map(|points| Self { users, mounts, points }))
    }

    /// Returns its user namespace and its mount namespace.
    pub(crate) fn namespaces(&self) -> [BorrowedFd<'_>; 2] {
        [self.users.as_fd(), self.mounts.as_fd()]
    }
}

/// A line of mountinfo.
struct MountLine {
    id: u64,
    parent: u64,
    device: String,
    point: String,
}

impl MountLine {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let (id, parent) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let (device, point) = (fields.next()?.to_owned(), unescaped(fields.nth(1)?)?);
        Some(Self { id, parent, device, point })
    }
}

/// Returns the mount points on the root, relative to it; `None` if the table can't be read, or the root's file system is mounted
/// elsewhere, too.
fn points_of(table: &str) -> Option<Vec<MountPoint>> {
    let lines: Vec<MountLine> = table.lines().map(MountLine::parse).collect::<Option<_>>()?;
    let root = lines.iter().find(|line| line.point == "/")?;
    if lines.iter().any(|line| line.id != root.id && line.device == root.device) {
        return None;
    }
    let above: HashMap<(u64, &str), u64> =
        lines.iter().map(|line| ((line.parent, line.point.as_str()), line.id)).collect();
    let point = |line: &MountLine| {
        let stack =
            std::iter::successors(Some(line.id), |top| above.get(&(*top, line.point.as_str())).copied());
        let depth = u32::try_from(stack.count()).ok()?;
        Some(MountPoint { path: line.point.strip_prefix('/')?.to_owned(), depth })
    };
    lines.iter().filter(|line| line.parent == root.id).map(point).collect()
}

/// Puts the characters back for which the kernel writes a backslash and three octal digits.
fn unescaped(text: &str) -> Option<String> {
    let mut parts = text.split('\\');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(3)?;
        bytes.push(u8::from_str_radix(digits, 8).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "884 709 0:121 / / rw,nosuid - overlay overlay rw,upperdir=upper\n\
        887 884 0:125 / /usr ro,nosuid - overlay overlay ro\n\
        891 884 0:245 / /proc rw - proc proc rw\n\
        892 891 0:245 /sys /proc/sys ro - proc proc rw\n\
        893 884 0:250 / /run rw - tmpfs tmpfs rw\n\
        894 893 0:250 /1 /run rw - tmpfs tmpfs rw\n\
        950 884 254:0 /state/w1 /work\\040space\\134x rw - ext4 /dev/vda rw\n\
        951 950 254:0 /srv /work\\040space\\134x/srv rw - ext4 /dev/vda rw\n";

    #[test]
    fn the_places_on_the_root_are_found_with_what_lies_on_top_of_each_other() {
        let found: Vec<(String, u32)> =
            points_of(TABLE).unwrap().into_iter().map(|point| (point.path, point.depth)).collect();
        let expected = [("usr", 1), ("proc", 1), ("run", 2), ("work space\\x", 1)];
        assert_eq!(found, expected.map(|(path, depth)| (path.to_owned(), depth)));
    }

    #[test]
    fn a_root_that_is_mounted_twice_stays() {
        let bound = format!("{TABLE}960 884 0:121 /home/user /home/user rw - overlay overlay rw\n");
        assert_eq!(points_of(&bound), None);
        assert_eq!(points_of("rubbish"), None);
        assert_eq!(points_of("1 0 0:1 / /a\\9 rw - tmpfs t rw\n"), None);
    }
}
