//! What holds around a container: what the Engine was asked for and says that it can do, and then what the guest reads
//! of the kernel before anybody else runs.

use eyot::{
    DiskEnforcement, Enforcement, Error, ErrorKind, IdentityMap, Isolation, LimitsEnforced, NetworkMode,
    Requirement, Result, SandboxSpec, Security,
};
use eyot_guest::protocol::container::CONTAINER_GUEST_CAPABILITIES;

use super::engine::Facts;

/// What containers of the Engine hold where nothing is dropped.
const ENGINE_DEFAULT: [(&str, u32); 14] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_FOWNER", 3),
    ("CAP_FSETID", 4),
    ("CAP_KILL", 5),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
    ("CAP_SETPCAP", 8),
    ("CAP_NET_BIND_SERVICE", 10),
    ("CAP_NET_RAW", 13),
    ("CAP_SYS_CHROOT", 18),
    ("CAP_MKNOD", 27),
    ("CAP_AUDIT_WRITE", 29),
    ("CAP_SETFCAP", 31),
];
/// The capabilities by which root inside gets at the guest: any user's files (`FOWNER`: the directory of its sockets can be
/// opened to all, and a false guest put there), any user's processes, becoming any user.
const REACH_THE_GUEST: [&str; 5] = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETUID"];

/// The capabilities that root inside holds: the Engine's default less what is dropped.
fn kept(security: &Security) -> impl Iterator<Item = (&'static str, u32)> {
    let dropped: Vec<String> = security.drop_capabilities.iter().map(|name| plain(name)).collect();
    let all = dropped.iter().any(|name| name == "ALL");
    ENGINE_DEFAULT.into_iter().filter(move |(name, _)| !all && !dropped.contains(&plain(name)))
}

fn plain(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    upper.strip_prefix("CAP_").map(str::to_owned).unwrap_or(upper)
}

/// The same as a mask.
pub(crate) fn root_capabilities(security: &Security) -> u64 {
    kept(security).fold(0, |mask, (_, bit)| mask | 1 << bit)
}

/// What the container is given: what root inside holds, and what the guest needs for itself.
pub(crate) fn container_capabilities(security: &Security) -> Vec<String> {
    let mask = root_capabilities(security) | CONTAINER_GUEST_CAPABILITIES;
    let given = ENGINE_DEFAULT.into_iter().filter(|(_, bit)| mask >> bit & 1 == 1);
    given.map(|(name, _)| plain(name)).collect()
}

/// Refuses names of capabilities that are not the kernel's, before they are taken for something that was dropped.
pub(crate) fn check_capabilities(security: &Security) -> Result<()> {
    const OTHERS: [&str; 27] = [
        "ALL",
        "DAC_READ_SEARCH",
        "LINUX_IMMUTABLE",
        "NET_BROADCAST",
        "NET_ADMIN",
        "IPC_LOCK",
        "IPC_OWNER",
        "SYS_MODULE",
        "SYS_RAWIO",
        "SYS_PTRACE",
        "SYS_PACCT",
        "SYS_ADMIN",
        "SYS_BOOT",
        "SYS_NICE",
        "SYS_RESOURCE",
        "SYS_TIME",
        "SYS_TTY_CONFIG",
        "LEASE",
        "AUDIT_CONTROL",
        "MAC_OVERRIDE",
        "MAC_ADMIN",
        "SYSLOG",
        "WAKE_ALARM",
        "BLOCK_SUSPEND",
        "AUDIT_READ",
        "PERFMON",
        "BPF",
    ];
    let is_known = |name: &String| {
        let name = plain(name);
        OTHERS.contains(&name.as_str())
            || name == "CHECKPOINT_RESTORE"
            || ENGINE_DEFAULT.iter().any(|(known, _)| plain(known) == name)
    };
    match security.drop_capabilities.iter().find(|name| !is_known(name)) {
        Some(name) => {
            Err(Error::invalid("security.drop_capabilities", format!("has no capability's name: `{name}`")))
        }
        None => Ok(()),
    }
}

