//! The default quotas of a server's pools, by the size of the host: a key can use most of the host,
//! but not all of it.

use std::io;
use std::path::Path;

use eyot::Limits;
use eyot_engine::{DefaultLimits, PoolQuotas};

use crate::context::Context;
use crate::errors::Failure;

/// The most sandboxes of a pool.
const SANDBOXES: u64 = 256;
/// The most snapshots of a pool.
const SNAPSHOTS: u64 = 1024;
/// The share of the host that the sandboxes of a pool may use together: three quarters.
const SHARE: (u64, u64) = (3, 4);
/// The least and the most memory of a sandbox that sets no limit, in MiB. Between them it gets an
/// equal part of the quota, so that as many fit as a pool may have. Below the least, ordinary work
/// fails.
const MEMORY_MIB: (u64, u64) = (512, 4096);
/// The same for the disk, in MiB.
const DISK_MIB: (u64, u64) = (1024, 16_384);
/// The same for processes.
const PROCESSES: (u64, u64) = (256, Limits::DEFAULT_PIDS);

/// The size of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostSize {
    /// Memory, in MiB.
    pub memory_mib: u64,
    /// The size of the file system that holds the sandboxes, in MiB; `None`: it is the Engine's.
    pub disk_mib: Option<u64>,
    /// The most processes at a time.
    pub processes: u64,
}

/// The quotas, and the limits of sandboxes that set none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsualQuotas {
    /// The quotas.
    pub quotas: PoolQuotas,
    /// The limits.
    pub unless_limited: DefaultLimits,
}

impl HostSize {
    /// Reads the size of this host. `state` is a folder on the file system that holds the
    /// sandboxes.
    pub fn read(state: Option<&Path>) -> io::Result<Self> {
        let system = rustix::system::sysinfo();
        let memory = (system.totalram as u64).saturating_mul(u64::from(system.mem_unit.max(1)));
        let disk = state.map(|state| {
            let found = rustix::fs::statvfs(state)?;
            Ok::<_, io::Error>(found.f_blocks.saturating_mul(found.f_frsize) >> 20)
        });
        let number = |path| -> io::Result<u64> {
            std::fs::read_to_string(path)?.trim().parse().map_err(io::Error::other)
        };
        let processes = number("/proc/sys/kernel/pid_max")?.min(number("/proc/sys/kernel/threads-max")?);
        Ok(Self { memory_mib: memory >> 20, disk_mib: disk.transpose()?, processes })
    }
}

impl UsualQuotas {
    /// Returns the quotas of a server without keys. It serves the user who started it, who does not
    /// share the host: only the number of sandboxes is limited, and a sandbox has only the limits
    /// that it asks for.
    pub fn without_keys() -> Self {
        let quotas = PoolQuotas { max_sandboxes: Some(SANDBOXES), ..PoolQuotas::default() };
        Self { quotas, unless_limited: DefaultLimits::default() }
    }

    /// Returns the quotas on the host of this context.
    pub fn for_this_host(context: &Context) -> Result<Self, Failure> {
        let state = context.state_folder()?;
        // An Engine's disk may be another host's, and it holds no limit of it.
        let on_disk = context.provider_settings.row.keeps_files_in_state_folder.then_some(state.as_path());
        let size = HostSize::read(on_disk)
            .map_err(|error| Failure::host("find out how large this host is", error))?;
        Ok(Self::of(&size))
    }

    /// Returns the quotas on a host of this size.
    pub fn of(host: &HostSize) -> Self {
        let share = |whole: u64| whole / SHARE.1 * SHARE.0;
        let quotas = PoolQuotas {
            max_sandboxes: Some(SANDBOXES),
            memory_mib: Some(share(host.memory_mib)),
            disk_mib: host.disk_mib.map(share),
            processes: Some(share(host.processes).max(Limits::DEFAULT_PIDS)),
            max_snapshots: Some(SNAPSHOTS),
        };
        let part = |quota: u64, (least, most): (u64, u64)| (quota / SANDBOXES).clamp(least, most).min(quota);
        let unless_limited = DefaultLimits {
            memory_mib: quotas.memory_mib.map(|quota| part(quota, MEMORY_MIB)),
            disk_mib: quotas.disk_mib.map(|quota| part(quota, DISK_MIB)),
            pids: quotas.processes.map(|quota| part(quota, PROCESSES)),
        };
        Self { quotas, unless_limited }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_keys_bounds_the_number_of_sandboxes_and_limits_none() {
        let usual = UsualQuotas::without_keys();
        assert_eq!(usual.quotas, PoolQuotas { max_sandboxes: Some(256), ..PoolQuotas::default() });
        assert_eq!(usual.unless_limited, DefaultLimits::default());
    }

    #[test]
    fn a_pool_may_use_three_quarters_of_the_host_and_a_sandbox_without_limits_a_part_of_that() {
        let usual =
            UsualQuotas::of(&HostSize { memory_mib: 262_144, disk_mib: Some(1 << 20), processes: 1 << 22 });
        let quotas = PoolQuotas {
            max_sandboxes: Some(256),
            memory_mib: Some(196_608),
            disk_mib: Some(786_432),
            processes: Some(3 << 20),
            max_snapshots: Some(1024),
        };
        assert_eq!(usual.quotas, quotas);
        let unless_limited = DefaultLimits { memory_mib: Some(768), disk_mib: Some(3072), pids: Some(512) };
        assert_eq!(usual.unless_limited, unless_limited);
    }

    #[test]
    fn a_sandbox_without_limits_has_enough_to_work_where_256_of_them_do_not_fit() {
        let host = HostSize { memory_mib: 24_576, disk_mib: Some(102_400), processes: 32_768 };
        let UsualQuotas { quotas, unless_limited } = UsualQuotas::of(&host);
        assert_eq!((quotas.memory_mib, unless_limited.memory_mib), (Some(18_432), Some(512)));
        assert_eq!((quotas.disk_mib, unless_limited.disk_mib), (Some(76_800), Some(1024)));
        assert_eq!((quotas.processes, unless_limited.pids), (Some(24_576), Some(256)));
    }

    #[test]
    fn on_the_smallest_host_one_sandbox_without_limits_can_be_made() {
        let UsualQuotas { quotas, unless_limited } =
            UsualQuotas::of(&HostSize { memory_mib: 128, disk_mib: Some(512), processes: 100 });
        assert_eq!((quotas.memory_mib, unless_limited.memory_mib), (Some(96), Some(96)));
        assert_eq!((quotas.disk_mib, unless_limited.disk_mib), (Some(384), Some(384)));
        assert_eq!((quotas.processes, unless_limited.pids), (Some(Limits::DEFAULT_PIDS), Some(256)));
    }

    #[test]
    fn this_host_has_a_size() {
        let size = HostSize::read(Some(Path::new("/"))).unwrap();
        assert!(size.memory_mib > 0 && size.disk_mib.is_some_and(|mib| mib > 0) && size.processes > 0);
        assert_eq!(HostSize::read(None).unwrap().disk_mib, None);
    }
}
