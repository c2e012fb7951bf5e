//! The system call filter of a sandbox: an allowlist, as the seccomp-BPF program that the kernel takes.
//!
//! A namespace sandbox shares the host's kernel, so what it can't call can't be attacked. Known calls are
//! refused with EPERM, unknown ones (and those that programs have a fallback for) with ENOSYS, foreign ABIs
//! (ia32, x32) altogether with ENOSYS. x86_64 only, one policy for every sandbox, and one for its egress program. Here the program is
//! made; installing it is the setup's business.
//!
//! `lists` and `policy` say what is allowed, `rule` how that is written down, `tree` and `assembler` make
//! it a program.

// The launcher installs filters that it is given: there, only `Instruction` is used.
#![cfg_attr(not(feature = "provider"), allow(dead_code))]

use std::sync::OnceLock;

mod assembler;
mod egress;
mod instruction;
mod lists;
mod policy;
mod rule;
mod syscalls;
mod tree;

#[cfg(test)]
mod expected;
#[cfg(test)]
mod interpreter;
#[cfg(test)]
mod tests;

pub use instruction::Instruction;

/// Returns the filter of every egress program, as [`filter`] does for sandboxes.
pub fn egress_filter() -> &'static [Instruction] {
    static FILTER: OnceLock<Vec<Instruction>> = OnceLock::new();
    FILTER.get_or_init(|| tree::compile(&egress::rules()))
}

/// Returns the filter of every sandbox, ready for `seccomp(SECCOMP_SET_MODE_FILTER)`: some 130
/// instructions of the 4096 that the kernel takes, every jump inside, a return at the end. It is
/// compiled with the first use, which takes a fraction of a millisecond and never fails.
pub fn filter() -> &'static [Instruction] {
    static FILTER: OnceLock<Vec<Instruction>> = OnceLock::new();
    FILTER.get_or_init(|| tree::compile(&policy::rules()))
}
