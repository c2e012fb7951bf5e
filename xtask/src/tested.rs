//! Running test programs: all they say is shown as they say it, and the tests that failed are kept,
//! to be tried once more each by itself and to be named where the whole run ends. A run is longer
//! than what a terminal or a log keeps of it.

mod said;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, PipeReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use said::{Failure, Said};

/// The number of tests in a run that may pass only the second time.
const MAX_UNSTEADY: usize = 3;
/// The time that a line may be on its way after its program's end. A process that a test left
/// running may hold the pipe for ever.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The result of a run.
#[derive(Debug, Default)]
pub struct Run {
    /// Tests that failed once, and then passed by themselves.
    unsteady: Vec<String>,
    /// The failures.
    failed: Vec<String>,
}

impl Run {
    /// Runs what tests, `cargo test` or one of its programs, which `what` names. A test that fails
    /// is tried a second time, by itself, by what `again` makes of its program's path: with all of
    /// them at once some wait too short.
    pub fn try_all(
        &mut self,
        what: &str,
        command: &mut Command,
        again: impl Fn(Option<&Path>) -> Option<Command>,
    ) {
        let (status, said) = match watch(command) {
            Ok(done) => done,
            Err(error) => return self.failed.push(format!("{what}: {error}")),
        };
        let failures = said.failures();
        // Whoever died has no list of what failed; nor has a build.
        if !status.success() && !said.explains(status) {
            self.failed.push(format!("{what}: {status}"));
        }
        for failure in failures {
            self.try_again(what, &failure, again(failure.program.as_deref()));
        }
    }

    fn try_again(&mut self, what: &str, failure: &Failure, again: Option<Command>) {
        let program = failure.program.as_deref().unwrap_or(Path::new(what));
        let told = format!("{} in {}\n{}", failure.name, program.display(), failure.text);
        let Some(mut again) = again else { return self.failed.push(told) };
        println!("\n     Once more, by itself: {}", failure.name);
        match watch(again.args(["--exact", &failure.name])) {
            Ok((status, said)) if status.success() && said.passed() == 1 => self.unsteady.push(told),
            Ok((status, _)) => self.failed.push(format!("{told}\nand once more: {status}")),
            Err(error) => self.failed.push(format!("{told}\nand once more: {error}")),
        }
    }

    /// Names what failed, and what passed only the second time; the latter is a failure when it is
    /// many.
    pub fn end(self) -> Result<(), String> {
        if !self.unsteady.is_empty() {
            println!("\nUNSTEADY: these failed once and passed when they were tried again:");
        }
        for test in &self.unsteady {
            println!("{}", indented(test));
        }
        if self.failed.is_empty() && self.unsteady.len() <= MAX_UNSTEADY {
            return Ok(());
        }
        let mut told = format!("{} tests failed, and {} failed once", self.failed.len(), self.unsteady.len());
        for failed in &self.failed {
            let _written = write!(told, "\n{}", indented(failed));
        }
        Err(told)
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// Runs a program to its end and shows what it says on both streams, in the order in which it says
/// it.
fn watch(command: &mut Command) -> Result<(ExitStatus, Said), String> {
    let (reader, writer) = std::io::pipe().map_err(|error| error.to_string())?;
    let second = writer.try_clone().map_err(|error| error.to_string())?;
    let child = command.stdout(writer).stderr(second).spawn();
    // The command keeps what it was given; the pipe ends when nobody has it any more.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut child = child.map_err(|error| error.to_string())?;
    let lines = lines_of(reader);
    let mut said = Said::default();
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        match lines.recv_timeout(LAST_LINES) {
            Ok(line) => {
                println!("{line}");
                said.hear(&line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if ended.is_some() => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        match ended {
            Some((_, at)) if at.elapsed() > LAST_LINES => break,
            Some(_) => {}
            None => {
                let status = child.try_wait().map_err(|error| error.to_string())?;
                ended = status.map(|status| (status, Instant::now()));
            }
        }
    }
    match ended {
        Some((status, _)) => Ok((status, said)),
        None => child.wait().map(|status| (status, said)).map_err(|error| error.to_string()),
    }
}

fn lines_of(reader: PipeReader) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned();
            line.clear();
            if sender.send(text).is_err() {
                return;
            }
        }
    });
    receiver
}
