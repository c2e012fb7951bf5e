//! Requirements on the kernel's version, and detection of kernels that only call themselves Linux.

use rustix::io::Errno;

use super::cause::{ANY_STEP, Cause, Severity};
use super::facts::Facts;
use super::finding::Reason;

/// A version of Linux: major and minor number.
pub(super) type Version = (u32, u32);

/// The oldest kernel for sandboxes of an ordinary user. `mount_setattr` is the newest call that
/// they need.
pub(super) const FOR_USERS: Version = (5, 12);
/// The oldest kernel for sandboxes of root: it can put layers with mapped ids below an overlay.
pub(super) const FOR_ROOT: Version = (5, 19);

/// The features of later versions, each with the sentence for a host that lacks it.
const ADDED: [(Version, &str); 4] = [
    ((5, 19), "Landlock (ABI 2) comes with 5.19"),
    ((6, 6), "a state folder in a tmpfs comes with 6.6"),
    ((6, 12), "Landlock's cut through abstract sockets and signals (ABI 6) comes with 6.12"),
    ((6, 14), "a limit of processes for sandboxes that root makes comes with 6.14"),
];

/// Parses the version in a release such as `6.8.0-45-generic`.
pub(super) fn version(release: &str) -> Version {
    let mut numbers = release.split(['.', '-', '+']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}

/// The version that sandboxes of this caller need.
fn needed(facts: &Facts) -> Version {
    if facts.uid == 0 { FOR_ROOT } else { FOR_USERS }
}

pub(super) const CAUSES: &[Cause] = &[
    Cause {
        subject: "kernel",
        name: "gvisor",
        severity: Severity::Error,
        needs_failure: false,
        steps: ANY_STEP,
        errnos: &[],
        shows: gvisor,
    },
    Cause {
        subject: "kernel",
        name: "wsl1",
        severity: Severity::Error,
        needs_failure: false,
        steps: ANY_STEP,
        errnos: &[],
        shows: wsl1,
    },
    Cause {
        subject: "kernel",
        name: "architecture",
        severity: Severity::Error,
        needs_failure: false,
        steps: ANY_STEP,
        errnos: &[],
        shows: architecture,
    },
    Cause {
        subject: "kernel",
        name: "old-kernel",
        severity: Severity::Error,
        needs_failure: false,
        steps: ANY_STEP,
        errnos: &[Errno::NOSYS, Errno::INVAL, Errno::PERM, Errno::OPNOTSUPP],
        shows: old_kernel,
    },
    Cause {
        subject: "kernel",
        name: "missing-features",
        severity: Severity::Warn,
        needs_failure: false,
        steps: &[],
        errnos: &[],
        shows: missing_features,
    },
];

/// gVisor's kernel reports this version whatever the host.
fn gvisor(facts: &Facts) -> Option<Reason> {
    let is_gvisor = facts.kernel_version.contains("Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016");
    is_gvisor.then(|| {
        let why = "this is gVisor, which has neither overlays nor seccomp filters in user namespaces";
        Reason::new(why, "docker run --runtime=runc …")
    })
}

/// WSL 1 translates system calls. WSL 2 is a Linux kernel with `microsoft` in lower case.
fn wsl1(facts: &Facts) -> Option<Reason> {
    let is_wsl1 = facts.kernel.contains("Microsoft");
    is_wsl1.then(|| Reason::new("this is WSL 1, which is no Linux kernel", "wsl.exe --set-version Debian 2"))
}

fn architecture(facts: &Facts) -> Option<Reason> {
    let other = facts.machine != "x86_64";
    let why = || format!("this machine is {}; native sandboxes are for x86_64 only", facts.machine);
    other.then(|| Reason { why: why(), fix: None })
}

fn old_kernel(facts: &Facts) -> Option<Reason> {
    let (major, minor) = needed(facts);
    (version(&facts.kernel) < (major, minor)).then(|| {
        let who = if facts.uid == 0 { "root" } else { "an ordinary user" };
        let why = format!("Linux {} is too old: sandboxes of {who} need {major}.{minor}", facts.kernel);
        Reason::new(why, "sudo apt-get install linux-image-amd64 && sudo reboot")
    })
}

fn missing_features(facts: &Facts) -> Option<Reason> {
    let found = version(&facts.kernel);
    let missing: Vec<&str> =
        ADDED.iter().filter(|(version, _)| found < *version).map(|(_, what)| *what).collect();
    let why = || format!("Linux {} will do; {}", facts.kernel, missing.join("; "));
    (!missing.is_empty() && found >= needed(facts)).then(|| Reason { why: why(), fix: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_up_to_its_minor_number() {
        assert_eq!(version("6.8.0-45-generic"), (6, 8));
        assert_eq!(version("5.15-rc1"), (5, 15));
        assert_eq!(version("x"), (0, 0));
    }
}
