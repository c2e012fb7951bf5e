//! The tools' answers about commands and processes, part by part.

use eyot::{ExitStatus, Outcome, ProcessInfo, ProcessStatus, Signal};

/// The parts of an answer that there are, a blank line between them.
pub(super) fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// A stream's output under its name, unless there is none.
pub(super) fn output(stream: &str, text: &str) -> Option<String> {
    (!text.is_empty()).then(|| format!("{stream}:\n{}", text.trim_end()))
}

/// That something is so, if it is.
pub(super) fn flag(name: &str, is_so: bool) -> Option<String> {
    is_so.then(|| format!("{name}: true"))
}

/// Describes a started process; `stopped` if it was just stopped.
pub(super) fn process(info: &ProcessInfo, stopped: bool) -> String {
    let asked_to_end = [Signal::TERM.0, Signal::KILL.0];
    let (status, exit_code) = match info.status {
        ProcessStatus::Running => ("running", None),
        ProcessStatus::Ended(status) => {
            let by_signal = matches!(status, ExitStatus::Signaled(signal) if asked_to_end.contains(&signal));
            let word = if stopped || by_signal { "stopped" } else { "exited" };
            (word, Some(Outcome::from(status).exit_code()))
        }
    };
    let mut text = format!("process_id: {}\nstatus: {status}\ncommand: {}", info.id, info.command);
    if let Some(exit_code) = exit_code {
        text.push_str(&format!("\nexit_code: {exit_code}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use eyot::ProcessId;

    fn info(status: ProcessStatus) -> ProcessInfo {
        let command = "node server.js".to_owned();
        let (started_ms, ended_ms, timed_out) = (0, None, false);
        ProcessInfo { id: ProcessId(1), pid: 7, command, status, started_ms, ended_ms, timed_out }
    }

    #[test]
    fn a_process_is_running_exited_or_stopped_with_its_code() {
        let running = process(&info(ProcessStatus::Running), false);
        assert_eq!(running, "process_id: p1\nstatus: running\ncommand: node server.js");
        let exited = process(&info(ProcessStatus::Ended(ExitStatus::Exited(3))), false);
        assert_eq!(exited, "process_id: p1\nstatus: exited\ncommand: node server.js\nexit_code: 3");
        let stopped = process(&info(ProcessStatus::Ended(ExitStatus::Signaled(15))), false);
        assert_eq!(stopped, "process_id: p1\nstatus: stopped\ncommand: node server.js\nexit_code: 143");
        let crashed = process(&info(ProcessStatus::Ended(ExitStatus::Signaled(11))), false);
        assert!(crashed.contains("status: exited") && crashed.ends_with("exit_code: 139"));
    }

    #[test]
    fn output_is_trimmed_at_its_end_and_left_out_if_there_is_none() {
        let parts = [Some("exit_code: 0".to_owned()), output("stdout", " a\n\n"), output("stderr", "")];
        assert_eq!(joined(parts), "exit_code: 0\n\nstdout:\n a");
    }
}
