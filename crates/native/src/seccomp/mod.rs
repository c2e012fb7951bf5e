//! The system call filter of a sandbox: an allowlist, as the seccomp-BPF program that the kernel takes.
//!
//! A namespace sandbox shares the host's kernel, so what it can't call can't be attacked. Known calls are
//! refused with EPERM, unknown ones (and those that programs have a fallback for) with ENOSYS, foreign ABIs
//! (ia32, x32) altogether with ENOSYS. x86_64 only. Here the program is made; installing it is the setup's
//! business. Compiling takes a fraction of a millisecond and the result is the same for the same policy:
//! keep it.
//!
//! `lists` and `policy` say what is allowed, `rule` how that is written down, `tree` and `assembler` make
//! it a program.

// The launcher installs filters that it is given: there, only `Instruction` is used.
#![cfg_attr(not(feature = "provider"), allow(dead_code, unused_imports))]

mod assembler;
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
pub use policy::Policy;
pub use rule::Decision;

/// The filter for a policy, ready for `seccomp(SECCOMP_SET_MODE_FILTER)`: at most a few hundred
/// instructions, every jump inside, a return at the end. It never fails.
pub fn compile(policy: &Policy) -> Vec<Instruction> {
    tree::compile(&policy::rules(policy))
}

/// How many instructions the filter for a policy has. The kernel takes 4096.
pub fn instruction_count(policy: &Policy) -> usize {
    compile(policy).len()
}
