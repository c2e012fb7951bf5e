//! The commands that make control groups usable on a host without systemd, where an administrator
//! delegates them by hand.

use std::path::{Path, PathBuf};

use super::profile::shell_word;
use crate::cgroup::{self, CgroupCause, CgroupController};

/// Tells whether systemd runs this host, so that its programs can delegate control groups.
pub(super) fn has_systemd() -> bool {
    Path::new("/run/systemd/system").exists()
}

/// The hierarchies of control groups that this process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchies {
    /// Those of v1 that could limit sandboxes: the mount point and the own group of each.
    v1: Vec<(PathBuf, PathBuf)>,
}

impl Hierarchies {
    /// Reads them from the system.
    pub(super) fn read() -> Self {
        Self { v1: cgroup::limiting_v1() }
    }

    /// Returns the command for this cause, or `None` if it has none without systemd.
    pub(super) fn fix(&self, cause: &CgroupCause, uid: u32) -> Option<String> {
        match cause {
            CgroupCause::NotMounted => Some("sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup".to_owned()),
            CgroupCause::NoController { controller, .. } if !self.v1.is_empty() => Some(mount(*controller)),
            CgroupCause::NoScope { .. } => None,
            _ if uid != 0 => Some(self.delegate(uid)),
            CgroupCause::NoController { controller, .. } => {
                Some(format!("echo +{} > /sys/fs/cgroup/cgroup.subtree_control", controller.name()))
            }
            CgroupCause::NotWritable { .. } => Some(self.make_writable()),
            CgroupCause::Occupied { group } => Some(empty(group)),
            CgroupCause::NotDelegated => None,
        }
    }

    /// Gives the user groups of their own, and moves the shell that runs this into them.
    fn delegate(&self, uid: u32) -> String {
        let name = format!("eyot-user-{uid}");
        if self.v1.is_empty() {
            return format!(
                "sudo sh -c 'cd /sys/fs/cgroup && echo \"+cpu +memory +pids\" > cgroup.subtree_control && \
                 mkdir -p {name}/shell && chown -R {uid} {name} && echo $0 > {name}/shell/cgroup.procs' $$  # for this shell; each later one needs it again"
            );
        }
        let groups = words(self.v1.iter().map(|(_, own)| own));
        format!(
            "sudo sh -c 'for group do mkdir -p \"$group/{name}\" && chown -R {uid} \"$group/{name}\" && \
             echo $0 > \"$group/{name}/cgroup.procs\"; done' $$ {groups}  # for this shell; each later one needs it again"
        )
    }

    fn make_writable(&self) -> String {
        if self.v1.is_empty() {
            return "mount -o remount,bind,rw /sys/fs/cgroup".to_owned();
        }
        let mounts = words(self.v1.iter().map(|(mount_point, _)| mount_point));
        format!("for mount in {mounts}; do mount -o remount,bind,rw $mount; done")
    }
}

fn words<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> String {
    paths.map(|path| shell_word(&path.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn mount(controller: CgroupController) -> String {
    let name = controller.name();
    format!(
        "sudo sh -c 'mkdir -p /sys/fs/cgroup/{name} && mount -t cgroup -o {name} cgroup /sys/fs/cgroup/{name}'"
    )
}

/// Moves the processes of a group into a group below it, so that it can pass on controllers.
fn empty(group: &Path) -> String {
    let group = shell_word(&group.to_string_lossy());
    format!("mkdir -p {group}/others && xargs -rn1 < {group}/cgroup.procs > {group}/others/cgroup.procs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn causes() -> Vec<CgroupCause> {
        let group = PathBuf::from("/sys/fs/cgroup/a b");
        let (controller, same) = (CgroupController::Memory, group.clone());
        vec![
            CgroupCause::NotMounted,
            CgroupCause::NotDelegated,
            CgroupCause::NotWritable { group: group.clone() },
            CgroupCause::Occupied { group },
            CgroupCause::NoScope { reason: "refused".to_owned() },
            CgroupCause::NoController { controller, group: same },
        ]
    }

    fn v1() -> Hierarchies {
        let at = |name: &str| (PathBuf::from(name), PathBuf::from(name).join("own"));
        Hierarchies { v1: vec![at("/sys/fs/cgroup/memory"), at("/sys/fs/cgroup/pids")] }
    }

    #[test]
    fn no_command_needs_systemd() {
        for hierarchies in [v1(), Hierarchies { v1: Vec::new() }] {
            for (cause, uid) in causes().iter().flat_map(|cause| [(cause, 0), (cause, 1000)]) {
                let fix = hierarchies.fix(cause, uid).unwrap_or_default();
                for word in ["systemctl", "systemd-run", "loginctl", "Delegate"] {
                    assert!(!fix.contains(word), "{cause:?} of {uid}: {fix}");
                }
            }
        }
    }

    #[test]
    fn a_user_gets_a_group_in_each_hierarchy_below_the_own_one() {
        let fix = v1().fix(&CgroupCause::NotDelegated, 1000).unwrap();
        assert!(
            fix.contains("$$ /sys/fs/cgroup/memory/own /sys/fs/cgroup/pids/own  # for this shell"),
            "{fix}"
        );
        let fix = Hierarchies { v1: Vec::new() }.fix(&CgroupCause::NotDelegated, 1000).unwrap();
        assert!(fix.contains("eyot-user-1000/shell/cgroup.procs"), "{fix}");
    }

    #[test]
    fn a_group_with_a_space_in_its_name_is_one_word() {
        let fix = empty(Path::new("/sys/fs/cgroup/a b"));
        assert!(fix.starts_with("mkdir -p '/sys/fs/cgroup/a b'/others && "), "{fix}");
    }
}
