//! An interpreter that runs a filter as the kernel would, for tests. It knows only the instructions
//! that the compiler writes, and panics on others.

use super::Instruction;
use super::assembler::{AND, IF_ANY_BIT, IF_AT_LEAST, IF_EQUAL, JUMP, LOAD, RETURN};
use super::rule::Decision;
use super::tree::ARCH_X86_64;

/// The kernel's input to a filter: `struct seccomp_data` without the instruction pointer.
#[derive(Debug, Clone, Copy)]
pub(super) struct SystemCall {
    pub(super) number: u32,
    pub(super) arch: u32,
    pub(super) arguments: [u64; 6],
}

impl SystemCall {
    pub(super) fn new(number: u32, arguments: [u64; 6]) -> Self {
        Self { number, arch: ARCH_X86_64, arguments }
    }

    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.arch,
            16..64 if offset.is_multiple_of(4) => {
                let argument = self.arguments[(offset as usize - 16) / 8];
                if offset.is_multiple_of(8) { argument as u32 } else { (argument >> 32) as u32 }
            }
            _ => panic!("no word of the call lies at {offset}"),
        }
    }
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FilterRun {
    pub(super) decision: Decision,
    /// The number of instructions that were carried out, the return included.
    pub(super) steps: usize,
}

pub(super) fn run(filter: &[Instruction], call: &SystemCall) -> FilterRun {
    let (mut accumulator, mut at) = (0_u32, 0);
    for steps in 1.. {
        let Instruction { code, jt, jf, k } = filter[at];
        let branch = |holds: bool| usize::from(if holds { jt } else { jf });
        at += 1;
        match code {
            LOAD => accumulator = call.word(k),
            AND => accumulator &= k,
            JUMP => at += k as usize,
            IF_EQUAL => at += branch(accumulator == k),
            IF_AT_LEAST => at += branch(accumulator >= k),
            IF_ANY_BIT => at += branch(accumulator & k != 0),
            RETURN => {
                return FilterRun { decision: decision(k), steps };
            }
            _ => panic!("instruction {code:#x} is not one the compiler writes"),
        }
    }
    unreachable!("a filter only jumps forward")
}

fn decision(value: u32) -> Decision {
    match value {
        0x7FFF_0000 => Decision::Allow,
        0x0005_0000..=0x0005_0FFF => Decision::Errno((value & 0xFFF) as i32),
        _ => panic!("{value:#x} is not a value the compiler returns"),
    }
}
