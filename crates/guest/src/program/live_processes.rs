//! All processes of the sandbox, as `top` shows them.

use std::collections::{HashMap, HashSet};

use super::{proc_table, sys};
use crate::protocol::{LiveProcessList, LiveRecord, MAX_LIVE_PROCESSES};

/// The most bytes of a command line that are reported.
const MAX_COMMAND_BYTES: usize = 512;

/// Lists the processes below the guest, by number, without the guest's own reapers. A process that
/// ends meanwhile is left out. Reads many files, so it belongs on a worker thread.
pub fn list(reapers: &HashSet<i32>, names: &HashMap<u32, String>) -> LiveProcessList {
    let mut pids = proc_table::descendants(std::process::id() as i32);
    pids.retain(|pid| !reapers.contains(pid));
    pids.sort_unstable();
    let truncated = pids.len() > MAX_LIVE_PROCESSES;
    pids.truncate(MAX_LIVE_PROCESSES);
    let units = sys::proc_units();
    let processes = pids.into_iter().filter_map(|pid| describe(pid, names, units)).collect();
    LiveProcessList { processes, truncated }
}

fn describe(pid: i32, names: &HashMap<u32, String>, units: (u64, u64)) -> Option<LiveRecord> {
    let (ticks_per_second, page_bytes) = units;
    let stat = proc_table::stat(pid)?;
    let uid = proc_table::user(pid)?;
    let command = proc_table::command_line(pid, MAX_COMMAND_BYTES).or_else(|| proc_table::name(pid))?;
    Some(LiveRecord {
        pid: pid as u32,
        parent_pid: stat.parent as u32,
        user: names.get(&uid).cloned().unwrap_or_else(|| uid.to_string()),
        state: stat.state,
        cpu_ms: stat.own_ticks * 1000 / ticks_per_second,
        memory_bytes: stat.resident_pages * page_bytes,
        command,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_listed_with_its_user_and_its_command_line() {
        let mut child = std::process::Command::new("sleep").arg("86461").spawn().unwrap();
        let me = std::fs::metadata(format!("/proc/{}", child.id())).unwrap();
        let uid = std::os::unix::fs::MetadataExt::uid(&me);
        let found = loop {
            let found = list(&HashSet::new(), &HashMap::from([(uid, "me".to_owned())]));
            // Between fork and exec it still is this program, and the kernel counts its memory a
            // little later.
            let is_it = |record: &LiveRecord| {
                record.pid == child.id() && record.command == "sleep 86461" && record.memory_bytes > 0
            };
            if let Some(found) = found.processes.into_iter().find(is_it) {
                break found;
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((found.user.as_str(), found.parent_pid), ("me", std::process::id()));
        assert!(b"RSD".contains(&found.state), "{found:?}");
    }
}
