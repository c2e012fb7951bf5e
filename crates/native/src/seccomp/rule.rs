//! The rules of the filter. A rule is the answer to one system call: a decision, or a question
//! about an argument that leads to one.
//!
//! A rule is plain data, so it can be compared, shared and tested without a kernel. The filter sees
//! argument registers, never the memory that they point to. A call whose meaning is in a struct
//! (`clone3`) can only be allowed or refused as a whole.

/// Operation not permitted: the call is known and refused.
pub(super) const EPERM: i32 = 1;
/// No such call. libc and programs fall back to an older one.
pub(super) const ENOSYS: i32 = 38;
/// The protocol does not exist, as on a kernel built without it.
pub(super) const EPROTONOSUPPORT: i32 = 93;
/// The address family does not exist, as on a kernel built without it.
pub(super) const EAFNOSUPPORT: i32 = 97;

/// The outcome of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Decision {
    /// The kernel carries it out.
    Allow,
    /// The call fails with this error number (1..=4095), and the kernel does nothing. With 0 the
    /// call seems to succeed.
    Errno(i32),
}

/// 32 bits of one argument. BPF can't compare more at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Word {
    /// The index of the argument, 0..=5.
    pub(super) argument: u32,
    pub(super) high: bool,
}

/// The lower half of an argument. An `int` has only that, whatever the register's upper half holds.
pub(super) const fn low(argument: u32) -> Operand {
    Operand { word: Word { argument, high: false }, mask: u32::MAX }
}

/// The upper half of an argument, for pointers.
pub(super) const fn high(argument: u32) -> Operand {
    Operand { word: Word { argument, high: true }, mask: u32::MAX }
}

/// The bits of a word that a question looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Operand {
    pub(super) word: Word,
    pub(super) mask: u32,
}

impl Operand {
    /// Limits the question to these bits.
    pub(super) const fn masked(self, mask: u32) -> Self {
        Self { mask, ..self }
    }

    pub(super) const fn equals(self, value: u32) -> Question {
        Question { operand: self, test: Test::Equals(value) }
    }

    pub(super) const fn has_any_of(self, bits: u32) -> Question {
        Question { operand: self, test: Test::HasAnyOf(bits) }
    }
}

/// The comparison that is applied to an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Test {
    Equals(u32),
    HasAnyOf(u32),
}

/// A comparison with its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) operand: Operand,
    pub(super) test: Test,
}

/// The answer to one system call, depending on its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    Always(Decision),
    If { question: Question, yes: Box<Rule>, no: Box<Rule> },
}

pub(super) const ALLOW: Rule = Rule::Always(Decision::Allow);
pub(super) const REFUSE: Rule = Rule::Always(Decision::Errno(EPERM));
/// The caller is told that the call succeeded, but nothing is done.
pub(super) const SEEMS_DONE: Rule = Rule::Always(Decision::Errno(0));
pub(super) const UNKNOWN: Rule = Rule::Always(Decision::Errno(ENOSYS));

impl Rule {
    pub(super) fn when(question: Question, yes: Rule, no: Rule) -> Self {
        Self::If { question, yes: Box::new(yes), no: Box::new(no) }
    }

    /// Decides `yes` if the operand is one of the values, else `no`.
    pub(super) fn when_one_of(operand: Operand, values: &[u32], yes: &Rule, no: Rule) -> Self {
        values.iter().rev().fold(no, |rest, &value| Self::when(operand.equals(value), yes.clone(), rest))
    }
}
