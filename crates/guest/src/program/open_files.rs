//! The limit of open files for commands.

use crate::protocol::GuestConfig;

/// The limit of open files that each command gets: all that may run together leave most of the
/// host's files to others. Where the host gives everybody as many as there is memory for, as with
/// systemd, nothing is lowered.
pub fn open_files_of_commands(inherited: [u64; 2], config: &GuestConfig) -> [u64; 2] {
    const PART: u64 = 4;
    const LEAST: u64 = 1024;
    let Some(processes) = config.max_processes else { return inherited };
    let of_the_host = std::fs::read_to_string("/proc/sys/fs/file-max").unwrap_or_default();
    let of_the_host = of_the_host.trim().parse().unwrap_or(0);
    let most = (of_the_host / PART / processes.max(1)).max(LEAST);
    inherited.map(|limit| limit.min(most))
}
