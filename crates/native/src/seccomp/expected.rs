//! The policy written a second time, as plain Rust that evaluates a call directly. Tests compare
//! the compiled filters with it.
//!
//! It shares only the lists of names with the policy, neither its rules nor its constants.

use super::interpreter::SystemCall;
use super::lists::{ALLOWED, REFUSED};
use super::rule::Decision::{self, Allow, Errno};
use super::syscalls::SYSCALLS;

const REFUSE: Decision = Errno(1);
const UNKNOWN: Decision = Errno(38);

pub(super) fn decision(call: &SystemCall) -> Decision {
    if call.arch != 0xC000_003E {
        return UNKNOWN;
    }
    let Some((name, _)) = SYSCALLS.iter().find(|(_, number)| *number == call.number) else {
        return UNKNOWN;
    };
    match *name {
        name if ALLOWED.contains(&name) => Allow,
        name if REFUSED.contains(&name) => REFUSE,
        name => by_arguments(name, call.arguments),
    }
}

fn allow_if(condition: bool) -> Decision {
    if condition { Allow } else { REFUSE }
}

fn by_arguments(name: &str, arguments: [u64; 6]) -> Decision {
    let [a, b, c, ..] = arguments.map(|argument| argument as u32);
    let device = |mode: u32| matches!(mode & 0o170_000, 0o020_000 | 0o060_000);
    match name {
        "clone" => allow_if(a & 0x7E02_0000 == 0),
        "sync" => Errno(0),
        "unshare" => allow_if(a & !(0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000 | 0x4_0000) == 0),
        "personality" => allow_if(a == u32::MAX || a & !0x6_0008 == 0),
        "ioctl" => allow_if(!matches!(b, 0x5412 | 0x541C | 0x541D | 0x5423)),
        "socket" | "socketpair" => socket(a, b, c),
        "setrlimit" if a == 4 => Errno(0),
        "setrlimit" => Allow,
        "prlimit64" if a == 0 && b == 4 && arguments[2] != 0 && arguments[3] == 0 => Errno(0),
        "prlimit64" if a == 0 && b == 4 => allow_if(arguments[2] == 0),
        "prlimit64" => allow_if(a == 0 || arguments[2] == 0),
        "sched_setaffinity" | "sched_setscheduler" | "sched_setparam" | "sched_setattr" => allow_if(a != 1),
        "setpriority" => allow_if(a != 2 && b != 1),
        "ioprio_set" => allow_if(a != 3 && b != 1),
        "mknod" => allow_if(!device(b)),
        "mknodat" => allow_if(!device(c)),
        _ => UNKNOWN,
    }
}

fn socket(family: u32, kind: u32, protocol: u32) -> Decision {
    match (family, kind & 0xF, protocol) {
        (1, _, _) | (16, _, 0) => Allow,
        (2 | 10, 1, 0 | 6 | 262) | (2 | 10, 2, 0 | 1 | 17 | 58) => Allow,
        (2 | 10, 1 | 2, _) | (16, _, _) => Errno(93),
        (2 | 10, _, _) => REFUSE,
        _ => Errno(97),
    }
}
