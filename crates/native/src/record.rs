//! The data of a sandbox that outlives an Eyot process. `sandbox.json` describes the sandbox;
//! [`crate::ready`] names the process of its guest.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use eyot::{NetworkMode, SandboxInfo, WorkspaceSpec};
use eyot_image::FileLock;
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::cow_mount::CowMount;
use crate::egress::changed_rules;
use crate::image::Lower;
use crate::state::{IdBlock, StateDir, write_whole};

/// The data that a later process needs to use or to remove the sandbox. It holds secrets, so the
/// file's mode is 0600.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub info: SandboxInfo,
    /// The secret that a client presents to the guest. The next field is the guest's answer.
    pub client_nonce: [u8; 16],
    pub guest_nonce: [u8; 16],
    /// The boot of the host that the sandbox's processes belong to.
    pub boot_id: String,
    /// The block of its host ids, as earlier versions recorded it: entered at its first id. Later
    /// ones leave it out, so that an earlier version refuses to wake a sandbox whose ids it would
    /// take for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
    /// The range of host ids, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ids: Option<IdBlock>,
    /// The persistent workspace was made for this sandbox. A workspace that existed before outlives
    /// a failed create.
    pub made_workspace: bool,
    /// The directories of its control groups.
    #[serde(default)]
    pub groups: Vec<PathBuf>,
    /// The read-only layers on the host that the sandbox was made over.
    #[serde(flatten)]
    pub lower: Lower,
    /// The mounts with a copy on write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cow: Vec<CowMount>,
    /// The `PATH` that its image sets, if it sets one.
    #[serde(default)]
    pub program_path: Option<String>,
    /// The number of times it was woken.
    #[serde(default)]
    pub wakes: u32,
}

const RECORD: &str = "sandbox.json";
pub(crate) const SOCKET: &str = "guest.sock";

impl Record {
    /// Returns the block of its host ids, whichever version recorded it.
    pub(crate) fn id_block(&self) -> Option<IdBlock> {
        self.ids.or(self.block.map(IdBlock::in_order))
    }

    /// Writes the record into a sandbox's directory, as a whole. It is not synced, because that
    /// would stall every create and wake. A record that a power loss has damaged is recognized
    /// ([`crate::condition`]).
    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        write_whole(directory, RECORD, &serde_json::to_vec(self)?)
    }

    /// Makes a file of a sandbox's directory its record. The file holds a whole one.
    pub(crate) fn replace_by(directory: &Path, name: &str) -> io::Result<()> {
        fs::rename(directory.join(name), directory.join(RECORD))
    }

    /// Reads the record in a sandbox's directory, with the network rules that are in force now.
    pub(crate) fn read(directory: &Path) -> io::Result<Self> {
        Self::read_with(directory, &mut Vec::new())
    }

    /// Reads the record of one sandbox after the other into the same buffer.
    pub(crate) fn read_with(directory: &Path, bytes: &mut Vec<u8>) -> io::Result<Self> {
        read_whole(&directory.join(RECORD), bytes)?;
        let mut record: Self = serde_json::from_slice(bytes)?;
        if record.info.spec.network == NetworkMode::Egress
            && let Some(rules) = changed_rules(directory)?
        {
            record.info.spec.egress = rules;
        }
        Ok(record)
    }

    /// Keeps a persistent workspace that existed before a failed create: it must not be removed
    /// with this sandbox.
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

/// Reads a file in one call if it is small. Its size is not asked for.
fn read_whole(path: &Path, bytes: &mut Vec<u8>) -> io::Result<()> {
    const MOST_RECORDS: usize = 16 * 1024;
    bytes.resize(MOST_RECORDS, 0);
    let mut file = File::open(path)?;
    let count = file.read(bytes)?;
    bytes.truncate(count);
    // Fewer bytes than there was room for: nothing follows them.
    if count == MOST_RECORDS { file.read_to_end(bytes).map(drop) } else { Ok(()) }
}

/// Returns the id of the host's current boot.
pub(crate) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// A guest's process. The start time tells it from later processes with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GuestProcess {
    pub pid: i32,
    start_ticks: u64,
}

impl GuestProcess {
    /// Identifies the process that has this number now.
    pub(crate) fn of(pid: i32) -> io::Result<Self> {
        Ok(Self { pid, start_ticks: start_ticks(pid)? })
    }

    /// Parses the text that [`fmt::Display`] wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (pid, start_ticks) = text.split_once(' ')?;
        Some(Self { pid: pid.parse().ok()?, start_ticks: start_ticks.parse().ok()? })
    }

    /// Returns the time since it started, in milliseconds, even if it has ended.
    pub(crate) fn started_ms_ago(self) -> u64 {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let now_ms = now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000;
        now_ms.saturating_sub(self.start_ticks.saturating_mul(TICK_MS))
    }

    /// Opens the process; `None` if it has ended, even if another process has its number now.
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

/// The length of a tick in `/proc`, in milliseconds: `USER_HZ` is 100 on every host that Eyot
/// supports.
const TICK_MS: u64 = 10;

