//! The protections of a container. First they are computed from the request and the Engine's
//! abilities; then the guest reads from the kernel what is really in force, before anything else
//! runs.

use eyot::linux_capability::{self, CHOWN, DAC_OVERRIDE, DOCKER_DEFAULT, FOWNER, KILL, SETUID};
use eyot::{
    DiskEnforcement, Enforcement, Error, ErrorKind, IdentityMap, Isolation, LimitsEnforced, NetworkMode,
    Result, SandboxSpec, Security, UserCounts, WorkspaceSpec,
};
use eyot_guest::protocol::Protections;
use eyot_guest::protocol::container::{CONTAINER_GUEST_CAPABILITIES, GUEST_DIR};

use super::engine::EngineFacts;

/// The capabilities by which root inside could attack the guest: access to any user's files (with
/// `FOWNER` it could open the directory of the guest's sockets to all and put a false guest there),
/// to any user's processes, or becoming any user.
const REACH_THE_GUEST: u64 = CHOWN | DAC_OVERRIDE | FOWNER | KILL | SETUID;

/// Returns the mask of the capabilities that root inside holds: the Engine's default without those
/// that the spec drops.
pub(crate) fn root_capabilities(security: &Security) -> u64 {
    DOCKER_DEFAULT & !security.dropped_capabilities()
}

/// Lists the capabilities of the container: those of root inside, and those that the guest needs.
pub(crate) fn container_capabilities(security: &Security) -> Vec<String> {
    let mask = root_capabilities(security) | CONTAINER_GUEST_CAPABILITIES;
    linux_capability::names(mask).map(str::to_owned).collect()
}

/// Predicts the protections of a container of this spec, as far as the Engine tells.
pub(crate) fn declared(spec: &SandboxSpec, facts: &EngineFacts) -> Isolation {
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
    let kept = root_capabilities(&spec.security);
    let maps_users = facts.protections.contains("userns");
    let in_user_namespace = maps_users || facts.protections.contains("rootless");
    Isolation {
        provider: super::NAME.to_owned(),
        shares_host_kernel: true,
        namespaces: namespaces(spec, facts),
        identity: maps_users.then_some(IdentityMap::Range),
        no_new_privileges: spec.security.no_new_privileges,
        guest_out_of_reach: kept & REACH_THE_GUEST == 0,
        shared_files: shared_files(spec, in_user_namespace),
        capabilities: linux_capability::names(kept).map(|name| format!("CAP_{name}")).collect(),
        seccomp: facts.protections.contains("seccomp"),
        seccomp_instructions: None,
        landlock_abi: None,
        network: network(spec.network),
        readonly_rootfs: spec.security.readonly_rootfs,
        cgroup_controllers: controllers.map(|(name, _)| name.to_owned()).collect(),
        limits,
        runtime: Some(spec.container.runtime.clone().unwrap_or_else(|| facts.default_runtime.clone())),
        // All containers of an Engine have the same ids on its host, with user namespaces as well.
        user_counts: Some(UserCounts::Shared),
    }
}

/// Lists the paths that a container shares with others. The guest's program is one volume for all
/// containers of an Engine, and a persistent workspace is a volume that others may use. In a user
/// namespace no device node can be made, so runtimes bind the host's.
fn shared_files(spec: &SandboxSpec, in_user_namespace: bool) -> Vec<String> {
    let workdir = spec.workdir.as_ref().map(ToString::to_string);
    let workspace = workdir.filter(|_| spec.workspace != WorkspaceSpec::Ephemeral);
    let devices = DEVICES.iter().filter(|_| in_user_namespace).map(|path| (*path).to_owned());
    [GUEST_DIR.to_owned()].into_iter().chain(workspace).chain(devices).collect()
}

/// The device nodes of every container.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Returns the network that a container gets. Eyot has no proxy in front of the Engine's network.
fn network(asked: NetworkMode) -> NetworkMode {
    match asked {
        NetworkMode::Egress => NetworkMode::Bridge,
        other => other,
    }
}

