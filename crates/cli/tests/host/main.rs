//! Reasons why a host cannot run sandboxes. Each is made real where this machine allows it, and
//! otherwise simulated by facts. `eyot doctor` reports it, and so does every command that meets it,
//! with the same sentence and the same fix.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod doctor;
mod real;
mod scene;
mod simulated;
mod sys;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// A test: passes, is ignored with a reason, or panics.
pub type Test = fn() -> Result<(), String>;

/// Lists functions with their names.
macro_rules! tests {
    ($($name:ident;)*) => {
        pub fn tests() -> Vec<(&'static str, crate::Test)> {
            vec![$((stringify!($name), $name)),*]
        }
    };
}
pub(crate) use tests;

fn main() -> ExitCode {
    let all = [real::tests(), simulated::tests(), doctor::tests()];
    let trial = |(name, test): (&'static str, Test)| Trial::ignorable_test(name, move || run(test));
    let trials = all.into_iter().flatten().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn run(test: Test) -> Result<Completion, Failed> {
    match test() {
        Ok(()) => Ok(Completion::Completed),
        Err(reason) => Ok(Completion::ignored_with(reason)),
    }
}
