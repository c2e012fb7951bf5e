//! What is kept of a sandbox between Eyot processes: `sandbox.json` says what it is; which process its guest is says
//! [`crate::ready`].

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use eyot::{NetworkMode, SandboxInfo, WorkspaceSpec};
use eyot_image::FileLock;
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::egress::changed_rules;
use crate::image::Lower;
use crate::state::StateDir;

/// What a later process needs to use or to remove the sandbox. Holds secrets: the file's mode is 0600.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub info: SandboxInfo,
    /// What a client presents to the guest, and what the guest answers with.
    pub client_nonce: [u8; 16],
    pub guest_nonce: [u8; 16],
    /// Which boot of the host its processes belong to.
    pub boot_id: String,
    /// The range of host ids that it holds.
    pub block: Option<u32>,
    /// Its persistent workspace was made for it; one that was there before outlives a create that fails.
    pub made_workspace: bool,
    /// The directories of its control groups.
    #[serde(default)]
    pub groups: Vec<PathBuf>,
    /// The read-only layers on the host that it was made over.
    #[serde(flatten)]
    pub lower: Lower,
    /// Where its image looks for programs, if it says so.
    #[serde(default)]
    pub program_path: Option<String>,
    /// How often it was woken.
    #[serde(default)]
    pub wakes: u32,
}

const RECORD: &str = "sandbox.json";
const RECORD_IN_THE_MAKING: &str = "sandbox.json.new";
pub(crate) const SOCKET: &str = "guest.sock";

impl Record {
    /// Writes the record into a sandbox's directory, as a whole. It is not synced, which would stall every create and wake: a
    /// record that a power loss damages is known as damaged ([`crate::condition`]).
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        let made = directory.join(RECORD_IN_THE_MAKING);
        // Of somebody who was killed. Whatever it is, it is not written into.
        match fs::remove_file(&made) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&made)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(made, directory.join(RECORD))
    }

    /// Reads the record of a sandbox's directory, with the rules of its network as they are now.
    pub(crate) fn read(directory: &Path) -> io::Result<Self> {
        let mut record: Self = serde_json::from_slice(&fs::read(directory.join(RECORD))?)?;
        if record.info.spec.network == NetworkMode::Egress
            && let Some(rules) = changed_rules(directory)?
        {
            record.info.spec.egress = rules;
        }
        Ok(record)
    }

    /// For a create that failed: a persistent workspace that was there before is not to go with this sandbox.
    pub(crate) fn keep_found_workspace(directory: &Path) -> io::Result<()> {
        let Ok(mut record) = Self::read(directory) else {
            // Whoever destroys it does not learn of a workspace either.
            return Ok(());
        };
        if record.made_workspace {
            return Ok(());
        }
        record.info.spec.workspace = WorkspaceSpec::Ephemeral;
        record.write(directory)
    }
}

/// Which boot of the host this is.
pub(crate) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// A guest's process, told apart from any later one of the same number by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GuestProcess {
    pub pid: i32,
    start_ticks: u64,
}

impl GuestProcess {
    /// The process that has this number now.
    pub(crate) fn of(pid: i32) -> io::Result<Self> {
        Ok(Self { pid, start_ticks: start_ticks(pid)? })
    }

    /// What [`fmt::Display`] wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (pid, start_ticks) = text.split_once(' ')?;
        Some(Self { pid: pid.parse().ok()?, start_ticks: start_ticks.parse().ok()? })
    }

    /// How long ago it started, in milliseconds, whether it still runs or not.
    pub(crate) fn started_ms_ago(self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let now_ms = now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000;
        now_ms.saturating_sub(self.start_ticks.saturating_mul(TICK_MS))
    }

    /// A descriptor of the process, if it still is the same one.
    pub(crate) fn open(self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = rustix::process::Pid::from_raw(self.pid) else {
            return Ok(None);
        };
        let pidfd = match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            other => other?,
        };
        // Looked at after the open: the number can't have gone to another process since.
        Ok(start_ticks(self.pid).is_ok_and(|ticks| ticks == self.start_ticks).then_some(pidfd))
    }
}

impl fmt::Display for GuestProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.start_ticks)
    }
}

/// How long a tick of `/proc` is: `USER_HZ` is 100 wherever Eyot runs.
const TICK_MS: u64 = 10;

/// Field 22 of `/proc/<pid>/stat`. The command's name before it may hold anything, so fields are counted from its end.
fn start_ticks(pid: i32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    let field = after_name.split_whitespace().nth(19).and_then(|field| field.parse().ok());
    field.ok_or_else(|| io::Error::other("a /proc/<pid>/stat of an unknown form"))
}

/// Kills a process and waits until it and all that it was PID 1 of are gone.
pub(crate) fn kill_and_wait(pidfd: &OwnedFd) -> io::Result<()> {
    kill(pidfd)?;
    wait_until_gone(pidfd)
}

