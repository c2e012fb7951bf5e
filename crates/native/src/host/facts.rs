//! The facts about the host. They are read from the system at once and are plain data from then on.
//! A test, or a maintainer with a user's report, can replace some of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

use super::cgroup::Cgroups;
use super::container::Container;
use super::state_folder::StateFacts;
use super::{mount_table, peers};

/// The facts about the host, as `eyot doctor --json` shows them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The effective uid of this process.
    pub(super) uid: u32,
    /// The path of this program, by which AppArmor knows it.
    pub(super) program: String,
    /// The machine's architecture, such as `x86_64`.
    pub(super) machine: String,
    /// The kernel's release, such as `6.8.0-45-generic`.
    pub(super) kernel: String,
    /// The text of `/proc/version`.
    pub(super) kernel_version: String,
    /// The container that this process seems to run in.
    pub(super) container: Option<Container>,
    /// The kernel settings that matter, by their names for `sysctl`. Settings that the kernel does
    /// not have are left out.
    pub(super) sysctl: BTreeMap<String, u64>,
    /// The AppArmor profile of this process; `unconfined` is none.
    pub(super) apparmor_profile: Option<String>,
    /// SELinux is in enforcing mode.
    pub(super) selinux_enforcing: bool,
    /// A seccomp filter applies to this process.
    pub(super) seccomp_filtered: bool,
    /// This process has `CAP_SYS_ADMIN` in its user namespace.
    pub(super) admin: bool,
    /// The kernel has user namespaces.
    pub(super) user_namespaces: bool,
    /// The kernel has seccomp filters.
    pub(super) seccomp: bool,
    /// The version of Landlock's ABI; 0 without Landlock.
    pub(super) landlock_abi: u32,
    /// `/proc` is mounted.
    pub(super) proc: bool,
    /// Something is mounted over parts of `/proc`.
    pub(super) proc_masked: bool,
    /// The root directory was changed by `chroot`.
    pub(super) chroot: bool,
    /// This user namespace maps every user id, so ranges can be taken from it.
    pub(super) every_id: bool,
    /// The hard limit of open files of this process; `None` without a limit.
    pub(super) open_files: Option<u64>,
    /// The limit of processes of this user; `None` without a limit.
    pub(super) processes: Option<u64>,
    /// The device files that sandboxes have and this host lacks.
    pub(super) missing_devices: Vec<String>,
    /// The state folder.
    pub(super) state: StateFacts,
    /// Control groups.
    pub(super) cgroups: Cgroups,
    /// The paths of optional programs; `None` for those that are not installed.
    pub(super) peers: BTreeMap<String, Option<String>>,
}

/// The kernel settings that matter.
const SYSCTL: [&str; 6] = [
    "kernel.unprivileged_userns_clone",
    "kernel.apparmor_restrict_unprivileged_userns",
    "user.max_user_namespaces",
    "user.max_mnt_namespaces",
    "fs.inotify.max_user_instances",
    "vm.memfd_noexec",
];

impl Facts {
    /// Reads the facts of the host. `simulated`, a JSON object of the same shape, replaces those
    /// that it names.
    ///
    /// # Errors
    /// If `simulated` has the wrong shape.
    pub(crate) fn gather(
        state: &Path,
        simulated: Option<&serde_json::Value>,
    ) -> Result<Self, serde_json::Error> {
        let real = Self::read(state);
        match simulated {
            None => Ok(real),
            Some(simulated) => {
                let mut facts = serde_json::to_value(real)?;
                merge(&mut facts, simulated);
                serde_json::from_value(facts)
            }
        }
    }

