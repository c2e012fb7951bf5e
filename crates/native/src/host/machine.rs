//! Resources of the host that sandboxes need: open files, processes, memory to run programs from,
//! devices, inotify.

use rustix::io::Errno;

use super::cause::{ANY_STEP, Cause, Severity};
use super::facts::Facts;
use super::finding::Reason;

const LAUNCHER: &str = "start the sandbox launcher";

/// The recommended limit of open files for a process that makes sandboxes: the launcher keeps one
/// descriptor for each sandbox.
const GOOD_OPEN_FILES: u64 = 1024;
/// With fewer, no guest is started.
const LEAST_OPEN_FILES: u64 = 80;
/// The kernel's default limit of inotify instances for a user. Each sandbox may use some.
const GOOD_INOTIFY: u64 = 128;

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        subject: "open-files",
        name: "none-left",
        severity: Severity::Error,
        needs_failure: true,
        steps: ANY_STEP,
        errnos: &[Errno::MFILE],
        shows: no_descriptors_left,
    },
    Cause {
        subject: "open-files",
        name: "too-few",
        severity: Severity::Error,
        needs_failure: true,
        steps: &["start the guest"],
        errnos: &[Errno::INVAL],
        shows: too_few_open_files,
    },
    Cause {
        subject: "open-files",
        name: "low-limit",
        severity: Severity::Warn,
        needs_failure: false,
        steps: &[],
        errnos: &[],
        shows: low_open_files,
    },
    Cause {
        subject: "open-files",
        name: "none-left-on-the-host",
        severity: Severity::Error,
        needs_failure: true,
        steps: ANY_STEP,
        errnos: &[Errno::NFILE],
        shows: |_| Some(Reason::new("the host has no open file left", "sudo sysctl -w fs.file-max=1000000")),
    },
    Cause {
        subject: "processes",
        name: "none-left",
        severity: Severity::Error,
        needs_failure: true,
        steps: &["create the namespaces", LAUNCHER],
        errnos: &[Errno::AGAIN],
        shows: no_processes_left,
    },
    Cause {
        subject: "processes",
        name: "real-time",
        severity: Severity::Error,
        needs_failure: true,
        steps: &["enter its control groups"],
        errnos: &[Errno::INVAL],
        shows: |_| {
            let why = "processes with a real-time priority can't enter a cgroup v1 group";
            Some(Reason::new(why, "chrt --other --pid 0 $$"))
        },
    },
    Cause {
        subject: "memory-files",
        name: "not-executable",
        severity: Severity::Warn,
        needs_failure: false,
        steps: &[LAUNCHER, "start the guest", "start the egress program"],
        errnos: &[Errno::ACCESS, Errno::PERM],
        shows: memfd_without_exec,
    },
    Cause {
        subject: "devices",
        name: "missing",
        severity: Severity::Error,
        needs_failure: false,
        steps: &["bind a host path"],
        errnos: &[Errno::NOENT, Errno::NODEV],
        shows: missing_devices,
    },
    Cause {
        subject: "inotify",
        name: "low-limit",
        severity: Severity::Warn,
        needs_failure: false,
        steps: &[],
        errnos: &[],
        shows: low_inotify,
    },
];

fn no_descriptors_left(facts: &Facts) -> Option<Reason> {
    let most = facts.open_files.map_or_else(|| "its limit".to_owned(), |most| format!("{most} at the most"));
    let why = format!("this process has no open file left (`ulimit -n`: {most})");
    Some(Reason::new(why, "ulimit -Sn hard || sudo prlimit --pid $$ --nofile=65536"))
}

/// The guest's descriptors are numbered from 64 on for a moment.
fn too_few_open_files(facts: &Facts) -> Option<Reason> {
    let most = facts.open_files.filter(|most| *most < LEAST_OPEN_FILES)?;
    let why = format!("this process may open {most} files, and making a sandbox takes {LEAST_OPEN_FILES}");
    Some(Reason::new(why, "ulimit -Sn hard || sudo prlimit --pid $$ --nofile=65536"))
}

fn low_open_files(facts: &Facts) -> Option<Reason> {
    let most = facts.open_files.filter(|most| *most < GOOD_OPEN_FILES)?;
    let why = format!(
        "this process may open {most} files; whoever makes sandboxes needs a dozen at a time, and one for each"
    );
    Some(Reason::new(why, "sudo prlimit --pid $$ --nofile=65536"))
}

fn no_processes_left(facts: &Facts) -> Option<Reason> {
    let most = facts.processes.map_or_else(|| "unlimited".to_owned(), |most| most.to_string());
    let why = format!(
        "this user has no process left (`ulimit -u`: {most}; or the limit of a control group around)"
    );
    Some(Reason::new(why, "sudo prlimit --pid $$ --nproc=unlimited"))
}

/// Reports `vm.memfd_noexec`. With the value 1 a program in memory must ask to be executable, which
/// Eyot's do. With 2 that is refused. The guest's program is a file and the launcher of a command that
/// makes one sandbox is a thread, so neither needs it.
fn memfd_without_exec(facts: &Facts) -> Option<Reason> {
    facts.setting("vm.memfd_noexec").filter(|value| *value >= 2).map(|value| {
        let why = format!(
            "programs in memory can't be run here (vm.memfd_noexec is {value}), which servers, `eyot mcp`, `call` and \
             `pool`, the network egress and limits by the user manager need; `eyot run` and `create` do not, where the \
             state folder can hold programs"
        );
        Reason::new(why, "sudo sysctl -w vm.memfd_noexec=1")
    })
}

fn missing_devices(facts: &Facts) -> Option<Reason> {
    let missing = facts.missing_devices.join(", ");
    (!missing.is_empty()).then(|| {
        let why = format!("device files are missing here: {missing}");
        Reason::new(why, "sudo mount -t devtmpfs devtmpfs /dev")
    })
}

fn low_inotify(facts: &Facts) -> Option<Reason> {
    let most = facts.setting("fs.inotify.max_user_instances").filter(|most| *most < GOOD_INOTIFY)?;
    let why =
        format!("a user may have {most} inotify instances; sandboxes and what watches them share these");
    Some(Reason::new(why, "sudo sysctl -w fs.inotify.max_user_instances=1024"))
}
