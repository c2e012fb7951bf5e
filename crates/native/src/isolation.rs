//! The protections in force around a sandbox, read off the plan that was carried out. A step that
//! failed would have ended the create, so every step of the plan is in force.

use eyot::{
    DiskEnforcement, Enforcement, Error, ErrorKind, IdentityMap, Isolation, LimitsEnforced, NetworkMode,
    Requirement, Result, UserCounts, ValidSpec, linux_capability,
};

use crate::cgroup::{CgroupController, CgroupSupport};
use crate::disk::Disks;
use crate::host::fix_of_groups;
use crate::plan::{IdMap, Plan, ROOT, Step};
use crate::setup::RANGE_CAPABILITIES;

/// Reports the protections of a plan.
pub(crate) fn of_plan(plan: &Plan, spec: &ValidSpec, groups: &CgroupSupport) -> Isolation {
    let mut namespaces: Vec<String> =
        ["user", "mount", "pid", "ipc", "uts", "cgroup"].map(str::to_owned).to_vec();
    if plan.own_network {
        namespaces.push("network".to_owned());
    }
    let find = |wanted: &dyn Fn(&Step) -> Option<u32>| plan.steps.iter().find_map(wanted);
    let seccomp = |step: &Step| match step {
        Step::Seccomp(filter) => u32::try_from(filter.len()).ok(),
        _ => None,
    };
    let landlock = |step: &Step| match step {
        Step::Landlock(abi) => Some(*abi),
        _ => None,
    };
    let by_group = |controller| if groups.has(controller) { Enforcement::Cgroup } else { Enforcement::None };
    // A range has users enough to walk around a limit that counts by user, but one user of the host pays for all of them.
    let pids = if groups.has(CgroupController::Pids) { Enforcement::Cgroup } else { Enforcement::Rlimit };
    let range = matches!(plan.map, IdMap::Range(_));
    let held = linux_capability::names(if range { RANGE_CAPABILITIES } else { 0 });
    Isolation {
        namespaces,
        identity: Some(if range { IdentityMap::Range } else { IdentityMap::Single }),
        no_new_privileges: plan.steps.contains(&Step::NoNewPrivileges),
        capabilities: held.map(|name| format!("CAP_{name}")).collect(),
        seccomp: find(&seccomp).is_some(),
        seccomp_instructions: find(&seccomp),
        landlock_abi: find(&landlock),
        network: spec.spec().network,
        readonly_rootfs: plan.steps.contains(&Step::ReadOnlyRoot),
        cgroup_controllers: groups
            .controllers
            .iter()
            .map(|controller| controller.name().to_owned())
            .collect(),
        limits: LimitsEnforced {
            memory: by_group(CgroupController::Memory),
            cpus: by_group(CgroupController::Cpu),
            pids,
            disk: if plan.steps.contains(&Step::AttachDisk) {
                DiskEnforcement::Quota
            } else {
                DiskEnforcement::None
            },
        },
        shared_files: shared_files(plan),
        user_counts: Some(user_counts(plan)),
        ..unknown()
    }
}

/// Tells whose user counts the kernel charges. A range has an account, a host user of its own; a
/// single mapped user is charged as the host user that it is.
fn user_counts(plan: &Plan) -> UserCounts {
    match plan.map {
        IdMap::Range(_) => UserCounts::Own,
        IdMap::Single { .. } => UserCounts::Shared,
    }
}

/// Lists the targets of binds of host files: mounts, a persistent workspace, and the host's device
/// nodes if the sandbox has none of its own.
fn shared_files(plan: &Plan) -> Vec<String> {
    let own_devices = plan.steps.contains(&Step::OwnDevices);
    let target = |step: &Step| match step {
        Step::Bind(bind) if bind.source.starts_with('/') && !(bind.device && own_devices) => {
            bind.target.strip_prefix(ROOT).map(str::to_owned)
        }
        _ => None,
    };
    plan.steps.iter().filter_map(target).collect()
}

const NO_LIMITS: LimitsEnforced = LimitsEnforced {
    memory: Enforcement::None,
    cpus: Enforcement::None,
    pids: Enforcement::None,
    disk: DiskEnforcement::None,
};

/// The report of a sandbox before anything is in force.
pub(crate) fn unknown() -> Isolation {
    Isolation {
        provider: crate::NAME.to_owned(),
        shares_host_kernel: true,
        namespaces: Vec::new(),
        identity: None,
        no_new_privileges: false,
        capabilities: Vec::new(),
        seccomp: false,
        seccomp_instructions: None,
        landlock_abi: None,
        network: NetworkMode::None,
        readonly_rootfs: false,
        cgroup_controllers: Vec::new(),
        limits: NO_LIMITS,
        runtime: None,
        guest_out_of_reach: true,
        shared_files: Vec::new(),
        user_counts: None,
    }
}

/// Refuses a spec whose requirements would not be met.
pub(crate) fn check_required(
    spec: &ValidSpec,
    isolation: &Isolation,
    groups: &CgroupSupport,
    disks: &Disks,
) -> Result<()> {
    match spec.spec().require.iter().find(|requirement| !isolation.holds(**requirement)) {
        None => Ok(()),
        Some(missing) => {
            let name = serde_json::to_string(missing).unwrap_or_default();
            if *missing == Requirement::Disk && spec.spec().limits.disk_mib.is_none() {
                return Err(no_disk_limit());
            }
            let cause = match missing {
                Requirement::Memory | Requirement::Cpus | Requirement::Pids => {
                    groups.cause.as_ref().map(ToString::to_string)
                }
                Requirement::Disk => disks.check().err(),
                _ => None,
            };
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            let message =
                format!("create sandbox: `require` asks for {name}, which this host can't enforce{cause}");
            Err(Error::new(ErrorKind::Unsupported, message).with_hint(way_to_hold(*missing, groups)))
        }
    }
}

fn no_disk_limit() -> Error {
    let message =
        "create sandbox: `require` asks for \"disk\", and `limits.disk_mib` sets no limit that could be held";
    Error::new(ErrorKind::Unsupported, message).with_hint("add a limit (`--disk SIZE`)")
}

/// Says how this host can hold a requirement: by the command that `eyot doctor` shows, if there is one.
fn way_to_hold(missing: Requirement, groups: &CgroupSupport) -> String {
    let of_groups = matches!(missing, Requirement::Memory | Requirement::Cpus | Requirement::Pids);
    let cause = groups.cause.as_ref().filter(|_| of_groups);
    let uid = rustix::process::geteuid().as_raw();
    cause.and_then(|cause| fix_of_groups(cause, uid)).unwrap_or_else(|| {
        "`eyot doctor` shows what this host can do; leave the requirement out to go without".to_owned()
    })
}
