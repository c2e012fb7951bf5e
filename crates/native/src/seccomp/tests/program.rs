//! The shape of the compiled program: the kernel's demands, the speed, and very long jumps.

use crate::seccomp::assembler::{IF_ANY_BIT, IF_AT_LEAST, IF_EQUAL, JUMP, RETURN};
use crate::seccomp::interpreter::{SystemCall, run};
use crate::seccomp::policy::rules;
use crate::seccomp::rule::{ALLOW, Decision, REFUSE, Rule, low};
use crate::seccomp::{Instruction, filter, tree};

/// Checks the kernel's demands on a filter, and that nothing runs off its end.
fn assert_well_formed(filter: &[Instruction]) {
    assert!(filter.len() < 4096);
    assert_eq!(filter.last().map(|last| last.code), Some(RETURN));
    for (at, instruction) in filter.iter().enumerate() {
        let furthest = match instruction.code {
            JUMP => instruction.k as usize,
            IF_EQUAL | IF_AT_LEAST | IF_ANY_BIT => usize::from(instruction.jt.max(instruction.jf)),
            _ => 0,
        };
        assert!(
            at + furthest + usize::from(instruction.code != RETURN) < filter.len(),
            "{at}: {instruction:?}"
        );
    }
}

#[test]
fn the_filter_is_well_formed_and_short() {
    assert_well_formed(filter());
    assert!(filter().len() <= 160, "{}", filter().len());
}

#[test]
fn every_instruction_of_the_filter_is_reachable() {
    let filter = filter();
    let mut reached = vec![false; filter.len()];
    reached[0] = true;
    for (at, instruction) in filter.iter().enumerate() {
        assert!(reached[at], "{at}: {instruction:?}");
        match instruction.code {
            RETURN => {}
            JUMP => reached[at + 1 + instruction.k as usize] = true,
            _ => {
                reached[at + 1 + usize::from(instruction.jt)] = true;
                reached[at + 1 + usize::from(instruction.jf)] = true;
            }
        }
    }
}

#[test]
fn no_unconditional_answer_takes_more_than_a_dozen_steps() {
    let filter = filter();
    let steps = |number| run(filter, &SystemCall::new(number, [0; 6])).steps;
    let of_rules = rules().into_iter().zip(0..).filter(|(rule, _)| matches!(rule, Rule::Always(_)));
    let deepest = of_rules.map(|(_, number)| steps(number)).max();
    assert!(deepest <= Some(12), "{deepest:?}");
}

#[test]
fn jumps_too_long_for_eight_bits_still_arrive() {
    // Hardly two neighbours alike, so that the tree is far larger than a jump can reach.
    let rule = |number: u32| match number.wrapping_mul(2_654_435_761) >> 28 {
        0..4 => ALLOW,
        4..8 => REFUSE,
        kind => {
            Rule::when(low(kind % 6).equals(number), ALLOW, Rule::Always(Decision::Errno(kind as i32 + 20)))
        }
    };
    let rules: Vec<Rule> = (0..1024).map(rule).collect();
    let filter = tree::compile(&rules);
    assert_well_formed(&filter);
    assert!(filter.len() > 1024);
    assert!(filter.iter().any(|instruction| instruction.code == JUMP));
    for (expected, number) in rules.iter().zip(0..) {
        for fill in [0, u64::from(number)] {
            let outcome = run(&filter, &SystemCall::new(number, [fill; 6]));
            assert_eq!(outcome.decision, evaluate(expected, [fill; 6]), "{number}");
        }
    }
}

fn evaluate(rule: &Rule, arguments: [u64; 6]) -> Decision {
    match rule {
        Rule::Always(decision) => *decision,
        Rule::If { question, yes, no } => {
            let value = arguments[question.operand.word.argument as usize] as u32;
            let holds = question.test == low(question.operand.word.argument).equals(value).test;
            evaluate(if holds { yes } else { no }, arguments)
        }
    }
}