    fn read(state: &Path) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let mountinfo = read("/proc/self/mountinfo");
        let status = read("/proc/self/status");
        let program = std::env::current_exe().unwrap_or_default();
        Self {
            uid,
            program: program.to_string_lossy().into_owned(),
            machine: rustix::system::uname().machine().to_string_lossy().into_owned(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            kernel_version: read("/proc/version"),
            container: Container::detect(mount_table::is_root_on_disk(&mountinfo)),
            sysctl: SYSCTL.iter().filter_map(|name| Some(((*name).to_owned(), sysctl(name)?))).collect(),
            apparmor_profile: fs::read_to_string("/proc/self/attr/current")
                .ok()
                .map(|profile| profile.trim_matches(['\0', '\n']).to_owned()),
            selinux_enforcing: read("/sys/fs/selinux/enforce") == "1",
            seccomp_filtered: field(&status, "Seccomp") == Some("2"),
            admin: capabilities(&status) & CAP_SYS_ADMIN != 0,
            user_namespaces: Path::new("/proc/self/ns/user").exists(),
            seccomp: Path::new("/proc/sys/kernel/seccomp").exists(),
            landlock_abi: crate::sys::landlock_abi(),
            proc: !status.is_empty(),
            proc_masked: mount_table::masks_proc(&mountinfo),
            chroot: mount_table::is_chroot(&mountinfo),
            every_id: has_every_id(&read("/proc/self/uid_map")),
            open_files: getrlimit(Resource::Nofile).maximum,
            processes: getrlimit(Resource::Nproc).current,
            missing_devices: missing_devices(),
            state: StateFacts::gather(state, uid),
            cgroups: Cgroups::default(),
            peers: peers::find(),
        }
    }

    /// Returns a setting of the kernel, if the kernel has it.
    pub(super) fn setting(&self, name: &str) -> Option<u64> {
        self.sysctl.get(name).copied()
    }

    /// Returns the command that starts this kind of container so that sandboxes can be made in it.
    pub(super) fn container_advice(&self) -> Option<String> {
        self.container?.advice(self.uid == 0)
    }
}

const CAP_SYS_ADMIN: u64 = 1 << 21;

fn read(path: &str) -> String {
    fs::read_to_string(path).map(|text| text.trim_end().to_owned()).unwrap_or_default()
}

fn sysctl(name: &str) -> Option<u64> {
    read(&format!("/proc/sys/{}", name.replace('.', "/"))).parse().ok()
}

/// Returns a field of `/proc/self/status`.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(found, _)| *found == name).map(|(_, value)| value.trim())
}

fn capabilities(status: &str) -> u64 {
    field(status, "CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or_default()
}

/// Tells whether a uid map maps all ids in one line, as in the first user namespace.
fn has_every_id(uid_map: &str) -> bool {
    uid_map.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"]
}

fn missing_devices() -> Vec<String> {
    let devices = crate::setup::device_files().map(|name| format!("/{name}"));
    devices.filter(|path| !Path::new(path).exists()).collect()
}

/// Replaces the facts that `simulated` names.
fn merge(found: &mut serde_json::Value, simulated: &serde_json::Value) {
    match (found, simulated) {
        (serde_json::Value::Object(found), serde_json::Value::Object(simulated)) => {
            for (name, value) in simulated {
                merge(found.entry(name.clone()).or_insert(serde_json::Value::Null), value);
            }
        }
        (found, simulated) => *found = simulated.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_replaced_one_by_one_and_unknown_ones_are_refused() {
        let simulated = serde_json::json!({ "uid": 7, "sysctl": { "vm.memfd_noexec": 2 } });
        let facts = Facts::gather(Path::new("/"), Some(&simulated)).unwrap();
        assert_eq!((facts.uid, facts.setting("vm.memfd_noexec")), (7, Some(2)));
        assert!(!facts.kernel.is_empty());
        assert!(Facts::gather(Path::new("/"), Some(&serde_json::json!({ "moon": 1 }))).is_err());
    }

    #[test]
    fn only_the_first_user_namespace_has_every_id() {
        assert!(has_every_id("         0          0 4294967295"));
        assert!(!has_every_id("         0     100000      65536"));
        assert!(!has_every_id(""));
    }

    #[test]
    fn a_field_of_the_status_is_found_by_its_whole_name() {
        let status = "Seccomp_filters:\t1\nSeccomp:\t2\nCapEff:\t0000000000200000\n";
        assert_eq!(field(status, "Seccomp"), Some("2"));
        assert_eq!(capabilities(status), CAP_SYS_ADMIN);
    }
}
