//! The toolsets `coding`, `workspace` and `anthropic` over native sandboxes: the effect of a
//! model's calls on real files and processes.

mod commands;
mod computer;
mod editor;
mod edits;
mod files;
#[path = "../harness/mod.rs"]
mod harness;
mod search;
mod shell;
mod workspace;

use libtest_mimic::{Arguments, Failed};

use harness::{ensure, trial};

fn main() {
    let trials = [
        files::trials(),
        edits::trials(),
        commands::trials(),
        search::trials(),
        workspace::trials(),
        shell::trials(),
        editor::trials(),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials.into_iter().flatten().collect()).exit();
}

/// Fails, with both values, unless they are the same.
fn same(got: impl AsRef<str>, expected: impl AsRef<str>) -> Result<(), Failed> {
    let (got, expected) = (got.as_ref(), expected.as_ref());
    ensure(got == expected, format!("got {:?}, expected {:?}", shorten(got), shorten(expected)))
}

fn shorten(text: &str) -> String {
    match text.chars().count() {
        0..400 => text.to_owned(),
        length => format!("{}… ({length} characters)", text.chars().take(400).collect::<String>()),
    }
}
