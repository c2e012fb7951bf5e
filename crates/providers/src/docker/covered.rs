//! Parts of `/proc` and `/sys` that a container must not see, or not write to. An Engine takes
//! these lists in place of its own, so they include what Engines cover by default.
//!
//! Limits of processes (`ulimits`) are not set here: an Engine without `CAP_SYS_RESOURCE` can't
//! start a container with a limit above its own. The guest lowers them.

use super::engine::EngineFacts;

/// Names in `/proc` that describe the host and other containers: its disks, memory, interrupts,
/// locks and kernel. `cgroups` is left open, because Java reads it to find its memory limit.
const TELLS: [&str; 45] = [
    "acpi",
    "allocinfo",
    "apm",
    "asound",
    "bootconfig",
    "buddyinfo",
    "bus",
    "cmdline",
    "config.gz",
    "crypto",
    "diskstats",
    "driver",
    "dynamic_debug",
    "fb",
    "fs",
    "interrupts",
    "iomem",
    "ioports",
    "irq",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "locks",
    "mdstat",
    "modules",
    "mtrr",
    "pagetypeinfo",
    "partitions",
    "pressure",
    "sched_debug",
    "schedstat",
    "scsi",
    "slabinfo",
    "softirqs",
    "swaps",
    "timer_list",
    "vmallocinfo",
    "vmstat",
    "zoneinfo",
];
/// More paths of that kind: in `/proc` of older kernels, and below `/sys`.
const TELLS_ELSEWHERE: [&str; 3] = ["/proc/timer_stats", "/sys/firmware", "/sys/devices/virtual/powercap"];
/// The paths that an Engine keeps read-only by default.
const READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Lists the paths to cover.
pub(super) fn masked(facts: &EngineFacts) -> Vec<String> {
    let of_proc = TELLS.iter().map(|name| format!("/proc/{name}"));
    let elsewhere = TELLS_ELSEWHERE.iter().map(|path| (*path).to_owned());
    let of_processor = |number| format!("/sys/devices/system/cpu/cpu{number}/thermal_throttle");
    of_proc.chain(elsewhere).chain((0..facts.processors).map(of_processor)).collect()
}

/// Lists the paths to make read-only.
pub(super) fn read_only() -> Vec<String> {
    READ_ONLY.map(str::to_owned).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_engines_cover_by_default_stays_covered() {
        let covered = masked(&EngineFacts { processors: 2, ..EngineFacts::default() });
        for path in [
            "/proc/acpi",
            "/proc/asound",
            "/proc/interrupts",
            "/proc/kcore",
            "/proc/keys",
            "/proc/latency_stats",
            "/proc/sched_debug",
            "/proc/scsi",
            "/proc/timer_list",
            "/proc/timer_stats",
            "/sys/devices/system/cpu/cpu1/thermal_throttle",
            "/sys/devices/virtual/powercap",
            "/sys/firmware",
        ] {
            assert!(covered.iter().any(|one| one == path), "{path}");
        }
    }
}
