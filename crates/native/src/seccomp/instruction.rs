//! The instructions of a filter. They are apart from the compiler, because the launcher installs
//! filters but makes none.

/// One instruction of classic BPF, laid out as the kernel's `struct sock_filter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// The operation: a sum of `BPF_*` class, size, mode, operation and source.
    pub code: u16,
    /// The number of instructions to skip if the comparison holds.
    pub jt: u8,
    /// The number of instructions to skip if it does not hold.
    pub jf: u8,
    /// The operand: an offset, a mask, a value to compare with or to return, or a jump's distance.
    pub k: u32,
}
