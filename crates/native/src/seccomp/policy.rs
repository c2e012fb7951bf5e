//! The policy of a sandbox: the lists, and the calls whose answer depends on their arguments.
//!
//! Arguments that are an `int` to the kernel are compared by their lower half alone: the kernel drops the
//! upper half, so a filter that looked at it could be walked around by setting it.

use std::collections::HashMap;

use super::lists::{ABSENT, ALLOWED, REFUSED};
use super::rule::{
    ALLOW, Decision, EAFNOSUPPORT, EPROTONOSUPPORT, Operand, REFUSE, Rule, UNKNOWN, high, low,
};
use super::syscalls::SYSCALLS;

/// What is refused beyond what every sandbox is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Refuse to change the limits, scheduling and priorities of pid 1. Needed wherever the workload can
    /// have the guest's user id: always in the `single` map, and in a range whose inner root may `setuid`
    /// to it.
    pub protect_pid_1: bool,
    /// Refuse to create a file with a set-user-id or set-group-id bit, or to set one: for sandboxes that
    /// can write to a folder of the host. `openat2` then answers ENOSYS, because its mode is out of a
    /// filter's sight.
    pub deny_setid: bool,
}

/// The rule of every number from 0 to the highest known one. Numbers without a name answer ENOSYS.
pub(super) fn rules(policy: &Policy) -> Vec<Rule> {
    let numbers: HashMap<&str, u32> = SYSCALLS.iter().copied().collect();
    let highest = SYSCALLS.iter().map(|&(_, number)| number).max().unwrap_or(0);
    let mut rules = vec![UNKNOWN; highest as usize + 1];
    for (name, rule) in named(policy) {
        if let Some(&number) = numbers.get(name) {
            rules[number as usize] = rule;
        }
    }
    rules
}

/// The rule of every call that is on a list or checked.
pub(super) fn named(policy: &Policy) -> impl Iterator<Item = (&'static str, Rule)> {
    let listed = [(ALLOWED, ALLOW), (REFUSED, REFUSE), (ABSENT, UNKNOWN)];
    let listed = listed
        .into_iter()
        .flat_map(|(names, rule)| names.iter().map(move |&name| (name, rule.clone())));
    listed.chain(checked(policy))
}

/// The calls whose rule looks at arguments under some policy.
fn checked(policy: &Policy) -> impl Iterator<Item = (&'static str, Rule)> {
    everywhere()
        .into_iter()
        .chain(about_pid_1(policy))
        .chain(about_modes(policy))
}

fn everywhere() -> Vec<(&'static str, Rule)> {
    vec![
        (
            "clone",
            Rule::when(low(0).has_any_of(NEW_NAMESPACE), REFUSE, ALLOW),
        ),
        (
            "unshare",
            Rule::when(low(0).has_any_of(!UNSHARE_WITHOUT_NAMESPACE), REFUSE, ALLOW),
        ),
        ("personality", personality()),
        ("socket", socket()),
        ("socketpair", socket()),
        (
            "ioctl",
            Rule::when_one_of(low(1), &[TIOCSTI, TIOCLINUX, TIOCCONS], &REFUSE, ALLOW),
        ),
    ]
}

/// The `CLONE_NEW*` bits that `clone` knows: mount, cgroup, UTS, IPC, user, pid, network. In `clone` the
/// bit of a time namespace is part of the exit signal, so it cannot be asked for.
const NEW_NAMESPACE: u32 = 0x7E02_0000;

/// `CLONE_VM`, `FS`, `FILES`, `SIGHAND`, `THREAD`, `SYSVSEM`: all that `unshare` can undo without a
/// namespace.
const UNSHARE_WITHOUT_NAMESPACE: u32 = 0x0005_0F00;

/// Puts a character into a terminal's input, as if typed; one's own controlling terminal included.
const TIOCSTI: u32 = 0x5412;
/// Pastes the selection of a virtual console, which comes to the same.
const TIOCLINUX: u32 = 0x541C;
/// Takes over the output of the console.
const TIOCCONS: u32 = 0x541D;

/// Execution domains that only change what `uname` says (`PER_LINUX32`, `UNAME26`), no address randomisation,
/// which gdb asks for, and 0xffffffff, which only reads.
fn personality() -> Rule {
    const HARMLESS: u32 = 0x0000_0008 | 0x0002_0000 | 0x0004_0000;
    let query = Rule::when(low(0).equals(u32::MAX), ALLOW, REFUSE);
    Rule::when(low(0).has_any_of(!HARMLESS), query, ALLOW)
}

