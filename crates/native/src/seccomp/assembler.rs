//! An assembler that writes a BPF program backwards, so that the target of a jump exists before the
//! jump.
//!
//! Classic BPF jumps only forward, so if a program is written from its end, every distance is known
//! when it is needed. An instruction that exists already is not written twice, so rules share their
//! tails. A conditional jump reaches 255 instructions. Beyond that it goes to a stand-in nearby: a
//! copy of the return, or an unconditional jump.

use std::collections::HashMap;

use super::Instruction;

/// `BPF_LD | BPF_W | BPF_ABS`: load 32 bits of `struct seccomp_data`.
pub(super) const LOAD: u16 = 0x20;
/// `BPF_ALU | BPF_AND | BPF_K`.
pub(super) const AND: u16 = 0x54;
/// `BPF_JMP | BPF_JA`.
pub(super) const JUMP: u16 = 0x05;
/// `BPF_JMP | BPF_JEQ | BPF_K`.
pub(super) const IF_EQUAL: u16 = 0x15;
/// `BPF_JMP | BPF_JGE | BPF_K`, unsigned.
pub(super) const IF_AT_LEAST: u16 = 0x35;
/// `BPF_JMP | BPF_JSET | BPF_K`: is any of these bits set.
pub(super) const IF_ANY_BIT: u16 = 0x45;
/// `BPF_RET | BPF_K`.
pub(super) const RETURN: u16 = 0x06;

/// A position in the program, counted from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Label(usize);

/// An instruction whose jump targets are labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LabelledStep {
    Return(u32),
    Then(u16, u32, Label),
    Branch(u16, u32, Label, Label),
}

/// The program so far, last instruction first.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    backwards: Vec<Instruction>,
    written: HashMap<LabelledStep, Label>,
    stand_ins: HashMap<Label, Label>,
}

impl Assembler {
    /// Adds an instruction that ends the filter with this value.
    pub(super) fn ret(&mut self, value: u32) -> Label {
        self.once(LabelledStep::Return(value), |this| this.push(RETURN, 0, 0, value))
    }

    /// Adds an instruction with `code` and `k` (a load, or an operation on the accumulator) that
    /// continues at `next`.
    pub(super) fn then(&mut self, code: u16, k: u32, next: Label) -> Label {
        self.once(LabelledStep::Then(code, k, next), |this| {
            if next.0 + 1 != this.backwards.len() {
                this.stand_in(next);
            }
            this.push(code, 0, 0, k)
        })
    }

    /// Adds a comparison of the accumulator with `k` that continues at `yes` or at `no`.
    pub(super) fn branch(&mut self, code: u16, k: u32, yes: Label, no: Label) -> Label {
        if yes == no {
            return yes;
        }
        self.once(LabelledStep::Branch(code, k, yes, no), |this| {
            let (yes, no) = (this.within_reach(yes), this.within_reach(no));
            let (jt, jf) = (this.distance(yes) as u8, this.distance(no) as u8);
            this.push(code, jt, jf, k)
        })
    }

    /// Returns the program, in order, with `entry` as its first instruction.
    pub(super) fn finish(mut self, entry: Label) -> Vec<Instruction> {
        if entry.0 + 1 != self.backwards.len() {
            self.stand_in(entry);
        }
        self.backwards.reverse();
        self.backwards
    }

    fn once(&mut self, step: LabelledStep, write: impl FnOnce(&mut Self) -> Label) -> Label {
        if let Some(&label) = self.written.get(&step) {
            return label;
        }
        let label = write(self);
        self.written.insert(step, label);
        label
    }

    /// Returns a label that leads to `target`, near enough for a conditional jump even if one more
    /// instruction (the stand-in of its other target) is added.
    fn within_reach(&mut self, target: Label) -> Label {
        const REACH: usize = u8::MAX as usize - 1;
        let nearest = self.stand_ins.get(&target).copied().unwrap_or(target);
        if self.distance(nearest) <= REACH { nearest } else { self.stand_in(target) }
    }

    fn stand_in(&mut self, target: Label) -> Label {
        let original = self.backwards[target.0];
        let label = match original.code {
            RETURN => self.push(RETURN, 0, 0, original.k),
            _ => self.push(JUMP, 0, 0, self.distance(target) as u32),
        };
        self.stand_ins.insert(target, label);
        label
    }

    /// Counts the instructions that the next one would have to skip to reach `target`.
    fn distance(&self, target: Label) -> usize {
        self.backwards.len() - target.0 - 1
    }

    fn push(&mut self, code: u16, jt: u8, jf: u8, k: u32) -> Label {
        self.backwards.push(Instruction { code, jt, jf, k });
        Label(self.backwards.len() - 1)
    }
}
