//! The memory of a sandbox as its limit counts it: by the container's control group, which can be read inside.

use eyot::Usage;
use eyot_guest::client::GuestDriver;

use super::driver::text_of;

/// What is in use: by cgroup v2, by v1.
const CURRENT: [&str; 2] = ["/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes"];
/// The most that ever was.
const PEAK: [&str; 2] = ["/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"];

/// What the guest has counted, with the group's numbers where there are any.
pub(crate) async fn counted(guest: &GuestDriver, mut usage: Usage) -> Usage {
    usage.memory_bytes = first(guest, CURRENT).await.or(usage.memory_bytes);
    usage.memory_peak_bytes = first(guest, PEAK).await;
    usage
}

async fn first(guest: &GuestDriver, files: [&str; 2]) -> Option<u64> {
    for file in files {
        if let Some(bytes) = text_of(guest, file).await.ok().and_then(|text| text.trim().parse().ok()) {
            return Some(bytes);
        }
    }
    None
}
