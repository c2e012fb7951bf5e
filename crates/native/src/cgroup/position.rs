//! The position of this process in the host's control groups. It is read from `/proc/self/cgroup`
//! (the group in every hierarchy) and `/proc/self/mountinfo` (the mount point of each hierarchy,
//! and the group at its top).

use std::path::{Path, PathBuf};

use super::CgroupController;
use crate::mount_line::MountLine;

/// The interface of a hierarchy, v1 or v2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CgroupVersion {
    V1,
    V2,
}

/// A mounted hierarchy with the directory of this process's group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub version: CgroupVersion,
    /// The controllers of a v1 hierarchy. Empty for v2, where each group lists its own in
    /// `cgroup.controllers`.
    pub controllers: Vec<String>,
    pub mount_point: PathBuf,
    /// The directory of the process's own group.
    pub own: PathBuf,
}

/// Reads the hierarchies in which this process can see its own group.
pub(super) fn read() -> std::io::Result<Vec<Hierarchy>> {
    of(std::process::id())
}

/// Reads the hierarchies in which this process can see the group of process `pid`.
pub(super) fn of(pid: u32) -> std::io::Result<Vec<Hierarchy>> {
    let cgroup = std::fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let mountinfo = std::fs::read_to_string("/proc/self/mountinfo")?;
    Ok(hierarchies(&cgroup, &mountinfo))
}

/// Lists the v1 hierarchies that could limit sandboxes, each with its mount point and this process's
/// own group.
pub(crate) fn limiting_v1() -> Vec<(PathBuf, PathBuf)> {
    let limits = |at: &Hierarchy| {
        let known = |name: &String| CgroupController::ALL.iter().any(|known| known.name() == name);
        at.version == CgroupVersion::V1 && at.controllers.iter().any(known)
    };
    let found = read().unwrap_or_default().into_iter().filter(limits);
    found.map(|at| (at.mount_point, at.own)).collect()
}

/// Parses the text of the two files. A hierarchy is left out if it is not mounted, or if only a
/// part of it is mounted that does not contain the process's group.
pub(super) fn hierarchies(cgroup: &str, mountinfo: &str) -> Vec<Hierarchy> {
    let mounts: Vec<CgroupMount> = mountinfo.lines().filter_map(CgroupMount::parse).collect();
    let positions = cgroup.lines().filter_map(Position::parse);
    positions.filter_map(|position| position.find(&mounts)).collect()
}

/// One line of `/proc/self/cgroup`.
struct Position<'a> {
    controllers: Vec<&'a str>,
    path: &'a str,
}

impl<'a> Position<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(3, ':');
        let (_number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let controllers = controllers.split(',').filter(|name| !name.is_empty()).collect();
        Some(Self { controllers, path })
    }

    fn find(&self, mounts: &[CgroupMount]) -> Option<Hierarchy> {
        // The last mount at a place hides those before it, and a hierarchy may be mounted at several.
        let (mount, own) = mounts.iter().rev().find_map(|mount| Some((mount, self.within(mount)?)))?;
        let hierarchy = Hierarchy {
            version: mount.version,
            controllers: self.controllers.iter().map(|name| (*name).to_owned()).collect(),
            mount_point: mount.point.clone(),
            own,
        };
        Some(hierarchy)
    }

    fn within(&self, mount: &CgroupMount) -> Option<PathBuf> {
        let same = match mount.version {
            CgroupVersion::V2 => self.controllers.is_empty(),
            CgroupVersion::V1 => {
                self.controllers.iter().any(|name| mount.options.iter().any(|own| own == name))
            }
        };
        let below = Path::new(self.path).strip_prefix(&mount.root).ok().filter(|_| same)?;
        let climbs = below.components().any(|part| part.as_os_str() == "..");
        (!climbs).then(|| mount.point.components().chain(below.components()).collect())
    }
}

/// One line of `/proc/self/mountinfo` that mounts control groups.
struct CgroupMount {
    version: CgroupVersion,
    /// The group that is its top directory.
    root: PathBuf,
    point: PathBuf,
    options: Vec<String>,
}

