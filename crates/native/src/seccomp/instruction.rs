//! What a filter consists of. Apart from its compiler, because the launcher installs filters and makes none.

/// One instruction of classic BPF, laid out as the kernel's `struct sock_filter`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// What it does: a sum of `BPF_*` class, size, mode, operation and source.
    pub code: u16,
    /// Instructions to skip where the comparison holds.
    pub jt: u8,
    /// Instructions to skip where it does not.
    pub jf: u8,
    /// The operand: an offset, a mask, a value to compare with or to return, or a jump's distance.
    pub k: u32,
}
