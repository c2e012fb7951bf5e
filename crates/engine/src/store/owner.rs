//! The owner of work on a sandbox: a process, told apart from every later one of the same number.

use std::fs;
use std::io;
use std::sync::OnceLock;

use eyot::{Error, Result};
use serde::{Deserialize, Serialize};

/// The mark of a server of a database, in the place of a host's boot.
const SERVER: &str = "server ";

/// A process of this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The number. Numbers are used again.
    pub pid: u32,
    /// The time at which it started, in clock ticks since the host did.
    pub start_ticks: u64,
    /// The id of the host's boot in which it started.
    pub boot_id: String,
}

impl Owner {
    /// This process.
    pub fn this_process() -> Result<Self> {
        // A fork that goes on without exec would have a number of its own.
        static THIS: OnceLock<Owner> = OnceLock::new();
        if let Some(owner) = THIS.get().filter(|owner| owner.pid == std::process::id()) {
            return Ok(owner.clone());
        }
        let owner = Self::now(std::process::id());
        let owner = owner.map_err(|error| Error::host("find out which process this is", error))?;
        Ok(THIS.get_or_init(|| owner).clone())
    }

    /// No process: [`Owner::is_alive`] is `false`, for whatever version of Eyot reads it.
    pub(super) fn none() -> Self {
        Self { pid: 0, start_ticks: 0, boot_id: String::new() }
    }

    /// The process that is known as this server to a database.
    pub(super) fn of_server(id: &str) -> Self {
        Self { pid: std::process::id(), start_ticks: 0, boot_id: format!("{SERVER}{id}") }
    }

    /// Returns the id of a server of a database, if it is one.
    pub(super) fn server(&self) -> Option<&str> {
        self.boot_id.strip_prefix(SERVER)
    }

    /// The process that has this number now.
    fn now(pid: u32) -> io::Result<Self> {
        let start_ticks = ProcStat::read(pid)?.start_ticks;
        Ok(Self { pid, start_ticks, boot_id: boot_id()? })
    }

    /// All processes that run and can be seen.
    pub(crate) fn all() -> io::Result<Vec<Self>> {
        let boot_id = boot_id()?;
        let mut all = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            match ProcStat::read(pid) {
                Ok(ProcStat { start_ticks, runs: true }) => {
                    all.push(Self { pid, start_ticks, boot_id: boot_id.clone() });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// Returns whether it still runs. A process that can't be looked up counts as running: work is
    /// never taken away on a guess. A zombie does not run.
    ///
    /// Processes are looked for in this process's own view of `/proc`: those of one state folder must share it.
    pub fn is_alive(&self) -> bool {
        let boot = boot_id();
        if boot.is_ok_and(|boot| boot != self.boot_id) {
            return false;
        }
        match ProcStat::read(self.pid) {
            Ok(process) => process.start_ticks == self.start_ticks && process.runs,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// The facts that `/proc/<pid>/stat` tells.
struct ProcStat {
    start_ticks: u64,
    runs: bool,
}

impl ProcStat {
    fn read(pid: u32) -> io::Result<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).map_err(gone)?;
        Self::parse(&stat).ok_or_else(|| io::Error::other("/proc holds a process without a start time"))
    }

    /// Fields 3 and 22. The command's name before them may hold anything, so they are counted from its end.
    fn parse(stat: &[u8]) -> Option<Self> {
        let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(&stat[name_ends + 1..]).ok()?;
        let mut fields = fields.split_ascii_whitespace();
        let runs = !matches!(fields.next()?, "Z" | "X" | "x");
        let start_ticks = fields.nth(18)?.parse().ok()?;
        Some(Self { start_ticks, runs })
    }
}

/// A process may end while its file is read, which answers ESRCH then.
fn gone(error: io::Error) -> io::Error {
    const ESRCH: i32 = 3;
    if error.raw_os_error() == Some(ESRCH) { io::ErrorKind::NotFound.into() } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_others_of_its_number_do_not() {
        let this = Owner::this_process().unwrap();
        assert!(this.is_alive());
        assert!(!Owner { start_ticks: this.start_ticks + 1, ..this.clone() }.is_alive());
        assert!(!Owner { boot_id: "another".to_owned(), ..this.clone() }.is_alive());
        assert!(!Owner { pid: u32::MAX, ..this }.is_alive());
        assert!(!Owner::none().is_alive());
    }

    #[test]
    fn a_process_that_ended_does_not_run() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let owner = Owner::now(child.id()).unwrap();
        assert!(owner.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!owner.is_alive());
    }

    #[test]
    fn a_name_with_parentheses_and_spaces_hides_no_field() {
        let stat = b"12 (a) Z (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 0";
        let process = ProcStat::parse(stat).unwrap();
        assert_eq!((process.start_ticks, process.runs), (4711, true));
        assert!(!ProcStat::parse(&stat.map(|byte| if byte == b'S' { b'Z' } else { byte })).unwrap().runs);
    }
}
