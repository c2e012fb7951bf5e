//! The exit status in envd's words. envd has no field for the number of a signal; its status names it,
//! as Go's library does.

use eyot::{Error, ErrorKind, ExitStatus, Result};

use super::events::ProcessEnd;

/// The names that Go has for Linux's signals, from 1 on.
const SIGNALS: [&str; 31] = [
    "hangup",
    "interrupt",
    "quit",
    "illegal instruction",
    "trace/breakpoint trap",
    "aborted",
    "bus error",
    "floating point exception",
    "killed",
    "user defined signal 1",
    "segmentation fault",
    "user defined signal 2",
    "broken pipe",
    "alarm clock",
    "terminated",
    "stack fault",
    "child exited",
    "continued",
    "stopped (signal)",
    "stopped",
    "stopped (tty input)",
    "stopped (tty output)",
    "urgent I/O condition",
    "CPU time limit exceeded",
    "file size limit exceeded",
    "virtual timer expired",
    "profiling timer expired",
    "window changed",
    "I/O possible",
    "power failure",
    "bad system call",
];

/// Reads the exit status of a process.
///
/// # Errors
/// `unavailable` for one that can't be known: none is invented.
pub(super) fn status(end: &ProcessEnd) -> Result<ExitStatus> {
    if end.exited {
        return Ok(ExitStatus::Exited(end.exit_code));
    }
    let named = end.status.strip_prefix("signal: ").map(|rest| rest.trim_end_matches(" (core dumped)"));
    let number = named.and_then(|name| match name.strip_prefix("signal ") {
        Some(number) => number.parse().ok(),
        None => SIGNALS.iter().position(|known| *known == name).and_then(|at| i32::try_from(at + 1).ok()),
    });
    number
        .map(ExitStatus::Signaled)
        .ok_or_else(|| Error::new(ErrorKind::Unavailable, "E2B does not say how the command ended"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(exited: bool, exit_code: i32, status: &str) -> ProcessEnd {
        ProcessEnd { exit_code, exited, status: status.to_owned() }
    }

    #[test]
    fn an_exit_and_a_signal_are_told_apart() {
        assert_eq!(status(&end(true, 137, "exit status 137")).unwrap(), ExitStatus::Exited(137));
        assert_eq!(status(&end(false, -1, "signal: killed")).unwrap(), ExitStatus::Signaled(9));
        let dumped = end(false, -1, "signal: segmentation fault (core dumped)");
        assert_eq!(status(&dumped).unwrap(), ExitStatus::Signaled(11));
        assert_eq!(status(&end(false, -1, "signal: signal 34")).unwrap(), ExitStatus::Signaled(34));
        assert_eq!(status(&end(false, -1, "something new")).unwrap_err().kind(), ErrorKind::Unavailable);
    }
}