/// Kills a process, and with it all that it is PID 1 of. One that is gone already is fine.
pub(crate) fn kill(pidfd: &OwnedFd) -> io::Result<()> {
    match rustix::process::pidfd_send_signal(pidfd, rustix::process::Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a process and all that it was PID 1 of are gone.
pub(crate) fn wait_until_gone(pidfd: &OwnedFd) -> io::Result<()> {
    let mut waited = [rustix::event::PollFd::new(pidfd, rustix::event::PollFlags::IN)];
    loop {
        match rustix::event::poll(&mut waited, None) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// A lock on a sandbox's directory, held by whoever makes the sandbox until it is complete, and by whoever puts it to
/// sleep or wakes it. The kernel lets go of it when the holder dies.
#[derive(Debug)]
pub(crate) struct Lock {
    _held: FileLock,
}

impl Lock {
    /// Takes the lock of a directory that was just made; the gate has been held, together, since before it was.
    pub(crate) fn take(directory: &Path) -> io::Result<Self> {
        let directory = File::open(directory)?;
        rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { _held: FileLock::new(directory) })
    }

    /// Takes the lock of a sandbox once nobody else holds it. Blocks. The sandbox may have been destroyed meanwhile.
    pub(crate) fn wait(directory: &Path) -> io::Result<Self> {
        let directory = File::open(directory)?;
        loop {
            match rustix::fs::flock(&directory, FlockOperation::LockExclusive) {
                Err(rustix::io::Errno::INTR) => {}
                other => {
                    return other.map(|()| Self { _held: FileLock::new(directory) }).map_err(io::Error::from);
                }
            }
        }
    }

    /// Takes the lock of a completed sandbox if nobody holds it now.
    pub(crate) fn take_if_free(directory: &Path) -> io::Result<Option<Self>> {
        match Self::take(directory) {
            Ok(lock) => Ok(Some(lock)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the lock of a sandbox that somebody began; `None` while its maker lives. The gate is held alone meanwhile:
    /// nobody is between a directory and its lock.
    pub(crate) fn take_abandoned(state: &StateDir, directory: &Path) -> io::Result<Option<Self>> {
        let _alone = state.gate(FlockOperation::LockExclusive)?;
        Self::take_if_free(directory)
    }
}

/// The path of the guest's socket; see [`path_below`].
pub(crate) fn socket_path(directory: &Path) -> io::Result<(OwnedFd, String)> {
    path_below(directory, SOCKET)
}

/// The path of a socket in a sandbox's directory, short enough for a socket address however deep the state folder lies:
/// through a descriptor of the directory, which must be kept open meanwhile.
pub(crate) fn path_below(directory: &Path, name: &str) -> io::Result<(OwnedFd, String)> {
    let directory =
        rustix::fs::open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let path = format!("/proc/self/fd/{}/{name}", directory.as_raw_fd());
    Ok((directory, path))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The record of a sandbox that was made just now, from a default spec.
    pub(crate) fn record() -> Record {
        let spec = eyot::SandboxSpec::default().validate().unwrap();
        let info = SandboxInfo {
            id: spec.id().clone(),
            name: spec.name().clone(),
            provider: crate::NAME.to_owned(),
            status: eyot::SandboxStatus::Running,
            workdir: spec.workdir().clone(),
            created_ms: crate::condition::now_ms(),
            spec: spec.spec().clone(),
            isolation: crate::isolation::unknown(),
            life: "0".to_owned(),
        };
        Record {
            info,
            client_nonce: [1; 16],
            guest_nonce: [2; 16],
            boot_id: boot_id().unwrap(),
            block: None,
            made_workspace: false,
            groups: Vec::new(),
            lower: Lower::default(),
            program_path: None,
            wakes: 0,
        }
    }

    #[test]
    fn a_process_is_not_taken_for_a_later_one_of_the_same_number() {
        let own = GuestProcess::of(std::process::id() as i32).unwrap();
        assert!(own.open().unwrap().is_some());
        let other = GuestProcess { start_ticks: own.start_ticks + 1, ..own };
        assert!(other.open().unwrap().is_none());
    }

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state"), None).unwrap();
        (dir, state)
    }

    #[test]
    fn a_sandbox_that_is_being_made_is_locked_and_an_abandoned_one_is_not() {
        let (dir, state) = state();
        let lock = Lock::take(dir.path()).unwrap();
        assert!(Lock::take_abandoned(&state, dir.path()).unwrap().is_none());
        drop(lock);
        assert!(Lock::take_abandoned(&state, dir.path()).unwrap().is_some());
    }

    #[test]
    fn a_directory_whose_maker_died_before_it_locked_it_is_taken() {
        let (dir, state) = state();
        assert!(Lock::take_abandoned(&state, dir.path()).unwrap().is_some());
    }
}
