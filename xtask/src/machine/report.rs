//! The output of the machine's console. Lines of the run's own begin with its mark, which no test
//! can know. The rest comes from the test programs, and from the kernel when it is in trouble.

use std::fmt;

use super::COMMANDS;
use crate::log::say;

/// The console's last lines that are shown when the machine did not come to its end.
const LAST_LINES: usize = 60;

/// The state of a run so far.
#[derive(Debug)]
pub struct Report {
    mark: String,
    last: std::collections::VecDeque<String>,
    runs: Vec<Run>,
    end: Option<String>,
    trouble: Option<String>,
}

/// One program, run as somebody.
#[derive(Debug)]
struct Run {
    name: String,
    code: Option<i32>,
    failed: Vec<String>,
    /// The program's own sum: `ok. 12 passed; …`.
    sum: Option<String>,
}

/// Something to be shown at once.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    /// A line of a test program.
    Line(String),
    /// A step of the machine itself.
    Step(String),
}

impl Report {
    /// Of a run with this mark; nothing was said yet.
    pub fn new(mark: &str) -> Self {
        Self { mark: mark.to_owned(), last: Default::default(), runs: Vec::new(), end: None, trouble: None }
    }

    /// Takes a line of the console.
    pub fn line(&mut self, line: &str) -> News {
        let line = line.trim_end();
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
        match line.strip_prefix(&self.mark) {
            Some(said) => News::Step(self.step(said.trim_start())),
            None => {
                self.of_a_program(line);
                News::Line(line.to_owned())
            }
        }
    }

    fn step(&mut self, said: &str) -> String {
        let words: Vec<&str> = said.split(' ').collect();
        match words[..] {
            ["begin", program, user, ref filter @ ..] => {
                let name = format!("{program} as {user} {}", filter.concat()).trim_end().to_owned();
                self.runs.push(Run { name: name.clone(), code: None, failed: Vec::new(), sum: None });
                format!("Running {name} in the machine")
            }
            ["ended", program, _, code] => {
                if let Some(run) = self.runs.last_mut() {
                    run.code = code.parse().ok();
                    if COMMANDS.contains(&program) {
                        run.sum = Some(format!("exit {code}"));
                    }
                }
                format!("Ended with {code}")
            }
            ["end", ..] => {
                self.end = Some(words[1..].join(" "));
                "The machine ends".to_owned()
            }
            _ => said.to_owned(),
        }
    }

    fn of_a_program(&mut self, line: &str) {
        if line.contains("Kernel panic") {
            self.trouble = Some(line.to_owned());
        }
        let Some(run) = self.runs.last_mut().filter(|run| run.code.is_none()) else { return };
        if let Some(sum) = line.strip_prefix("test result: ") {
            run.sum = Some(sum.split("; finished").next().unwrap_or(sum).to_owned());
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix("FAILED")) {
            run.failed.push(name.trim_end_matches([' ', '.']).to_owned());
        }
    }

    /// The machine was stopped, or stopped by itself, for this reason.
    pub fn trouble(&mut self, what: impl fmt::Display) {
        self.trouble.get_or_insert_with(|| what.to_string());
    }

    /// Shows what came of every program.
    pub fn print(&self) {
        say(format_args!("\nIn the machine:"));
        for run in &self.runs {
            let sum = run.sum.as_deref().unwrap_or("did not come to its end");
            say(format_args!("  {:42} {sum}", run.name));
            for failed in &run.failed {
                say(format_args!("    FAILED {failed}"));
            }
        }
    }

    /// Returns an error unless everything was run to its end and nothing failed.
    ///
    /// # Errors
    /// The reason; with the console's last lines when the machine did not come to its end.
    pub fn result(&self) -> Result<(), String> {
        let ended = self.end.as_deref();
        if self.trouble.is_some() || ended != Some("done") {
            let why = self.trouble.as_deref().or(ended).unwrap_or("it stopped before its end");
            let last: Vec<&str> = self.last.iter().map(String::as_str).collect();
            return Err(format!("the machine: {why}\nthe console's last lines:\n  {}", last.join("\n  ")));
        }
        let bad = |run: &&Run| run.code != Some(0) || run.sum.is_none();
        let failed: Vec<&str> = self.runs.iter().filter(bad).map(|run| run.name.as_str()).collect();
        if failed.is_empty() && !self.runs.is_empty() {
            Ok(())
        } else {
            Err(format!("failed in the machine: {}", failed.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str]) -> Report {
        let mut report = Report::new("%m%");
        for line in lines {
            report.line(line);
        }
        report
    }

    #[test]
    fn a_run_in_which_everything_holds_is_a_success() {
        let sum =
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out; finished in 1s";
        let report = told(&[
            "%m% begin threats root",
            "test a ... ok",
            sum,
            "%m% ended threats root 0",
            "%m% end done",
        ]);
        assert_eq!(report.result(), Ok(()));
        assert_eq!(
            report.runs[0].sum.as_deref(),
            Some("ok. 3 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out")
        );
    }

    #[test]
    fn a_failed_test_a_panic_and_an_early_end_are_failures_that_say_so() {
        let failed = told(&[
            "%m% begin threats user",
            "test a_case   ... FAILED",
            "test result: FAILED. 0 passed; 1 failed",
            "%m% ended threats user 101",
            "%m% end done",
        ]);
        assert!(failed.result().unwrap_err().contains("threats as user"));
        assert_eq!(failed.runs[0].failed, ["a_case"]);
        let panicked = told(&["%m% begin threats user", "[ 1.2] Kernel panic - not syncing: x"]);
        assert!(panicked.result().unwrap_err().contains("Kernel panic"));
        assert!(
            told(&["%m% begin threats user", "test a ... ok"])
                .result()
                .unwrap_err()
                .contains("before its end")
        );
        assert!(told(&["%m% end failed: mount x"]).result().unwrap_err().contains("failed: mount x"));
    }

    #[test]
    fn a_test_can_not_say_that_it_is_done() {
        let report = told(&["%m% begin threats user", " %m% end done", "m end done"]);
        assert!(report.result().is_err());
    }
}
