//! The output of a test program: which tests ended, and how, as Rust's own harness and
//! `libtest-mimic` write it.

use std::process::ExitStatus;
use std::time::Duration;

/// The exit code of a test program whose tests failed.
const TESTS_FAILED: i32 = 101;

/// A test that failed.
#[derive(Debug)]
pub struct Failure {
    /// The test's name in its program.
    pub name: String,
    /// The output about the test.
    pub text: String,
}

/// All that was said by one program.
#[derive(Debug, Default)]
pub struct Said {
    /// All from the first word of failures to the result.
    failures: Vec<String>,
    /// Tests in the order in which they ended, and when.
    ends: Vec<(String, Duration)>,
    ignored: Vec<(String, String)>,
    has_ended: bool,
    passed: usize,
    failed: usize,
    filtered_out: usize,
}

impl Said {
    /// Hears one more line, so long after the program's start.
    pub fn hear(&mut self, line: &str, at: Duration) {
        if self.has_ended {
            return;
        }
        if let Some(result) = line.strip_prefix("test result: ") {
            self.end(result);
        } else if line == "failures:" || !self.failures.is_empty() {
            self.failures.push(line.to_owned());
        } else if let Some((name, outcome)) = outcome(line) {
            self.ends.push((name.to_owned(), at));
            if let Some(reason) = outcome.strip_prefix("ignored") {
                let reason = reason.trim_matches([' ', ',', '(', ')']);
                self.ignored.push((name.to_owned(), reason.to_owned()));
            }
        }
    }

    /// Hears how it ended: "FAILED. 3 passed; 1 failed; …".
    fn end(&mut self, result: &str) {
        let count = |word: &str| {
            let before = result.split(word).next()?.split_whitespace().last()?;
            before.parse().ok()
        };
        self.has_ended = true;
        self.passed = count(" passed").unwrap_or(0);
        self.failed = count(" failed").unwrap_or(0);
        self.filtered_out = count(" filtered out").unwrap_or(0);
    }

    /// Returns whether the tests that are named as failed are all that was wrong: the program said
    /// how it ended, named as many failures as it counted, and did not die.
    pub fn explains(&self, status: ExitStatus) -> bool {
        let is_whole = self.has_ended && self.failures().len() == self.failed;
        is_whole && self.failed > 0 && status.code() == Some(TESTS_FAILED)
    }

    /// Returns whether the program said how it ended.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns how many tests passed.
    pub fn passed(&self) -> usize {
        self.passed
    }

    /// Returns how many tests the arguments left out.
    pub fn filtered_out(&self) -> usize {
        self.filtered_out
    }

    /// Returns the tests that were ignored, with the reasons.
    pub fn ignored(&self) -> &[(String, String)] {
        &self.ignored
    }

    /// Returns how long each test took, where the tests were begun in this order by so many
    /// threads: the next one begins when any ends.
    pub fn times(&self, order: &[String], threads: usize) -> Vec<(String, Duration)> {
        let began = |name: &str| {
            let place = order.iter().position(|other| other == name)?;
            let Some(freed_by) = place.checked_sub(threads) else { return Some(Duration::ZERO) };
            self.ends.get(freed_by).map(|(_, at)| *at)
        };
        let took = |(name, at): &(String, Duration)| Some((name.clone(), at.saturating_sub(began(name)?)));
        self.ends.iter().filter_map(took).collect()
    }

    /// Returns the tests that failed. Their list stands at the end; above it is what each of them
    /// said.
    pub fn failures(&self) -> Vec<Failure> {
        let Some(list) = self.failures.iter().rposition(|line| line == "failures:") else {
            return Vec::new();
        };
        let names = self.failures[list..].iter().filter_map(|line| line.strip_prefix("    "));
        let told = |name: &str| {
            let head = format!("---- {name} ");
            let from = self.failures[..list].iter().skip_while(|line| !line.starts_with(&head));
            let text = from.clone().take(1).chain(from.skip(1).take_while(|line| !line.starts_with("---- ")));
            text.map(String::as_str).collect::<Vec<_>>().join("\n")
        };
        names.map(|name| Failure { name: name.to_owned(), text: told(name) }).collect()
    }
}

/// A test's name with its kind, and its outcome: `test [kind] name ... ok`.
fn outcome(line: &str) -> Option<(&str, &str)> {
    let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    Some((name.trim(), outcome.trim()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;
    use std::time::Duration;

    use super::Said;

    const FAILED: &str = "\nrunning 4 tests\ntest a ... ok\ntest b::c ... FAILED\ntest d ... FAILED\n\
        test e ... ignored (no gdb)\n\nfailures:\n\n---- b::c stdout ----\nlate\n    by much\n\n\
        ---- d stdout ----\nno\n\nfailures:\n    b::c\n    d\n\ntest result: FAILED. 1 passed; 2 failed; 1 ignored; 0 measured; 7 filtered out\n";
    const PASSED: &str =
        "\nrunning 1 test\ntest d ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n";

    fn heard(text: &str) -> Said {
        let mut said = Said::default();
        // A line a second.
        text.lines().zip(0..).for_each(|(line, second)| said.hear(line, Duration::from_secs(second)));
        said
    }

    fn ended(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn each_test_that_failed_is_named_with_what_it_said() {
        let said = heard(FAILED);
        let failures = said.failures();
        let names: Vec<_> = failures.iter().map(|failure| failure.name.as_str()).collect();
        assert_eq!(names, ["b::c", "d"]);
        assert!(failures[0].text.contains("    by much") && !failures[0].text.contains("no"));
        assert!(said.passed() == 1 && said.filtered_out() == 7 && said.explains(ended(101)));
        assert_eq!(said.ignored(), [("e".to_owned(), "no gdb".to_owned())]);
    }

    #[test]
    fn tests_that_failed_explain_no_program_that_died_or_did_not_end() {
        let begun = "running 1 test\ntest a ... ok\n";
        let too_few =
            "running 2 tests\nfailures:\n\nfailures:\n    a\n\ntest result: FAILED. 0 passed; 2 failed\n";
        assert!(!heard(FAILED).explains(ended(139)) && !heard(FAILED).explains(ExitStatus::from_raw(6)));
        assert!(!heard(begun).explains(ended(101)) && !heard("").explains(ended(101)));
        assert!(!heard(too_few).explains(ended(101)) && !heard(PASSED).explains(ended(101)));
        assert!(heard(PASSED).has_ended() && !heard(begun).has_ended());
    }

    #[test]
    fn a_test_begins_when_the_one_that_freed_its_thread_ends() {
        // Two threads: `a` and `b` begin at once, `c` when the first of them ends.
        let said = heard("running 3 tests\ntest b ... ok\ntest a ... ok\n\ntest c ... ok\n");
        let order = ["a", "b", "c"].map(str::to_owned);
        let times = said.times(&order, 2);
        let seconds: Vec<_> = times.iter().map(|(name, took)| (name.as_str(), took.as_secs())).collect();
        assert_eq!(seconds, [("b", 1), ("a", 2), ("c", 3)]);
    }
}
