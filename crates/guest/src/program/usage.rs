//! The resources that the sandbox uses, by a walk over the guest's descendants.

use std::collections::HashSet;

use super::activity::Activity;
use super::group_memory::GroupMemory;
use super::{proc_table, sys};
use crate::protocol::UsageRecord;

/// Measures the present use. The guest's own reapers, which share its memory, do not count as
/// processes of the sandbox. The processor time of processes that they have waited for does count.
/// Reads many files, so it belongs on a worker thread.
pub fn measure(reapers: &HashSet<i32>, activity: &Activity, memory: &GroupMemory) -> UsageRecord {
    let (ticks_per_second, page_bytes) = sys::proc_units();
    let (uptime_ms, idle_ms) = (activity.uptime_ms(), activity.idle_ms());
    let (group_memory_bytes, group_memory_peak_bytes) = (memory.current(), memory.peak());
    let mut record = UsageRecord {
        uptime_ms,
        idle_ms,
        group_memory_bytes,
        group_memory_peak_bytes,
        ..UsageRecord::default()
    };
    let mut ticks = 0;
    for pid in proc_table::descendants(std::process::id() as i32) {
        let Some(stat) = proc_table::stat(pid) else {
            continue;
        };
        ticks += stat.own_ticks + stat.reaped_ticks;
        if !reapers.contains(&pid) && stat.state != b'Z' {
            record.processes += 1;
            record.memory_bytes += stat.resident_pages * page_bytes;
        }
    }
    record.cpu_ms = ticks * 1000 / ticks_per_second + sys::cpu_of_reaped().as_millis() as u64;
    record
}
