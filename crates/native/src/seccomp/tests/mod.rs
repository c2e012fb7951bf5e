//! The compiled filter, run by the interpreter.

mod agreement;
mod answers;
mod lists;
mod program;

use super::interpreter::{Call, run};
use super::rule::{Decision, ENOSYS, EPERM};
use super::syscalls::SYSCALLS;
use super::{Policy, compile};

const REFUSED_CALL: Decision = Decision::Errno(EPERM);
const UNKNOWN_CALL: Decision = Decision::Errno(ENOSYS);

const PLAIN: Policy = Policy {
    protect_pid_1: false,
    deny_setid: false,
};
const STRICT: Policy = Policy {
    protect_pid_1: true,
    deny_setid: true,
};

fn policies() -> [Policy; 4] {
    [
        PLAIN,
        Policy {
            protect_pid_1: true,
            ..PLAIN
        },
        Policy {
            deny_setid: true,
            ..PLAIN
        },
        STRICT,
    ]
}

fn number(name: &str) -> u32 {
    SYSCALLS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|&(_, number)| number)
        .expect(name)
}

/// The strictest policy's answer to a call with these first arguments.
fn answer(name: &str, arguments: &[u64]) -> Decision {
    decide(&STRICT, name, arguments)
}

fn decide(policy: &Policy, name: &str, arguments: &[u64]) -> Decision {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    run(&compile(policy), &Call::new(number(name), all)).decision
}

/// As they are, and with something in the upper half of the register.
fn with_high_bits(value: u64) -> [u64; 3] {
    [value, value | 1 << 32, value | 0xFFFF_FFFF << 32]
}
