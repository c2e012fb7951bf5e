//! The toolsets `coding`, `workspace` and `anthropic` over native sandboxes: what a model's calls do to real files and
//! processes.

mod commands;
mod computer;
mod editor;
mod edits;
mod files;
mod search;
mod shell;
mod workspace;

use std::future::Future;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};

/// No test may hang; nothing is timed otherwise.
const HANG: Duration = Duration::from_secs(120);

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

/// A case as a trial, with a runtime of its own.
fn trial<F>(name: &str, case: fn() -> F) -> Trial
where
    F: Future<Output = Result<(), Failed>> + 'static,
{
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async { tokio::time::timeout(HANG, case()).await })?
    })
}

/// `Err` with the message unless the condition holds.
fn ensure(condition: bool, message: impl Into<String>) -> Result<(), Failed> {
    if condition { Ok(()) } else { Err(message.into().into()) }
}

/// `Err` with both unless they are the same.
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
