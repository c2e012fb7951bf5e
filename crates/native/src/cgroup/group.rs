//! The groups of one sandbox: made, limited, handed over for entering, measured, frozen, removed. What a directory can
//! do is told by its files, so that a later Eyot process needs nothing but its path.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::CgroupController;
use super::home::{Branch, Home};
use super::position::Version;
use super::setting::{Wanted, settings};
use crate::record::kill_and_wait;

/// The name of the step that makes the groups, as errors and tests have it.
const MAKE: &str = "make its control groups";
/// The name of the step that sets their limits.
const LIMIT: &str = "set the limits of its control groups";

/// How long a group may take to become empty once everything in it was killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is needed to enter the groups, and to learn of memory that ran out.
#[derive(Debug, Default)]
pub(crate) struct GroupDescriptors {
    /// The `tasks` of each v1 group, open for writing.
    pub tasks: Vec<OwnedFd>,
    /// The file that counts the kills for want of memory, open for reading.
    pub memory_events: Option<OwnedFd>,
}

/// How a sandbox enters its groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GroupPlan {
    /// It is born into a v2 group.
    pub into: bool,
    /// How many v1 groups it enters by itself.
    pub tasks: u32,
}

/// Groups that were made. Dropping them does not remove them: their paths are in the sandbox's record.
#[derive(Debug)]
pub(crate) struct Groups<'a> {
    made: Vec<(&'a Branch, PathBuf)>,
}

/// A step that failed, by name.
pub(crate) type FailedStep = (&'static str, io::Error);

impl Home {
    /// The directories that the groups of the sandbox with this id will have.
    pub(crate) fn paths(&self, id: &str, wanted: &Wanted) -> Vec<PathBuf> {
        self.branches_for(wanted).map(|branch| branch.path(id)).collect()
    }

    /// How it will enter them.
    pub(crate) fn plan(&self, wanted: &Wanted) -> GroupPlan {
        let (v2, v1): (Vec<_>, Vec<_>) =
            self.branches_for(wanted).partition(|branch| branch.version == Version::V2);
        GroupPlan { into: !v2.is_empty(), tasks: v1.len() as u32 }
    }

    fn branches_for(&self, wanted: &Wanted) -> impl Iterator<Item = &Branch> {
        self.branches.iter().filter(move |branch| branch.is_needed(wanted))
    }

    /// Makes the v2 group that the sandbox is born into, if it has one, and opens its directory. It limits nothing
    /// before [`Home::make`], so nothing may run in it until then.
    pub(crate) fn make_birthplace(&self, id: &str, wanted: &Wanted) -> Result<Option<OwnedFd>, FailedStep> {
        let Some(branch) = self.branches_for(wanted).find(|branch| branch.version == Version::V2) else {
            return Ok(None);
        };
        let path = branch.path(id);
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
        let made = fs::create_dir(&path)
            .and_then(|()| Ok(rustix::fs::open(&path, flags, rustix::fs::Mode::empty())?));
        made.map(Some).map_err(|error| (MAKE, error))
    }

    /// Makes the others and sets the limits of all. `fail_step`: for tests of failing closed, the step with this name fails.
    pub(crate) fn make(
        &self,
        id: &str,
        wanted: &Wanted,
        fail_step: Option<&str>,
    ) -> Result<Groups<'_>, FailedStep> {
        let forced = |step: &str| {
            if fail_step == Some(step) {
                Err(io::Error::from_raw_os_error(Errno::PERM.raw_os_error()))
            } else {
                Ok(())
            }
        };
        forced(MAKE).map_err(|error| (MAKE, error))?;
        let mut made = Vec::new();
        for branch in self.branches_for(wanted) {
            let path = branch.path(id);
            if branch.version == Version::V1 {
                fs::create_dir(&path).map_err(|error| (MAKE, error))?;
            }
            made.push((branch, path));
        }
        forced(LIMIT).map_err(|error| (LIMIT, error))?;
        for (branch, path) in &made {
            limit(branch, path, wanted).map_err(|error| (LIMIT, error))?;
        }
        Ok(Groups { made })
    }
}

fn limit(branch: &Branch, path: &Path, wanted: &Wanted) -> io::Result<()> {
    let needed = branch.controllers.iter().filter(|controller| wanted.needs(**controller));
    for setting in needed.flat_map(|controller| settings(branch.version, *controller, wanted)) {
        match write(&path.join(setting.file), &setting.value) {
            Err(error) if setting.may_be_missing && error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

impl Groups<'_> {
    /// Opens what is needed to enter them.
    pub(crate) fn descriptors(&self) -> io::Result<GroupDescriptors> {
        let mut descriptors = GroupDescriptors::default();
        for (branch, path) in &self.made {
            let events = match branch.version {
                Version::V2 => "memory.events",
                Version::V1 => {
                    let tasks = OpenOptions::new().write(true).open(path.join("tasks"))?;
                    descriptors.tasks.push(tasks.into());
                    "memory.oom_control"
                }
            };
            if branch.controllers.contains(&CgroupController::Memory) {
                descriptors.memory_events = Some(File::open(path.join(events))?.into());
            }
        }
        Ok(descriptors)
    }
}

/// `O_CREAT`, which `fs::write` has, would turn a file that is missing into one that may not be made.
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// Removes a sandbox's groups. What still runs in them is killed. That they are gone already is fine.
///
/// # Errors
/// `TimedOut` if what was killed does not end; the next sweep tries again.
pub(crate) fn remove(paths: &[PathBuf]) -> io::Result<()> {
    // A v2 group tells when it is empty, so it goes first: the same processes are in all of them.
    let (v2, v1): (Vec<_>, Vec<_>) = paths.iter().partition(|path| path.join(EVENTS).exists());
    v2.into_iter().chain(v1).try_for_each(|path| remove_one(path))
}

const EVENTS: &str = "cgroup.events";

/// Whether an error says that a group is not there any more: the files of one that is being removed answer ENODEV, whoever
/// has them open.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::NODEV.raw_os_error())
}

fn remove_one(path: &Path) -> io::Result<()> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match fs::remove_dir(path) {
            Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {}
            Err(error) if is_gone(&error) => return Ok(()),
            other => return other,
        }
        if Instant::now() >= give_up {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "a control group does not become empty"));
        }
        match File::open(path.join(EVENTS)) {
            Ok(events) => kill_group(path, events.as_fd(), give_up)?,
            Err(_) => kill_each(path)?,
        }
    }
}