/// What will hold around a container of this spec, as far as the Engine tells.
pub(crate) fn declared(spec: &SandboxSpec, facts: &Facts) -> Isolation {
    let by_group =
        |asked: bool, can: bool| if asked && can { Enforcement::Cgroup } else { Enforcement::None };
    let limits = &spec.limits;
    let limits = LimitsEnforced {
        memory: by_group(limits.memory_mib.is_some(), facts.limits_memory),
        cpus: by_group(limits.cpus.is_some(), facts.limits_cpus),
        pids: by_group(limits.pids.is_some(), facts.limits_pids),
        disk: DiskEnforcement::None,
    };
    let held = [("memory", limits.memory), ("cpu", limits.cpus), ("pids", limits.pids)];
    let controllers = held.into_iter().filter(|(_, held)| *held == Enforcement::Cgroup);
    let kept: Vec<String> = kept(&spec.security).map(|(name, _)| name.to_owned()).collect();
    let maps_users = facts.protections.contains("userns");
    Isolation {
        provider: super::NAME.to_owned(),
        shares_host_kernel: true,
        namespaces: namespaces(spec, facts),
        identity: maps_users.then_some(IdentityMap::Range),
        no_new_privileges: spec.security.no_new_privileges,
        guest_out_of_reach: !REACH_THE_GUEST.iter().any(|name| kept.iter().any(|kept| kept == name)),
        capabilities: kept,
        seccomp: facts.protections.contains("seccomp"),
        seccomp_instructions: None,
        landlock_abi: None,
        network: network(spec.network),
        readonly_rootfs: spec.security.readonly_rootfs,
        cgroup_controllers: controllers.map(|(name, _)| name.to_owned()).collect(),
        limits,
        runtime: Some(spec.container.runtime.clone().unwrap_or_else(|| facts.default_runtime.clone())),
    }
}

/// The network that a container gets: there is no proxy of Eyot's in front of the Engine's.
fn network(asked: NetworkMode) -> NetworkMode {
    match asked {
        NetworkMode::Egress => NetworkMode::Bridge,
        other => other,
    }
}

fn namespaces(spec: &SandboxSpec, facts: &Facts) -> Vec<String> {
    let mut namespaces: Vec<String> = ["mount", "pid", "ipc", "uts"].map(str::to_owned).to_vec();
    if spec.network != NetworkMode::Host {
        namespaces.push("network".to_owned());
    }
    for (protection, namespace) in [("userns", "user"), ("rootless", "user"), ("cgroupns", "cgroup")] {
        if facts.protections.contains(protection) && !namespaces.iter().any(|known| known == namespace) {
            namespaces.push(namespace.to_owned());
        }
    }
    namespaces
}

/// What the guest read of itself in a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// `/proc/1/status`.
    pub status: String,
    /// `/proc/sys/kernel/osrelease`.
    pub kernel: String,
}

impl Observed {
    /// The protections as they are. What the Engine promised and the kernel does not say is not there.
    pub(crate) fn correct(&self, mut isolation: Isolation, facts: &Facts) -> Isolation {
        let line = |name: &str| {
            let found = self.status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.map(str::trim)
        };
        isolation.no_new_privileges = line("NoNewPrivs") == Some("1");
        isolation.seccomp = line("Seccomp") == Some("2");
        let kernel = self.kernel.trim();
        // A runtime with a kernel of its own says so by another release.
        isolation.shares_host_kernel = kernel.is_empty() || kernel == facts.kernel;
        isolation
    }
}

