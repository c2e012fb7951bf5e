//! The policy of a sandbox: the lists, and the calls whose answer depends on their arguments.
//!
//! Arguments that the kernel takes as an `int` are compared by their lower half alone. The kernel
//! drops the upper half, so a filter that looked at it could be evaded by setting it.

use std::collections::HashMap;

use super::lists::{ABSENT, ALLOWED, REFUSED};
use super::rule::{
    ALLOW, Decision, EAFNOSUPPORT, EPROTONOSUPPORT, REFUSE, Rule, SEEMS_DONE, UNKNOWN, high, low,
};
use super::syscalls::SYSCALLS;

/// Lists the rule of every number from 0 to the highest known one. Numbers without a name answer
/// ENOSYS.
pub(super) fn rules() -> Vec<Rule> {
    by_number(named())
}

/// Orders rules by number. If a name has two, the later one holds.
pub(super) fn by_number(named: impl Iterator<Item = (&'static str, Rule)>) -> Vec<Rule> {
    let numbers: HashMap<&str, u32> = SYSCALLS.iter().copied().collect();
    let highest = SYSCALLS.iter().map(|&(_, number)| number).max().unwrap_or(0);
    let mut rules = vec![UNKNOWN; highest as usize + 1];
    for (name, rule) in named {
        if let Some(&number) = numbers.get(name) {
            rules[number as usize] = rule;
        }
    }
    rules
}

/// Lists the rule of every call that is on a list or checked.
pub(super) fn named() -> impl Iterator<Item = (&'static str, Rule)> {
    let listed = [(ALLOWED, ALLOW), (REFUSED, REFUSE), (ABSENT, UNKNOWN)];
    let listed =
        listed.into_iter().flat_map(|(names, rule)| names.iter().map(move |&name| (name, rule.clone())));
    listed.chain(checked())
}

/// Lists the calls whose rule depends on arguments.
fn checked() -> impl Iterator<Item = (&'static str, Rule)> {
    about_the_machine().into_iter().chain(about_pid_1())
}

/// Lists calls that reach for namespaces, terminals, protocols and devices.
fn about_the_machine() -> Vec<(&'static str, Rule)> {
    vec![
        ("clone", Rule::when(low(0).has_any_of(NEW_NAMESPACE), REFUSE, ALLOW)),
        // It would write everything that all programs of the host have changed, as often as it is called. Who needs a file
        // on the disk has `fsync` and `syncfs`.
        ("sync", SEEMS_DONE),
        ("unshare", Rule::when(low(0).has_any_of(!UNSHARE_WITHOUT_NAMESPACE), REFUSE, ALLOW)),
        ("personality", personality()),
        ("socket", socket()),
        ("socketpair", socket()),
        ("ioctl", Rule::when_one_of(low(1), &[TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD], &REFUSE, ALLOW)),
        ("mknod", Rule::when(low(1).masked(DEVICE_MASK).equals(DEVICE), REFUSE, ALLOW)),
        ("mknodat", Rule::when(low(2).masked(DEVICE_MASK).equals(DEVICE), REFUSE, ALLOW)),
    ]
}

/// The `CLONE_NEW*` bits that `clone` knows: mount, cgroup, UTS, IPC, user, pid, network. In `clone` the
/// bit of a time namespace is part of the exit signal, so it cannot be asked for.
const NEW_NAMESPACE: u32 = 0x7E02_0000;

/// `CLONE_VM`, `FS`, `FILES`, `SIGHAND`, `THREAD`, `SYSVSEM`: all that `unshare` can undo without a
/// namespace.
const UNSHARE_WITHOUT_NAMESPACE: u32 = 0x0005_0F00;

/// Inserts a character into a terminal's input, as if typed, even in the caller's own terminal.
const TIOCSTI: u32 = 0x5412;
/// Pastes the selection of a virtual console, which also inserts input.
const TIOCLINUX: u32 = 0x541C;
/// Takes over the output of the console.
const TIOCCONS: u32 = 0x541D;
/// Changes a terminal's line discipline, for which the kernel loads rarely used modules.
const TIOCSETD: u32 = 0x5423;

/// `S_IFCHR` is 0x2000 and `S_IFBLK` 0x6000: leaving 0x4000 out of `S_IFMT` makes them one, and no other
/// type.
const DEVICE_MASK: u32 = 0xB000;
const DEVICE: u32 = 0x2000;

/// Execution domains that only change what `uname` says (`PER_LINUX32`, `UNAME26`), no address randomisation,
/// which gdb asks for, and 0xffffffff, which only reads.
fn personality() -> Rule {
    const HARMLESS: u32 = 0x0000_0008 | 0x0002_0000 | 0x0004_0000;
    let query = Rule::when(low(0).equals(u32::MAX), ALLOW, REFUSE);
    Rule::when(low(0).has_any_of(!HARMLESS), query, ALLOW)
}

/// Unix sockets of any kind, the usual protocols of the internet, and route netlink. Others are "not
/// supported", which programs expect (libaudit treats it as a kernel without audit). Raw and packet sockets
/// are "not permitted", as without the capability: route netlink is opened with `SOCK_RAW` and is no raw
/// socket.
pub(super) fn socket() -> Rule {
    const UNIX: u32 = 1;
    const INET: u32 = 2;
    const INET6: u32 = 10;
    const NETLINK: u32 = 16;
    const NETLINK_ROUTE: u32 = 0;

    let route = Rule::when(low(2).equals(NETLINK_ROUTE), ALLOW, errno(EPROTONOSUPPORT));
    let netlink = Rule::when(low(0).equals(NETLINK), route, errno(EAFNOSUPPORT));
    let family = Rule::when_one_of(low(0), &[INET, INET6], &internet(), netlink);
    Rule::when(low(0).equals(UNIX), ALLOW, family)
}

/// The protocols that programs use. The kernel would load a module for others (SCTP, L2TP, SMC), or has code
/// that next to nobody runs (UDP-Lite).
fn internet() -> Rule {
    /// The rest of the type argument is `SOCK_CLOEXEC` and `SOCK_NONBLOCK`.
    const TYPE_BITS: u32 = 0xF;
    const STREAM: u32 = 1;
    const DATAGRAM: u32 = 2;
    /// The type's usual one, TCP, and MPTCP, which Go's listeners ask for before they fall back to TCP.
    const OF_STREAMS: &[u32] = &[0, 6, 262];
    /// The type's usual one, UDP, and ICMP and ICMPv6: `ping` without a raw socket.
    const OF_DATAGRAMS: &[u32] = &[0, 17, 1, 58];

    let protocol = |values| Rule::when_one_of(low(2), values, &ALLOW, errno(EPROTONOSUPPORT));
    let kind = low(1).masked(TYPE_BITS);
    let datagram = Rule::when(kind.equals(DATAGRAM), protocol(OF_DATAGRAMS), REFUSE);
    Rule::when(kind.equals(STREAM), protocol(OF_STREAMS), datagram)
}

pub(super) fn errno(number: i32) -> Rule {
    Rule::Always(Decision::Errno(number))
}

/// The limit of core files. The set-up uses it to keep crashes from starting a program of the host,
/// and a limit of 0 would let them start it again. Programs that hold secrets set a limit of 0, and
/// some end if that fails; so the call seems to succeed, and changes nothing.
const RLIMIT_CORE: u32 = 4;

/// Allows `prlimit64` on oneself. A caller that changes the limit of core files and asks for the
/// old one as well is refused, because nothing would be written to where the old one belongs.
fn own_limits() -> Rule {
    let is_null = |argument, yes, no: Rule| {
        Rule::when(low(argument).equals(0), Rule::when(high(argument).equals(0), yes, no.clone()), no)
    };
    let of_core_files = is_null(2, ALLOW, is_null(3, SEEMS_DONE, REFUSE));
    Rule::when(low(1).equals(RLIMIT_CORE), of_core_files, ALLOW)
}

/// Lists calls by which a process with the guest's user id could starve or cripple the guest: every
/// process in the `single` map; in a range, processes to which an inner root gives that id by
/// `setuid`.
fn about_pid_1() -> Vec<(&'static str, Rule)> {
    /// `setpriority` and `ioprio_set` count the kinds of `who` from 0 and from 1.
    const PRIO_USER: u32 = 2;
    const IOPRIO_WHO_USER: u32 = 3;

    let not_pid_1 = || Rule::when(low(0).equals(1), REFUSE, ALLOW);
    // A thread of the guest is named by a number that no filter knows, and its limits are the whole guest's: so only
    // one's own limits are changed (0, which is all that libc asks for), others' are read.
    let limits = || {
        let reads = Rule::when(high(2).equals(0), ALLOW, REFUSE);
        Rule::when(low(0).equals(0), own_limits(), Rule::when(low(2).equals(0), reads, REFUSE))
    };
    // A user is every process of his; a group 1 is led by pid 1.
    let priority =
        |user| Rule::when(low(0).equals(user), REFUSE, Rule::when(low(1).equals(1), REFUSE, ALLOW));
    vec![
        ("prlimit64", limits()),
        ("setrlimit", Rule::when(low(0).equals(RLIMIT_CORE), SEEMS_DONE, ALLOW)),
        ("sched_setaffinity", not_pid_1()),
        ("sched_setscheduler", not_pid_1()),
        ("sched_setparam", not_pid_1()),
        ("sched_setattr", not_pid_1()),
        ("setpriority", priority(PRIO_USER)),
        ("ioprio_set", priority(IOPRIO_WHO_USER)),
    ]
}