/// Unix sockets of any kind, TCP and UDP, and route netlink. Others are "not supported", which programs
/// expect (libaudit treats it as a kernel without audit). Raw and packet sockets are "not permitted", as
/// without the capability: route netlink is opened with `SOCK_RAW` and is no raw socket.
fn socket() -> Rule {
    const UNIX: u32 = 1;
    const INET: u32 = 2;
    const INET6: u32 = 10;
    const NETLINK: u32 = 16;
    const STREAM_OR_DATAGRAM: &[u32] = &[1, 2];
    const NETLINK_ROUTE: u32 = 0;
    /// The rest of the type argument is `SOCK_CLOEXEC` and `SOCK_NONBLOCK`.
    const TYPE_BITS: u32 = 0xF;

    let errno = |number| Rule::Always(Decision::Errno(number));
    let internet = Rule::when_one_of(low(1).masked(TYPE_BITS), STREAM_OR_DATAGRAM, &ALLOW, REFUSE);
    let route = Rule::when(low(2).equals(NETLINK_ROUTE), ALLOW, errno(EPROTONOSUPPORT));
    let netlink = Rule::when(low(0).equals(NETLINK), route, errno(EAFNOSUPPORT));
    let family = Rule::when_one_of(low(0), &[INET, INET6], &internet, netlink);
    Rule::when(low(0).equals(UNIX), ALLOW, family)
}

/// Calls by which a process with the guest's user id could starve or cripple it.
fn about_pid_1(policy: &Policy) -> Vec<(&'static str, Rule)> {
    /// `setpriority` and `ioprio_set` count the kinds of `who` from 0 and from 1.
    const PRIO_USER: u32 = 2;
    const IOPRIO_WHO_USER: u32 = 3;

    let protect = |rule: Rule| if policy.protect_pid_1 { rule } else { ALLOW };
    let not_pid_1 = || Rule::when(low(0).equals(1), REFUSE, ALLOW);
    let limits = || {
        let changes = Rule::when(high(2).equals(0), ALLOW, REFUSE);
        Rule::when(
            low(0).equals(1),
            Rule::when(low(2).equals(0), changes, REFUSE),
            ALLOW,
        )
    };
    // A user is every process of his; a group 1 is led by pid 1.
    let priority = |user| {
        Rule::when(
            low(0).equals(user),
            REFUSE,
            Rule::when(low(1).equals(1), REFUSE, ALLOW),
        )
    };
    vec![
        ("prlimit64", protect(limits())),
        ("sched_setaffinity", protect(not_pid_1())),
        ("sched_setscheduler", protect(not_pid_1())),
        ("sched_setparam", protect(not_pid_1())),
        ("sched_setattr", protect(not_pid_1())),
        ("setpriority", protect(priority(PRIO_USER))),
        ("ioprio_set", protect(priority(IOPRIO_WHO_USER))),
    ]
}

/// Calls that give a file its type and mode.
fn about_modes(policy: &Policy) -> Vec<(&'static str, Rule)> {
    let plain = |mode| if policy.deny_setid { no_setid(mode) } else { ALLOW };
    // The mode only means something when a file is made, and may be garbage otherwise.
    let open = |flags: Operand, mode| Rule::when(flags.has_any_of(CREATES), plain(mode), ALLOW);
    let node = |mode: Operand| Rule::when(mode.masked(DEVICE_MASK).equals(DEVICE), REFUSE, plain(mode));
    vec![
        ("chmod", plain(low(1))),
        ("fchmod", plain(low(1))),
        ("fchmodat", plain(low(2))),
        ("fchmodat2", plain(low(2))),
        ("creat", plain(low(1))),
        ("open", open(low(1), low(2))),
        ("openat", open(low(2), low(3))),
        ("openat2", if policy.deny_setid { UNKNOWN } else { ALLOW }),
        ("mknod", node(low(1))),
        ("mknodat", node(low(2))),
    ]
}

/// `O_CREAT` and the bit of `O_TMPFILE` that is not `O_DIRECTORY`.
const CREATES: u32 = 0x0000_0040 | 0x0040_0000;

/// `S_IFCHR` is 0x2000 and `S_IFBLK` 0x6000: leaving 0x4000 out of `S_IFMT` makes them one, and no other
/// type.
const DEVICE_MASK: u32 = 0xB000;
const DEVICE: u32 = 0x2000;

fn no_setid(mode: Operand) -> Rule {
    const SETUID_OR_SETGID: u32 = 0o6000;
    Rule::when(mode.has_any_of(SETUID_OR_SETGID), REFUSE, ALLOW)
}
