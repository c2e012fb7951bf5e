//! Compilation of rules, ordered by number, into a BPF program that finds the rule by binary
//! search.
//!
//! When a filter is installed, the kernel runs it once for every system call, to remember which are
//! always allowed. A list of 330 comparisons takes 288 µs for that, a tree over ranges 43 µs. The
//! kernel can remember a call only if the way to its unconditional answer consists of loads,
//! comparisons, AND and returns.

use super::Instruction;
use super::assembler::{AND, Assembler, IF_ANY_BIT, IF_AT_LEAST, IF_EQUAL, LOAD, Label};
use super::rule::{Decision, Operand, Rule, Test, UNKNOWN, Word};

/// `offsetof(struct seccomp_data, nr)`, and the same for `arch` and `args`.
pub(super) const NUMBER_OFFSET: u32 = 0;
pub(super) const ARCH_OFFSET: u32 = 4;
pub(super) const ARGUMENTS_OFFSET: u32 = 16;

/// `AUDIT_ARCH_X86_64`. Calls of 32-bit code (`int 0x80`) carry another and mean other things by the same
/// numbers.
pub(super) const ARCH_X86_64: u32 = 0xC000_003E;

/// The largest number of single numbers that are compared one after the other: as deep as a tree of
/// them, and shorter.
const LONGEST_CHAIN: usize = 3;

/// Adjacent numbers with the same rule.
#[derive(Debug, Clone)]
struct Range {
    first: u32,
    last: u32,
    rule: Rule,
}

/// Compiles `rules`, which are indexed by system call number. Larger numbers are unknown, and with
/// them every x32 call: those are numbered from 0x4000_0000.
pub(super) fn compile(rules: &[Rule]) -> Vec<Instruction> {
    let mut program = Assembler::default();
    let unknown = emit(&mut program, &UNKNOWN, None);
    let search = search(&mut program, &ranges(rules));
    let native = program.then(LOAD, NUMBER_OFFSET, search);
    let check = program.branch(IF_EQUAL, ARCH_X86_64, native, unknown);
    let entry = program.then(LOAD, ARCH_OFFSET, check);
    program.finish(entry)
}

fn ranges(rules: &[Rule]) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    let beyond = (rules.len() as u32, u32::MAX, &UNKNOWN);
    let single = rules.iter().zip(0..).map(|(rule, number)| (number, number, rule));
    for (first, last, rule) in single.chain([beyond]) {
        match ranges.last_mut() {
            Some(range) if range.rule == *rule => range.last = last,
            _ => ranges.push(Range { first, last, rule: rule.clone() }),
        }
    }
    ranges
}

/// Writes the search for the range that contains the number in the accumulator.
fn search(program: &mut Assembler, ranges: &[Range]) -> Label {
    if let Some((usual, exceptions)) = chain(ranges) {
        let usual = emit(program, usual, None);
        return exceptions.iter().rev().fold(usual, |rest, range| {
            let rule = emit(program, &range.rule, None);
            program.branch(IF_EQUAL, range.first, rule, rest)
        });
    }
    let (below, above) = ranges.split_at(ranges.len() / 2);
    let (yes, no) = (search(program, above), search(program, below));
    program.branch(IF_AT_LEAST, above[0].first, yes, no)
}

/// Takes the ranges as one rule with a few single exceptions, if they have that form.
fn chain(ranges: &[Range]) -> Option<(&Rule, Vec<&Range>)> {
    if ranges.len() > 2 * LONGEST_CHAIN + 1 {
        return None;
    }
    let readings = ranges.iter().map(|range| (&range.rule, exceptions(ranges, &range.rule)));
    readings
        .filter(|(_, exceptions)| exceptions.iter().all(|range| range.first == range.last))
        .min_by_key(|(_, exceptions)| exceptions.len())
        .filter(|(_, exceptions)| exceptions.len() <= LONGEST_CHAIN)
}

fn exceptions<'r>(ranges: &'r [Range], usual: &Rule) -> Vec<&'r Range> {
    ranges.iter().filter(|range| range.rule != *usual).collect()
}

/// Writes a rule. `loaded` is the operand that is in the accumulator already.
fn emit(program: &mut Assembler, rule: &Rule, loaded: Option<Operand>) -> Label {
    let (question, yes, no) = match rule {
        Rule::Always(decision) => return program.ret(return_value(*decision)),
        Rule::If { question, yes, no } => (question, yes, no),
    };
    let operand = question.operand;
    let no = emit(program, no, Some(operand));
    let yes = emit(program, yes, Some(operand));
    let test = match question.test {
        Test::Equals(value) => program.branch(IF_EQUAL, value, yes, no),
        Test::HasAnyOf(bits) => program.branch(IF_ANY_BIT, bits, yes, no),
    };
    if loaded == Some(operand) { test } else { load(program, operand, test) }
}

fn load(program: &mut Assembler, operand: Operand, next: Label) -> Label {
    let masked = match operand.mask {
        u32::MAX => next,
        mask => program.then(AND, mask, next),
    };
    program.then(LOAD, offset(operand.word), masked)
}

/// Returns the offset of a word in `struct seccomp_data` on a little-endian machine.
pub(super) fn offset(word: Word) -> u32 {
    ARGUMENTS_OFFSET + 8 * word.argument + 4 * u32::from(word.high)
}

/// Returns `SECCOMP_RET_ALLOW`, or `SECCOMP_RET_ERRNO` with the number in its lower 16 bits.
pub(super) fn return_value(decision: Decision) -> u32 {
    match decision {
        Decision::Allow => 0x7FFF_0000,
        Decision::Errno(number) => 0x0005_0000 | (number as u32 & 0xFFF),
    }
}
