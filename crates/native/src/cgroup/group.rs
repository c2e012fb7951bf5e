//! The control groups of one sandbox: creation, limits, entry, freezing and removal.
//! The files in a group's directory tell what it supports, so a later Eyot process needs only the
//! path.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::CgroupController;
use super::home::{Branch, Home};
use super::position::CgroupVersion;
use super::setting::{GroupRequest, settings};
use crate::record::kill_and_wait;

/// The step that makes the groups. Errors and tests use this name.
const MAKE: &str = "make its control groups";
/// The step that sets their limits. Errors and tests use this name.
const LIMIT: &str = "set the limits of its control groups";

/// The longest wait for a group to become empty after everything in it was killed, or to freeze.
const PATIENCE: Duration = Duration::from_secs(5);

/// The descriptors with which a sandbox enters its groups, and learns that memory ran out.
#[derive(Debug, Default)]
pub(crate) struct GroupDescriptors {
    /// The `tasks` of each v1 group, open for writing.
    pub tasks: Vec<OwnedFd>,
    /// The file in which the kernel counts out-of-memory kills, open for reading.
    pub memory_events: Option<OwnedFd>,
}

/// The groups that a sandbox enters, and by which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GroupPlan {
    /// The sandbox is born into a v2 group (`CLONE_INTO_CGROUP`).
    pub into: bool,
    /// The number of v1 groups that the sandbox's first process moves itself into.
    pub tasks: u32,
}

/// Groups that were made. Dropping them does not remove them: their paths are in the sandbox's record.
#[derive(Debug)]
pub(crate) struct Groups<'a> {
    made: Vec<(&'a Branch, PathBuf)>,
}

/// A failed step's name, with its error.
pub(crate) type FailedStep = (&'static str, io::Error);

impl Home {
    /// Returns the directories that the groups of sandbox `id` will have.
    pub(crate) fn paths(&self, id: &str, wanted: &GroupRequest) -> Vec<PathBuf> {
        self.branches_for(wanted).map(|branch| branch.path(id)).collect()
    }

    /// Plans the entry into the groups for these limits.
    pub(crate) fn plan(&self, wanted: &GroupRequest) -> GroupPlan {
        let (v2, v1): (Vec<_>, Vec<_>) =
            self.branches_for(wanted).partition(|branch| branch.version == CgroupVersion::V2);
        GroupPlan { into: !v2.is_empty(), tasks: v1.len() as u32 }
    }

    fn branches_for(&self, wanted: &GroupRequest) -> impl Iterator<Item = &Branch> {
        self.branches.iter().filter(move |branch| branch.is_needed(wanted))
    }

    /// Makes the v2 group that the sandbox is born into, if it has one, and opens its directory. It limits nothing
    /// before [`Home::make`], so nothing may run in it until then.
    pub(crate) fn make_birthplace(
        &self,
        id: &str,
        wanted: &GroupRequest,
    ) -> Result<Option<OwnedFd>, FailedStep> {
        let Some(branch) = self.branches_for(wanted).find(|branch| branch.version == CgroupVersion::V2)
        else {
            return Ok(None);
        };
        let path = branch.path(id);
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
        let made = fs::create_dir(&path)
            .and_then(|()| Ok(rustix::fs::open(&path, flags, rustix::fs::Mode::empty())?));
        made.map(Some).map_err(|error| (MAKE, error))
    }

    /// Makes the v1 groups and sets the limits of all groups. The step named `fail_step` fails on
    /// purpose: tests use it to show that a create fails closed.
    pub(crate) fn make(
        &self,
        id: &str,
        wanted: &GroupRequest,
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
            if branch.version == CgroupVersion::V1 {
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

fn limit(branch: &Branch, path: &Path, wanted: &GroupRequest) -> io::Result<()> {
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
    /// Opens the files that the sandbox needs to enter its groups.
    pub(crate) fn descriptors(&self) -> io::Result<GroupDescriptors> {
        let mut descriptors = GroupDescriptors::default();
        for (branch, path) in &self.made {
            let events = match branch.version {
                CgroupVersion::V2 => "memory.events",
                CgroupVersion::V1 => {
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

/// Writes to a file that exists already. (`fs::write` passes `O_CREAT`, and the error for a missing
/// file would then be one for a file that may not be created.)
pub(super) fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// Kills what still runs in a sandbox's groups and removes them. Groups that are gone already are
/// no error.
///
/// # Errors
/// `TimedOut` if what was killed does not end; the next sweep tries again.
pub(crate) fn remove(paths: &[PathBuf]) -> io::Result<()> {
    // A v2 group tells when it is empty, so it goes first: the same processes are in all of them.
    let (v2, v1): (Vec<_>, Vec<_>) = paths.iter().partition(|path| path.join(EVENTS).exists());
    v2.into_iter().chain(v1).try_for_each(|path| remove_one(path))
}

const EVENTS: &str = "cgroup.events";

/// Tells whether an error means that the group was removed. Files of a removed group answer
/// `ENODEV` to every process that still has them open.
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

/// Kills every process in a v2 group and waits until the group is empty.
fn kill_group(path: &Path, events: BorrowedFd<'_>, give_up: Instant) -> io::Result<()> {
    match write(&path.join("cgroup.kill"), "1") {
        // Before Linux 5.14; or somebody else has removed the group.
        Err(error) if is_gone(&error) => return kill_each(path),
        other => other?,
    }
    wait_for_line(events, "populated 0", give_up).map(drop)
}

/// Waits until the file `cgroup.events` of a v2 group has this line. Returns `false` when that has
/// not happened by `give_up`.
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

/// Kills the processes of a group one by one and waits for each. The list is read again after a
/// process was opened: a number that another process got in the meantime is no longer in it.
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

/// Freezes or thaws everything in a sandbox's groups, and waits until that is done. Returns `false`
/// if none of the groups can be frozen.
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

/// Thaws frozen v1 groups, because a killed process does not die while its v1 group is frozen.
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