/// Refuses a spec whose requirements would not hold.
pub(crate) fn check_required(spec: &SandboxSpec, isolation: &Isolation) -> Result<()> {
    let limits = &isolation.limits;
    let holds = |requirement: &Requirement| match requirement {
        Requirement::Memory => limits.memory == Enforcement::Cgroup,
        Requirement::Cpus => limits.cpus == Enforcement::Cgroup,
        Requirement::Pids => limits.pids != Enforcement::None,
        Requirement::Disk => limits.disk == DiskEnforcement::Quota,
        Requirement::Landlock => isolation.landlock_abi.is_some(),
        Requirement::Seccomp => isolation.seccomp,
        Requirement::IdentityRange => isolation.identity == Some(IdentityMap::Range),
        Requirement::OwnKernel => !isolation.shares_host_kernel,
    };
    match spec.require.iter().find(|requirement| !holds(requirement)) {
        None => Ok(()),
        Some(missing) => {
            let name = serde_json::to_string(missing).unwrap_or_default();
            let message =
                format!("create sandbox: `require` asks for {name}, which does not hold on this Engine");
            let hint = "a limit must be asked for to be held; `eyot inspect` shows what holds";
            Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use eyot::Limits;

    use super::*;

    fn security(drop: &[&str]) -> Security {
        Security {
            drop_capabilities: drop.iter().map(|name| (*name).to_owned()).collect(),
            ..Security::default()
        }
    }

    fn facts() -> Facts {
        Facts {
            protections: ["seccomp".to_owned()].into(),
            limits_memory: true,
            limits_cpus: true,
            limits_pids: true,
            default_runtime: "runc".into(),
            runtimes: ["runc".to_owned()].into(),
            kernel: "6.1.0".into(),
        }
    }

    #[test]
    fn the_default_drops_everything_and_the_guest_keeps_what_it_needs() {
        assert_eq!(root_capabilities(&Security::default()), 0);
        let given = container_capabilities(&Security::default());
        assert_eq!(given, ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID", "SETPCAP"]);
        assert!(declared(&SandboxSpec::default(), &facts()).guest_out_of_reach);
    }

    #[test]
    fn nothing_dropped_is_the_engines_default_and_one_name_is_that_one_less() {
        assert_eq!(root_capabilities(&security(&[])).count_ones(), 14);
        let less = root_capabilities(&security(&["net_raw", "CAP_MKNOD"]));
        assert_eq!(less, root_capabilities(&security(&[])) & !(1 << 13) & !(1 << 27));
        let spec = SandboxSpec { security: security(&[]), ..SandboxSpec::default() };
        assert!(!declared(&spec, &facts()).guest_out_of_reach);
        assert!(check_capabilities(&security(&["CAP_NONSENSE"])).is_err());
        assert!(check_capabilities(&security(&["sys_admin", "all"])).is_ok());
    }

    #[test]
    fn a_limit_holds_if_it_is_asked_for_and_the_engine_can() {
        let limits = Limits { memory_mib: Some(64), ..Limits::default() };
        let mut spec = SandboxSpec { limits, ..SandboxSpec::default() };
        let isolation = declared(&spec, &facts());
        assert_eq!(isolation.limits.memory, Enforcement::Cgroup);
        assert_eq!(
            (isolation.limits.pids, isolation.cgroup_controllers),
            (Enforcement::None, vec!["memory".to_owned()])
        );
        spec.require = [Requirement::Pids].into();
        let error = check_required(&spec, &declared(&spec, &facts())).unwrap_err();
        assert!(error.to_string().contains("\"pids\""), "{error}");
        let without = Facts { limits_memory: false, ..facts() };
        assert_eq!(declared(&spec, &without).limits.memory, Enforcement::None);
    }

    #[test]
    fn what_the_kernel_does_not_say_is_not_reported() {
        let isolation = declared(&SandboxSpec::default(), &facts());
        assert!(isolation.seccomp && isolation.no_new_privileges && isolation.shares_host_kernel);
        let status = "NoNewPrivs:\t0\nSeccomp:\t0\n".to_owned();
        let found = Observed { status, kernel: "4.4.0\n".into() }.correct(isolation.clone(), &facts());
        assert!(!found.seccomp && !found.no_new_privileges && !found.shares_host_kernel);
        let status = "NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n".to_owned();
        let found = Observed { status, kernel: "6.1.0\n".into() }.correct(isolation.clone(), &facts());
        assert_eq!(found, isolation);
    }

    #[test]
    fn the_network_is_told_as_it_is() {
        let with = |network| declared(&SandboxSpec { network, ..SandboxSpec::default() }, &facts());
        assert_eq!(with(NetworkMode::Egress).network, NetworkMode::Bridge);
        assert!(with(NetworkMode::None).namespaces.contains(&"network".to_owned()));
        assert!(!with(NetworkMode::Host).namespaces.contains(&"network".to_owned()));
    }
}
