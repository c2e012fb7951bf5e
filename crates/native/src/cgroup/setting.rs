//! The values that are written into a group's files to enforce a sandbox's limits. Computing them
//! touches nothing.

use eyot::ValidSpec;

use super::CgroupController;
use super::position::CgroupVersion;

/// The limits of one sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupRequest {
    pub memory_mib: u64,
    /// The limit of memory for data that waits in sockets, in bytes, where the kernel counts it
    /// apart (v1).
    pub socket_bytes: u64,
    /// The processor time per [`PERIOD_US`], in microseconds.
    pub cpu_quota_us: Option<u64>,
    pub pids: u64,
}

/// The memory limit of a spec without one, in MiB.
pub const DEFAULT_MEMORY_MIB: u64 = 2048;
/// The period over which processor time is counted, in microseconds; the kernel's own default.
const PERIOD_US: u64 = 100_000;
/// The divisor that gives one sandbox its part of the host's memory for sockets.
const PART_OF_SOCKETS: u64 = 8;
/// The smallest quota that the kernel takes, in microseconds.
const MIN_QUOTA_US: u64 = 1_000;

impl GroupRequest {
    /// Takes the limits from a spec. `guest_pids` are added for the guest's own threads and
    /// helpers. `socket_bytes` is the memory that all sockets of the host together may use.
    pub(crate) fn of(spec: &ValidSpec, guest_pids: u64, socket_bytes: u64) -> Self {
        let limits = &spec.spec().limits;
        let memory_mib = limits.memory_mib.unwrap_or(DEFAULT_MEMORY_MIB);
        let quota = |cpus: f64| ((cpus * PERIOD_US as f64).round() as u64).max(MIN_QUOTA_US);
        Self {
            memory_mib,
            socket_bytes: (socket_bytes / PART_OF_SOCKETS).min(memory_mib.saturating_mul(1 << 20) / 4),
            cpu_quota_us: limits.cpus.map(quota),
            pids: limits.pids.unwrap_or(eyot::Limits::DEFAULT_PIDS).saturating_add(guest_pids),
        }
    }

    /// Tells whether a controller has a limit to enforce.
    pub(super) fn needs(&self, controller: CgroupController) -> bool {
        controller != CgroupController::Cpu || self.cpu_quota_us.is_some()
    }
}

/// A file of a group, and the value that is written to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub file: &'static str,
    pub value: String,
    /// The file may be missing: not every kernel counts swap, or the data that waits in sockets.
    pub may_be_missing: bool,
}

/// Lists the files by which a controller enforces the limits, with their values.
pub(super) fn settings(
    version: CgroupVersion,
    controller: CgroupController,
    wanted: &GroupRequest,
) -> Vec<Setting> {
    let set = |file, value: String| Setting { file, value, may_be_missing: false };
    let optional = |file, value: String| Setting { file, value, may_be_missing: true };
    let bytes = wanted.memory_mib.saturating_mul(1 << 20).min(i64::MAX as u64).to_string();
    match (controller, version) {
        (CgroupController::Memory, CgroupVersion::V2) => {
            vec![set("memory.max", bytes), optional("memory.swap.max", "0".to_owned())]
        }
        // The second is of memory and swap together. What waits in sockets counts towards v2's limit, but not v1's.
        (CgroupController::Memory, CgroupVersion::V1) => vec![
            set("memory.limit_in_bytes", bytes.clone()),
            optional("memory.memsw.limit_in_bytes", bytes),
            optional("memory.kmem.tcp.limit_in_bytes", wanted.socket_bytes.to_string()),
        ],
        (CgroupController::Pids, _) => vec![set("pids.max", wanted.pids.min(MOST_PIDS).to_string())],
        (CgroupController::Cpu, version) => match (wanted.cpu_quota_us, version) {
            (None, _) => Vec::new(),
            (Some(quota), CgroupVersion::V2) => vec![set("cpu.max", format!("{quota} {PERIOD_US}"))],
            (Some(quota), CgroupVersion::V1) => vec![set("cpu.cfs_quota_us", quota.to_string())],
        },
    }
}

/// The largest number of processes that the kernel takes.
const MOST_PIDS: u64 = 1 << 22;

#[cfg(test)]
mod tests {
    use super::*;
    use eyot::{Limits, SandboxSpec};

    fn wanted(limits: Limits) -> GroupRequest {
        GroupRequest::of(&SandboxSpec { limits, ..SandboxSpec::default() }.validate().unwrap(), 320, 1 << 30)
    }

    fn written(version: CgroupVersion, wanted: &GroupRequest) -> Vec<String> {
        let all = CgroupController::ALL.into_iter();
        let settings = all.flat_map(|controller| settings(version, controller, wanted));
        settings.map(|setting| format!("{}={}", setting.file, setting.value)).collect()
    }

    #[test]
    fn limits_are_written_as_each_version_has_them() {
        let limits = Limits { memory_mib: Some(64), cpus: Some(1.5), pids: Some(100), ..Limits::default() };
        let wanted = wanted(limits);
        let v2 = ["cpu.max=150000 100000", "memory.max=67108864", "memory.swap.max=0", "pids.max=420"];
        assert_eq!(written(CgroupVersion::V2, &wanted), v2);
        let v1 = [
            "cpu.cfs_quota_us=150000",
            "memory.limit_in_bytes=67108864",
            "memory.memsw.limit_in_bytes=67108864",
            "memory.kmem.tcp.limit_in_bytes=16777216",
            "pids.max=420",
        ];
        assert_eq!(written(CgroupVersion::V1, &wanted), v1);
    }

    #[test]
    fn without_limits_memory_and_processes_are_held_all_the_same_and_processors_are_not() {
        let wanted = wanted(Limits::default());
        assert_eq!((wanted.memory_mib, wanted.pids, wanted.cpu_quota_us), (2048, 832, None));
        assert!(!wanted.needs(CgroupController::Cpu) && wanted.needs(CgroupController::Memory));
        assert_eq!(settings(CgroupVersion::V2, CgroupController::Cpu, &wanted), []);
    }

    #[test]
    fn the_extremes_that_a_spec_may_ask_for_are_numbers_that_the_kernel_takes() {
        let limits = Limits {
            memory_mib: Some(Limits::MAX),
            cpus: Some(0.01),
            pids: Some(Limits::MAX_PIDS),
            ..Limits::default()
        };
        let wanted = wanted(limits);
        let v2 = written(CgroupVersion::V2, &wanted);
        assert_eq!(v2[0], "cpu.max=1000 100000");
        assert_eq!(v2[1], format!("memory.max={}", i64::MAX));
        assert_eq!(v2[3], "pids.max=4194304");
    }
}