fn namespaces(spec: &SandboxSpec, facts: &EngineFacts) -> Vec<String> {
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

/// Reports the protections that the guest found in force. Fails unless all that the spec asks for
/// and requires are among them.
pub(crate) fn found(
    spec: &SandboxSpec,
    facts: &EngineFacts,
    protections: Option<&Protections>,
) -> Result<Isolation> {
    let silent = || {
        Error::new(
            ErrorKind::Setup,
            "the sandbox's guest does not say what protects it: it is not of this Eyot",
        )
    };
    let protections = protections.ok_or_else(silent)?;
    let asked = [
        ("no_new_privileges", spec.security.no_new_privileges, protections.no_new_privileges),
        ("readonly_rootfs", spec.security.readonly_rootfs, protections.readonly_rootfs),
    ];
    if let Some((name, ..)) = asked.into_iter().find(|(_, is_asked, holds)| *is_asked && !holds) {
        let message = format!("`security.{name}` was asked of the Engine and does not hold in the container");
        let hint =
            "the Engine's runtime does not hold it (`docker info` names the runtimes): ask for another one";
        return Err(Error::new(ErrorKind::Setup, message).with_hint(hint));
    }
    // A runtime with a kernel of its own says so by another release.
    let shares_host_kernel = facts.kernel.is_empty() || protections.kernel_release == facts.kernel;
    let isolation = Isolation {
        no_new_privileges: protections.no_new_privileges,
        readonly_rootfs: protections.readonly_rootfs,
        seccomp: protections.seccomp,
        shares_host_kernel,
        user_counts: Some(if shares_host_kernel { UserCounts::Shared } else { UserCounts::Own }),
        ..declared(spec, facts)
    };
    check_required(spec, &isolation)?;
    Ok(isolation)
}

/// Refuses a spec whose requirements would not be met.
pub(crate) fn check_required(spec: &SandboxSpec, isolation: &Isolation) -> Result<()> {
    match spec.require.iter().find(|requirement| !isolation.holds(**requirement)) {
        None => Ok(()),
        Some(missing) => {
            let name = serde_json::to_string(missing).unwrap_or_default();
            let message = format!("`require` asks for {name}, which does not hold on this Engine");
            let hint = "a limit must be asked for to be held; `eyot inspect` shows what holds";
            Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use eyot::{Limits, Requirement};

    use super::*;

    fn security(drop: &[&str]) -> Security {
        Security {
            drop_capabilities: drop.iter().map(|name| (*name).to_owned()).collect(),
            ..Security::default()
        }
    }

    fn facts() -> EngineFacts {
        EngineFacts {
            protections: ["seccomp".to_owned()].into(),
            limits_memory: true,
            limits_cpus: true,
            limits_pids: true,
            default_runtime: "runc".into(),
            runtimes: ["runc".to_owned()].into(),
            kernel: "6.1.0".into(),
            processors: 2,
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
        let without = EngineFacts { limits_memory: false, ..facts() };
        assert_eq!(declared(&spec, &without).limits.memory, Enforcement::None);
    }

    fn protections() -> Protections {
        Protections {
            no_new_privileges: true,
            seccomp: true,
            readonly_rootfs: false,
            kernel_release: "6.1.0".into(),
        }
    }

    #[test]
    fn what_the_guest_does_not_find_is_not_reported() {
        let spec = SandboxSpec::default();
        let isolation = found(&spec, &facts(), Some(&protections())).unwrap();
        assert_eq!(isolation, declared(&spec, &facts()));
        let less = Protections { seccomp: false, kernel_release: "4.4.0".into(), ..protections() };
        let isolation = found(&spec, &facts(), Some(&less)).unwrap();
        assert!(!isolation.seccomp && !isolation.shares_host_kernel);
    }

    #[test]
    fn what_was_asked_for_and_does_not_hold_is_refused() {
        let less = Protections { no_new_privileges: false, ..protections() };
        let readonly = Security { readonly_rootfs: true, ..Security::default() };
        let readonly = SandboxSpec { security: readonly, ..SandboxSpec::default() };
        let filtered = SandboxSpec { require: [Requirement::Seccomp].into(), ..SandboxSpec::default() };
        let unfiltered = Protections { seccomp: false, ..protections() };
        for (spec, protections, named) in [
            (SandboxSpec::default(), Some(less.clone()), "no_new_privileges"),
            (readonly, Some(protections()), "readonly_rootfs"),
            (filtered, Some(unfiltered), "seccomp"),
            (SandboxSpec::default(), None, "what protects it"),
        ] {
            let error = found(&spec, &facts(), protections.as_ref()).unwrap_err();
            assert!(error.to_string().contains(named), "{error}");
        }
        let loose = Security { no_new_privileges: false, ..Security::default() };
        let spec = SandboxSpec { security: loose, ..SandboxSpec::default() };
        assert!(!found(&spec, &facts(), Some(&less)).unwrap().no_new_privileges);
    }

    #[test]
    fn the_network_is_told_as_it_is() {
        let with = |network| declared(&SandboxSpec { network, ..SandboxSpec::default() }, &facts());
        assert_eq!(with(NetworkMode::Egress).network, NetworkMode::Bridge);
        assert!(with(NetworkMode::None).namespaces.contains(&"network".to_owned()));
        assert!(!with(NetworkMode::Host).namespaces.contains(&"network".to_owned()));
    }
}
