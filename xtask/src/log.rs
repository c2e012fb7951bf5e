//! The logs of jobs. Jobs run side by side, so each has a log file of its own, which is printed
//! whole when the job has ended. A thread without a log prints to the terminal.

use std::cell::RefCell;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::process::Command;

thread_local! {
    static LOG: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// Has this thread print to a log from now on.
pub fn keep(log: File) {
    LOG.set(Some(log));
}

/// Prints a line.
pub fn say(line: impl Display) {
    LOG.with_borrow_mut(|log| match log {
        Some(log) => {
            if let Err(error) = writeln!(log, "{line}") {
                eprintln!("xtask: a line of a log is lost: {error}: {line}");
            }
        }
        None => println!("{line}"),
    });
}

/// Points both streams of a command to the log of this thread, if it has one.
pub fn redirect(command: &mut Command) -> io::Result<()> {
    if let Some(log) = copy()? {
        command.stdout(log.try_clone()?).stderr(log);
    }
    Ok(())
}

/// Points the errors of a command to the log of this thread, if it has one.
pub fn redirect_errors(command: &mut Command) -> io::Result<()> {
    if let Some(log) = copy()? {
        command.stderr(log);
    }
    Ok(())
}

/// The log of this thread, for a thread that it starts.
pub fn copy() -> io::Result<Option<File>> {
    LOG.with_borrow(|log| log.as_ref().map(File::try_clone).transpose())
}