impl CgroupMount {
    fn parse(line: &str) -> Option<Self> {
        let mount = MountLine::parse(line.as_bytes())?;
        let version = match mount.kind {
            b"cgroup" => CgroupVersion::V1,
            b"cgroup2" => CgroupVersion::V2,
            _ => return None,
        };
        let options = String::from_utf8_lossy(mount.options).split(',').map(str::to_owned).collect();
        Some(Self { version, root: mount.part(), point: mount.point(), options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(cgroup: &str, mountinfo: &str) -> Vec<(CgroupVersion, String, String)> {
        let found = hierarchies(cgroup, mountinfo).into_iter();
        found.map(|at| (at.version, at.controllers.join(","), at.own.to_str().unwrap().to_owned())).collect()
    }

    fn one(version: CgroupVersion, controllers: &str, own: &str) -> (CgroupVersion, String, String) {
        (version, controllers.to_owned(), own.to_owned())
    }

    #[test]
    fn a_login_session_of_a_v2_host_is_found() {
        let mountinfo = "\
            24 30 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:14 - proc proc rw\n\
            34 24 0:29 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let cgroup = "0::/user.slice/user-1000.slice/session-3.scope\n";
        let at = "/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope";
        assert_eq!(own(cgroup, mountinfo), [one(CgroupVersion::V2, "", at)]);
    }

    #[test]
    fn a_v1_host_has_a_hierarchy_for_each_set_of_controllers() {
        let mountinfo = "\
            35 25 0:30 / /sys/fs/cgroup/systemd rw shared:11 - cgroup cgroup rw,xattr,name=systemd\n\
            36 25 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:12 - cgroup cgroup rw,cpu,cpuacct\n\
            37 25 0:32 / /sys/fs/cgroup/memory rw shared:13 - cgroup cgroup rw,memory\n";
        let cgroup = "12:pids:/\n4:cpu,cpuacct:/user.slice\n3:memory:/user.slice/user-0.slice\n\
            1:name=systemd:/user.slice/user-0.slice/session-1.scope\n";
        let expected = [
            one(CgroupVersion::V1, "cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/user.slice"),
            one(CgroupVersion::V1, "memory", "/sys/fs/cgroup/memory/user.slice/user-0.slice"),
            one(
                CgroupVersion::V1,
                "name=systemd",
                "/sys/fs/cgroup/systemd/user.slice/user-0.slice/session-1.scope",
            ),
        ];
        assert_eq!(own(cgroup, mountinfo), expected);
    }

    #[test]
    fn a_hybrid_host_with_a_nested_position_has_both() {
        let mountinfo = "\
            31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
            32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
            33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n\
            35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let cgroup = "4:memory:/process_api/3a52\n2:cpuacct:/\n1:cpu:/\n0::/\n";
        let expected = [
            one(CgroupVersion::V1, "memory", "/sys/fs/cgroup/memory/process_api/3a52"),
            one(CgroupVersion::V1, "cpuacct", "/sys/fs/cgroup/cpuacct"),
            one(CgroupVersion::V1, "cpu", "/sys/fs/cgroup/cpu"),
            one(CgroupVersion::V2, "", "/sys/fs/cgroup/unified"),
        ];
        assert_eq!(own(cgroup, mountinfo), expected);
    }

    #[test]
    fn a_container_that_sees_its_group_by_its_hosts_name_finds_itself_at_the_mount() {
        let mountinfo =
            "713 712 0:34 /docker/5f1e /sys/fs/cgroup/memory ro,nosuid master:17 - cgroup cgroup rw,memory\n";
        let found = own("9:memory:/docker/5f1e\n", mountinfo);
        assert_eq!(found, [one(CgroupVersion::V1, "memory", "/sys/fs/cgroup/memory")]);
        let below = own("9:memory:/docker/5f1e/inner\n", mountinfo);
        assert_eq!(below, [one(CgroupVersion::V1, "memory", "/sys/fs/cgroup/memory/inner")]);
    }

    #[test]
    fn a_container_with_a_namespace_of_its_own_is_at_the_top() {
        let mountinfo = "600 590 0:28 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw\n";
        assert_eq!(own("0::/\n", mountinfo), [one(CgroupVersion::V2, "", "/sys/fs/cgroup")]);
    }

    #[test]
    fn a_position_above_or_beside_what_is_mounted_is_not_found() {
        let mountinfo = "600 590 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert_eq!(own("0::/../../system.slice/x.service\n", mountinfo), []);
        let beside = "713 712 0:34 /docker/5f1e /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        assert_eq!(own("0::/docker/other\n", beside), []);
    }

    #[test]
    fn colons_and_blanks_in_names_are_part_of_them() {
        let mountinfo = "34 24 0:29 / /mnt/my\\040groups rw - cgroup2 cgroup2 rw\n";
        assert_eq!(own("0::/a:b c\n", mountinfo), [one(CgroupVersion::V2, "", "/mnt/my groups/a:b c")]);
    }

    #[test]
    fn nothing_mounted_is_nothing_found() {
        assert_eq!(own("0::/\n", "24 30 0:22 / /proc rw - proc proc rw\n"), []);
        assert_eq!(own("", ""), []);
    }
}
