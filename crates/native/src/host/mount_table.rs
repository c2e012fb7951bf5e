//! Facts from `/proc/self/mountinfo`: whether `/proc` is masked, and whether this process runs in a
//! chroot.

/// Mounts that systems have below `/proc` on directories that are always empty. They hide nothing.
const HARMLESS: [&str; 2] = ["/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd"];

fn mount_points(mountinfo: &str) -> impl Iterator<Item = &str> {
    mountinfo.lines().filter_map(|line| line.split(' ').nth(4))
}

/// Tells whether something is mounted over a part of `/proc`. In that case the kernel refuses a new
/// `/proc` in a new user namespace, because it would show the hidden part.
pub(super) fn masks_proc(mountinfo: &str) -> bool {
    mount_points(mountinfo).any(|point| point.starts_with("/proc/") && !HARMLESS.contains(&point))
}

/// Tells whether the root directory is not the root of a mount, as in a chroot. There the kernel
/// refuses user namespaces.
pub(super) fn is_chroot(mountinfo: &str) -> bool {
    !mountinfo.is_empty() && !mount_points(mountinfo).any(|point| point == "/")
}

/// Tells whether the root directory is on a disk file system, which is rare in containers.
pub(super) fn is_root_on_disk(mountinfo: &str) -> bool {
    let root = mountinfo.lines().rev().find(|line| line.split(' ').nth(4) == Some("/"));
    let file_system =
        root.and_then(|line| line.split_once(" - ")).and_then(|(_, rest)| rest.split(' ').next());
    file_system.is_some_and(|name| ["ext4", "ext3", "xfs", "f2fs"].contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "22 1 254:0 / / rw - ext4 /dev/vda rw\n23 22 0:5 / /proc rw - proc proc rw\n\
                        29 23 0:30 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n";

    #[test]
    fn a_container_that_covers_files_in_proc_is_told_from_a_host_with_binfmt_misc() {
        assert!(!masks_proc(HOST));
        assert!(masks_proc(&format!("{HOST}40 23 0:5 / /proc/kcore rw - tmpfs tmpfs rw\n")));
    }

    #[test]
    fn a_root_that_is_no_mount_is_a_chroot() {
        assert!(!is_chroot(HOST));
        assert!(is_chroot("23 22 0:5 / /proc rw - proc proc rw\n"));
        assert!(!is_chroot(""), "nothing is known");
    }

    #[test]
    fn a_containers_root_is_an_overlay() {
        assert!(is_root_on_disk(HOST));
        assert!(!is_root_on_disk(&HOST.replace("ext4 /dev/vda", "overlay overlay")));
    }
}
