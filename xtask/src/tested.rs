//! Running test programs: the tests that failed are kept, to be tried once more each by itself when
//! everything else has ended, and to be named where the whole run ends. So are the times of all
//! tests, and why some were ignored.

mod said;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, PipeReader};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::log::say;
use crate::process::output;
use said::{Failure, Said};

/// The module that the tests of the soak are in, and the beginning of their names.
pub const OF_SOAK: &str = "soak::";
/// The number of tests in a run that may pass only the second time.
const MAX_UNSTEADY: usize = 3;
/// The time that a line may be on its way after its program's end. A process that a test left
/// running may hold the pipe for ever.
const LAST_LINES: Duration = Duration::from_secs(1);
/// The time that a test program may run. The longest of the soak takes 25 minutes.
const LONGEST: Duration = Duration::from_secs(45 * 60);
/// The number of slowest tests that are printed.
const SLOWEST: usize = 30;

/// Makes a command.
pub type Make = Arc<dyn Fn() -> Command + Send + Sync>;

/// A test program, and how it is run.
pub struct Program {
    /// The name, with the user where that is another one.
    pub name: String,
    /// Makes a command that runs it without arguments.
    pub command: Make,
    /// The arguments.
    pub arguments: Vec<String>,
    /// The number of its tests that run side by side.
    pub threads: usize,
    /// Tells whether a test that failed is tried a second time, by itself. With thousands of
    /// processes on two cores some wait too short. A protection is never tried again.
    pub is_tried_again: bool,
}

/// A test that failed and may be tried again.
struct Suspect {
    program: String,
    failure: Failure,
    command: Make,
}

/// The result of a run.
#[derive(Default)]
pub struct Run {
    suspects: Vec<Suspect>,
    /// The failures that stay.
    failed: Vec<String>,
    /// Tests that failed once, and then passed by themselves.
    unsteady: Vec<String>,
    passed: usize,
    /// The number of tests that only the soak runs.
    of_soak: usize,
    /// The number of ignored tests for each reason, and one of them.
    ignored: BTreeMap<String, (usize, String)>,
    /// The time that each test took.
    times: Vec<(String, Duration)>,
}

impl Run {
    /// Runs a test program to its end, and keeps what failed. An error says why it could not be
    /// run.
    pub fn try_all(&mut self, program: Program) -> Result<(), String> {
        let Program { name, command, arguments, threads, is_tried_again } = program;
        let order = listed(command().args(&arguments))?;
        let mut test = command();
        test.args(&arguments).arg(format!("--test-threads={threads}"));
        let (status, said) = watch(&mut test).map_err(|error| format!("{name}: {error}"))?;
        self.passed += said.passed();
        if arguments == without_soak() {
            self.of_soak += said.filtered_out();
        }
        for (test, reason) in said.ignored() {
            let (count, _) =
                self.ignored.entry(reason.clone()).or_insert_with(|| (0, format!("{name} {test}")));
            *count += 1;
        }
        let times = said.times(&order, threads).into_iter();
        self.times.extend(times.map(|(test, took)| (format!("{name} {test}"), took)));
        // A program that died has no list of what failed, and one that ends early without a word
        // has not passed.
        let is_explained = if status.success() { said.has_ended() } else { said.explains(status) };
        if !is_explained {
            self.failed.push(format!("{name}: {status}"));
        }
        for failure in said.failures() {
            if is_tried_again {
                let (program, command) = (name.clone(), Arc::clone(&command));
                self.suspects.push(Suspect { program, failure, command });
            } else {
                self.failed.push(told(&name, &failure));
            }
        }
        Ok(())
    }

    /// Takes over the result of another run.
    pub fn merge(&mut self, other: Self) {
        self.suspects.extend(other.suspects);
        self.failed.extend(other.failed);
        self.unsteady.extend(other.unsteady);
        self.passed += other.passed;
        self.of_soak += other.of_soak;
        for (reason, (count, test)) in other.ignored {
            self.ignored.entry(reason).or_insert((0, test)).0 += count;
        }
        self.times.extend(other.times);
    }

    /// Tries again, each by itself, the tests that failed and may be. Nothing else runs by now.
    pub fn try_again(&mut self) {
        for suspect in std::mem::take(&mut self.suspects) {
            let told = told(&suspect.program, &suspect.failure);
            say(format_args!("\n     Once more, by itself: {}", suspect.failure.name));
            match watch((suspect.command)().args(["--exact", &suspect.failure.name])) {
                Ok((status, said)) if status.success() && said.passed() == 1 => self.unsteady.push(told),
                Ok((status, _)) => self.failed.push(format!("{told}\nand once more: {status}")),
                Err(error) => self.failed.push(format!("{told}\nand once more: {error}")),
            }
        }
    }

    /// Takes in what else failed once and then passed.
    pub fn note_unsteady(&mut self, told: Vec<String>) {
        self.unsteady.extend(told);
    }

    /// Prints the slowest tests, and how many tests ran.
    pub fn print(&mut self) {
        self.times.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        say(format_args!("\n{:>8}  the {SLOWEST} slowest tests", "seconds"));
        for (test, took) in self.times.iter().take(SLOWEST) {
            say(format_args!("{:>8.1}  {test}", took.as_secs_f64()));
        }
        let ignored: usize = self.ignored.values().map(|(count, _)| count).sum();
        let (passed, unsteady, failed) = (self.passed, self.unsteady.len(), self.failed.len());
        say(format_args!(
            "\n{passed} tests passed, {ignored} are ignored, {unsteady} passed when tried again, {failed} failed; \
             {} more are run by cargo xtask soak",
            self.of_soak
        ));
        for (reason, (count, test)) in &self.ignored {
            say(format_args!(
                "{count:>8}  ignored: {}; {test}",
                if reason.is_empty() { "no reason" } else { reason }
            ));
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
        let failed: String = self.failed.iter().map(|failed| format!("\n{}", indented(failed))).collect();
        Err(format!("{} failed, and {} tests failed once{failed}", self.failed.len(), self.unsteady.len()))
    }
}

/// Returns the arguments that leave out the tests of the soak.
pub fn without_soak() -> Vec<String> {
    ["--skip", OF_SOAK].map(str::to_owned).to_vec()
}

fn told(program: &str, failure: &Failure) -> String {
    format!("{} in {program}\n{}", failure.name, failure.text)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// The tests of a program, in the order in which it begins them.
fn listed(command: &mut Command) -> Result<Vec<String>, String> {
    let said = output(command.arg("--list"))?;
    let name = |line: &str| line.strip_suffix(": test").map(|name| name.trim().to_owned());
    Ok(said.lines().filter_map(name).collect())
}

/// Runs a program to its end and shows what it says on both streams, in the order in which it says
/// it.
fn watch(command: &mut Command) -> Result<(ExitStatus, Said), String> {
    let (reader, writer) = std::io::pipe().map_err(|error| error.to_string())?;
    let second = writer.try_clone().map_err(|error| error.to_string())?;
    let began = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(writer).stderr(second).spawn();
    // The command keeps what it was given; the pipe ends when nobody has it any more.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut child = child.map_err(|error| error.to_string())?;
    let lines = lines_of(reader);
    let mut said = Said::default();
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        match lines.recv_timeout(LAST_LINES) {
            Ok(line) => {
                say(&line);
                said.hear(&line, began.elapsed());
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if ended.is_some() => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        match ended {
            Some((_, at)) if at.elapsed() > LAST_LINES => break,
            Some(_) => {}
            None => {
                if began.elapsed() > LONGEST {
                    child.kill().map_err(|error| error.to_string())?;
                }
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