/// Kills everything in a v2 group and waits until nobody is in it.
fn kill_group(path: &Path, events: BorrowedFd<'_>, give_up: Instant) -> io::Result<()> {
    match write(&path.join("cgroup.kill"), "1") {
        // Before Linux 5.14; or somebody else has removed the group.
        Err(error) if is_gone(&error) => return kill_each(path),
        other => other?,
    }
    wait_for_line(events, "populated 0", give_up).map(drop)
}

/// Waits until a v2 group's events have this line; `false` if that does not come in time.
fn wait_for_line(events: BorrowedFd<'_>, line: &str, give_up: Instant) -> io::Result<bool> {
    let mut buffer = [0; 256];
    loop {
        let count = match rustix::io::pread(events, &mut buffer, 0) {
            // The group was removed.
            Err(Errno::NODEV) => return Ok(true),
            read => read?,
        };
        if String::from_utf8_lossy(&buffer[..count]).lines().any(|found| found == line) {
            return Ok(true);
        }
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        // A change since the read above ends this wait at once.
        let timeout = rustix::time::Timespec::try_from(left).map_err(io::Error::other)?;
        let mut waited = [PollFd::from_borrowed_fd(events, PollFlags::PRI)];
        match poll(&mut waited, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills the processes of a group one by one and waits for each. A number that went to another process meanwhile is no
/// longer listed once its descriptor is open.
fn kill_each(path: &Path) -> io::Result<()> {
    for pid in pids(path)? {
        let Some(pid) = rustix::process::Pid::from_raw(pid) else { continue };
        let pidfd = match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            Err(Errno::SRCH) => continue,
            other => other?,
        };
        if pids(path)?.contains(&pid.as_raw_nonzero().get()) {
            kill_and_wait(&pidfd)?;
        }
    }
    // The kernel lets go of a dead process a moment after it has ended, and v1 has no word for that.
    std::thread::yield_now();
    Ok(())
}

fn pids(path: &Path) -> io::Result<Vec<i32>> {
    match fs::read_to_string(path.join("cgroup.procs")) {
        Err(error) if is_gone(&error) => Ok(Vec::new()),
        other => Ok(other?.lines().filter_map(|line| line.parse().ok()).collect()),
    }
}

/// Stops everything in a sandbox's groups, or lets it go on, and waits until that is so. `false`: none of the groups can.
pub(crate) fn freeze(paths: &[PathBuf], frozen: bool) -> io::Result<bool> {
    let has = |file: &str| paths.iter().map(|path| path.join(file)).find(|path| path.exists());
    let give_up = Instant::now() + PATIENCE;
    if let Some(file) = has("cgroup.freeze") {
        let events = File::open(file.with_file_name(EVENTS))?;
        write(&file, if frozen { "1" } else { "0" })?;
        let line = if frozen { "frozen 1" } else { "frozen 0" };
        return if wait_for_line(events.as_fd(), line, give_up)? {
            Ok(true)
        } else {
            Err(io::ErrorKind::TimedOut.into())
        };
    }
    let Some(file) = has(FREEZER) else { return Ok(false) };
    let state = if frozen { "FROZEN" } else { "THAWED" };
    write(&file, state)?;
    // A read makes v1 look again, and there is no event.
    while fs::read_to_string(&file)?.trim() != state {
        if Instant::now() >= give_up {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::yield_now();
    }
    Ok(true)
}

/// Before processes are killed: a v1 group that is frozen keeps them from dying.
pub(crate) fn let_die(paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        match write(&path.join(FREEZER), "THAWED") {
            Err(error) if !is_gone(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

const FREEZER: &str = "freezer.state";

/// What the groups say is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GroupUsage {
    pub memory_bytes: Option<u64>,
    pub memory_peak_bytes: Option<u64>,
    pub cpu_ms: Option<u64>,
}

/// Reads what is used. What none of the groups counts is absent.
pub(crate) fn measure(paths: &[PathBuf]) -> GroupUsage {
    let read = |file: &str| paths.iter().find_map(|path| fs::read_to_string(path.join(file)).ok());
    let number = |file: &str| read(file).and_then(|text| text.trim().parse::<u64>().ok());
    let cpu_us = read("cpu.stat").as_deref().and_then(|text| word(text, "usage_usec"));
    let cpu_ns = || number("cpuacct.usage").map(|ns| ns / 1000);
    GroupUsage {
        memory_bytes: number("memory.current").or_else(|| number("memory.usage_in_bytes")),
        memory_peak_bytes: number("memory.peak").or_else(|| number("memory.max_usage_in_bytes")),
        cpu_ms: cpu_us.or_else(cpu_ns).map(|us| us / 1000),
    }
}

/// The number behind a word at the start of a line.
fn word(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.trim().parse().ok())
}
