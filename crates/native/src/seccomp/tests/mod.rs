//! Tests that run the compiled filter in the interpreter.

mod agreement;
mod answers;
mod lists;
mod program;

use super::filter;
use super::interpreter::{SystemCall, run};
use super::rule::{Decision, ENOSYS, EPERM};
use super::syscalls::SYSCALLS;

const REFUSED_CALL: Decision = Decision::Errno(EPERM);
const UNKNOWN_CALL: Decision = Decision::Errno(ENOSYS);

fn number(name: &str) -> u32 {
    SYSCALLS.iter().find(|(known, _)| *known == name).map(|&(_, number)| number).expect(name)
}

/// Returns the filter's answer to a call with these first arguments; the others are zero.
fn answer(name: &str, arguments: &[u64]) -> Decision {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    run(filter(), &SystemCall::new(number(name), all)).decision
}

/// Returns the value as it is, and with something in the upper half of the register.
fn with_high_bits(value: u64) -> [u64; 3] {
    [value, value | 1 << 32, value | 0xFFFF_FFFF << 32]
}
