//! The compiled filter against the policy evaluated directly, for every number and around every boundary.

use std::collections::HashSet;

use super::{number, with_high_bits};
use crate::seccomp::expected;
use crate::seccomp::filter;
use crate::seccomp::interpreter::{SystemCall, run};
use crate::seccomp::policy::named;
use crate::seccomp::rule::Rule;
use crate::seccomp::syscalls::SYSCALLS;

/// Lists values on both sides of every boundary that a rule has.
fn boundaries() -> Vec<u64> {
    #[rustfmt::skip]
    let words: [u64; 26] = [
        0x3, 0x6, 0xA, 0xF, 0x10, 0x11, 0x1F, 0x28, 0x3A, 0x88, 0x106, 0x1000, 0x2000, 0x4000, 0x5412, 0x541C,
        0x541D, 0x5423, 0x6000, 0x8000, 0xC000, 0x2_0000, 0x4_0000, 0x6_0008, 0x200_0000, 0x8000_0000,
    ];
    let bits = (0..32).map(|bit| 1_u64 << bit);
    let near = words.iter().flat_map(|&word| [word - 1, word, word + 1]);
    let others = [0, 1, 2, 0x5_0F00, 0x7E02_0000, 0xFFFF_FFFE, 0xFFFF_FFFF];
    near.chain(bits).chain(others).collect::<HashSet<u64>>().into_iter().collect()
}

fn assert_as_expected(call: &SystemCall) {
    assert_eq!(run(filter(), call).decision, expected::decision(call), "{call:x?}");
}

#[test]
fn every_number_is_answered_as_the_policy_says() {
    let foreign = (0x4000_0000..0x4000_0400).chain([0x7FFF_FFFF, 0x8000_0000, u32::MAX]);
    for number in (0..1024).chain(foreign) {
        for fill in [0, 1, u64::MAX] {
            assert_as_expected(&SystemCall::new(number, [fill; 6]));
        }
    }
}

#[test]
fn every_boundary_of_every_argument_is_answered_as_the_policy_says() {
    let values: Vec<u64> = boundaries().into_iter().flat_map(with_high_bits).collect();
    for &(_, number) in SYSCALLS {
        for &value in &values {
            for argument in 0..6 {
                let mut arguments = [0; 6];
                arguments[argument] = value;
                assert_as_expected(&SystemCall::new(number, arguments));
            }
        }
    }
}

#[test]
fn every_pair_of_boundaries_is_answered_as_the_policy_says() {
    let checked = named().filter(|(_, rule)| matches!(rule, Rule::If { .. }));
    for number in checked.map(|(name, _)| number(name)) {
        for (first, second) in [(0, 1), (0, 2), (1, 2), (1, 3)] {
            pairs(first, second, |arguments| assert_as_expected(&SystemCall::new(number, arguments)));
        }
    }
}

fn pairs(first: usize, second: usize, mut check: impl FnMut([u64; 6])) {
    let values = boundaries();
    for &one in &values {
        for &other in &values {
            let mut arguments = [0; 6];
            arguments[first] = one;
            arguments[second] = other;
            check(arguments);
        }
    }
}

#[test]
fn every_socket_of_small_family_type_and_protocol_is_answered_as_the_policy_says() {
    let families_and_kinds = (0..48).flat_map(|family| (0..16).map(move |kind| (family, kind)));
    for (family, kind) in families_and_kinds {
        for protocol in (0..24).chain([57, 58, 59, 115, 132, 136, 255, 256, 261, 262, 263]) {
            for flags in [0, 0x800, 0x8_0000, 0x8_0800] {
                let arguments = [family, kind | flags, protocol, 0, 0, 0];
                assert_as_expected(&SystemCall::new(number("socket"), arguments));
            }
        }
    }
}
