//! The system call filter of a sandbox: an allowlist, as the seccomp-BPF program that the kernel takes.
//!
//! A namespace sandbox shares the host's kernel, and code of the kernel that can't be called can't
//! be attacked. Known calls are refused with EPERM. Unknown ones, those that programs have a
//! fallback for, and all calls of foreign ABIs (ia32, x32) answer ENOSYS. There is one policy for
//! every sandbox and one for its egress program, both for x86_64 alone. This module compiles them;
//! the set-up installs them.
//!
//! `lists` and `policy` say what is allowed, `rule` is the form of that, and `tree` and `assembler`
//! compile it.

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