/// Reads field 22 of `/proc/<pid>/stat`, the start time. Fields are counted from the end of the
/// command's name, because that may contain anything.
fn start_ticks(pid: i32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
    let field = after_name.split_whitespace().nth(19).and_then(|field| field.parse().ok());
    field.ok_or_else(|| io::Error::other("a /proc/<pid>/stat of an unknown form"))
}

/// Kills a process and waits until it is gone, with all processes of its process namespace if it is
/// PID 1 of one.
pub(crate) fn kill_and_wait(pidfd: &OwnedFd) -> io::Result<()> {
    kill(pidfd)?;
    wait_until_gone(pidfd)
}

/// Kills a process, and all processes of its process namespace if it is PID 1 of one. A process
/// that is gone is no error.
pub(crate) fn kill(pidfd: &OwnedFd) -> io::Result<()> {
    match rustix::process::pidfd_send_signal(pidfd, rustix::process::Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Tells whether a process runs.
pub(crate) fn is_running(pidfd: &OwnedFd) -> bool {
    let mut waited = [rustix::event::PollFd::new(pidfd, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut waited, Some(&rustix::time::Timespec::default())) == Ok(0)
}

/// Waits until a process is gone, with all processes of its process namespace if it is PID 1 of
/// one.
pub(crate) fn wait_until_gone(pidfd: &OwnedFd) -> io::Result<()> {
    let mut waited = [rustix::event::PollFd::new(pidfd, rustix::event::PollFlags::IN)];
    loop {
        match rustix::event::poll(&mut waited, None) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// The lock of a sandbox's directory. It is held during a create, a sleep, a wake, a change of its layers and a destroy.
/// The kernel releases it when the holder dies.
#[derive(Debug)]
pub(crate) struct Lock {
    _held: FileLock,
}

impl Lock {
    /// Locks a directory that was just made. The caller has shared the gate since before it made
    /// the directory.
    pub(crate) fn take(directory: &Path) -> io::Result<Self> {
        let directory = File::open(directory)?;
        rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { _held: FileLock::new(directory) })
    }

    /// Waits for the lock of a sandbox. Blocks. The sandbox may have been destroyed when this
    /// returns.
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

    /// Locks a completed sandbox; `None` while another process holds the lock.
    pub(crate) fn take_if_free(directory: &Path) -> io::Result<Option<Self>> {
        unless_held(Self::take(directory))
    }

    /// Keeps others from locking a sandbox, to look at it; `None` while somebody has it locked.
    pub(crate) fn share_if_free(directory: &Path) -> io::Result<Option<Self>> {
        let directory = File::open(directory)?;
        let shared = rustix::fs::flock(&directory, FlockOperation::NonBlockingLockShared);
        unless_held(shared.map(|()| Self { _held: FileLock::new(directory) }).map_err(io::Error::from))
    }

    /// Locks a sandbox that was begun by a process that is dead; `None` while its maker lives.
    /// Holds the gate alone, so that no process is between making a directory and locking it.
    pub(crate) fn take_abandoned(state: &StateDir, directory: &Path) -> io::Result<Option<Self>> {
        let _alone = state.gate(FlockOperation::LockExclusive)?;
        Self::take_if_free(directory)
    }
}

/// Turns the error of a lock that somebody else holds into `None`.
fn unless_held(locked: io::Result<Lock>) -> io::Result<Option<Lock>> {
    match locked {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        locked => locked.map(Some),
    }
}

/// Returns the path of the guest's socket; see [`path_below`].
pub(crate) fn socket_path(directory: &Path) -> io::Result<(OwnedFd, String)> {
    path_below(directory, SOCKET)
}

/// Returns the path of a socket in a sandbox's directory. It goes through a descriptor of the
/// directory, so it is short enough for a socket address however deep the state folder lies. It is
/// valid while the descriptor is open.
pub(crate) fn path_below(directory: &Path, name: &str) -> io::Result<(OwnedFd, String)> {
    let directory =
        rustix::fs::open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let path = format!("/proc/self/fd/{}/{name}", directory.as_raw_fd());
    Ok((directory, path))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes the record of a new sandbox with a default spec.
    pub(crate) fn record() -> Record {
        let spec = eyot::SandboxSpec::default().validate().unwrap();
        let info = SandboxInfo {
            id: spec.id().clone(),
            name: spec.name().clone(),
            pool: None,
            provider: crate::NAME.to_owned(),
            status: eyot::SandboxStatus::Running,
            workdir: spec.workdir().clone(),
            created_ms: eyot::internal::now_ms(),
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
            ids: None,
            made_workspace: false,
            groups: Vec::new(),
            lower: Lower::default(),
            cow: Vec::new(),
            program_path: None,
            wakes: 0,
        }
    }

    #[test]
    fn a_file_is_read_whole_whatever_its_size_and_whatever_was_read_before() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut bytes = Vec::new();
        for size in [0, 1, 20_000, 16 * 1024, 5, 16 * 1024 - 1, 16 * 1024 + 1] {
            let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8 + 1).collect();
            fs::write(&path, &content).unwrap();
            read_whole(&path, &mut bytes).unwrap();
            assert!(bytes == content, "{size}");
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
        let state = StateDir::made_at(&dir.path().join("state"));
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
