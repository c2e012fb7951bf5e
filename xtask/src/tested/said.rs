//! The output of test programs: which of them runs, and which tests failed, as Rust's own harness
//! and `libtest-mimic` write it.

use std::path::PathBuf;
use std::process::ExitStatus;

/// The exit code of a program of which tests failed.
const TESTS_FAILED: i32 = 101;

/// A test that failed.
#[derive(Debug)]
pub struct Failure {
    /// The program it is in, as cargo names it; none for an example of the documentation.
    pub program: Option<PathBuf>,
    /// The test's name in its program.
    pub name: String,
    /// The output about the test.
    pub text: String,
}

/// The output of one program.
#[derive(Debug, Default)]
struct Part {
    program: Option<PathBuf>,
    /// All from the first word of failures to the result.
    failures: Vec<String>,
    has_ended: bool,
    passed: usize,
    failed: usize,
}

/// All that was said, a part for each program.
#[derive(Debug, Default)]
pub struct Said {
    parts: Vec<Part>,
    /// The number of failed programs that cargo reports at its end.
    failed_programs: Option<usize>,
    /// A program ended otherwise than one does whose tests failed.
    has_crashed: bool,
}

impl Said {
    /// Hears one more line.
    pub fn hear(&mut self, line: &str) {
        if let Some(program) = begun(line) {
            self.parts.push(Part { program, ..Part::default() });
        } else if line.starts_with("running ") && self.parts.last().is_none_or(|part| part.has_ended) {
            // It was not cargo that began it, or it begins a second time, as examples do.
            self.parts.push(Part::default());
        }
        self.has_crashed |= line.contains("process didn't exit successfully");
        self.failed_programs = closing(line).or(self.failed_programs);
        let Some(part) = self.parts.last_mut() else { return };
        if let Some(result) = line.strip_prefix("test result: ") {
            part.end(result);
        } else if !part.has_ended && (line == "failures:" || !part.failures.is_empty()) {
            part.failures.push(line.to_owned());
        }
    }

    /// The tests that failed.
    pub fn failures(&self) -> Vec<Failure> {
        self.parts.iter().flat_map(Part::failures).collect()
    }

    /// Tells whether the tests that are named as failed explain the whole result. Every program
    /// said how it ended and named as many failures as it counted, none died, and none is unheard
    /// of.
    pub fn explains(&self, status: ExitStatus) -> bool {
        let is_whole = |part: &Part| part.has_ended && part.failures().len() == part.failed;
        let with_failures = self.parts.iter().filter(|part| part.failed > 0).count();
        let is_all = match self.failed_programs {
            Some(programs) => programs == with_failures,
            // One program, run by itself.
            None => self.parts.len() == 1 && status.code() == Some(TESTS_FAILED),
        };
        with_failures > 0 && is_all && !self.has_crashed && self.parts.iter().all(is_whole)
    }

    /// Returns how many tests passed.
    pub fn passed(&self) -> usize {
        self.parts.iter().map(|part| part.passed).sum()
    }
}

impl Part {
    /// Hears how it ended: "FAILED. 3 passed; 1 failed; …".
    fn end(&mut self, result: &str) {
        let count = |word: &str| {
            let before = result.split(word).next()?.split_whitespace().last()?;
            before.parse().ok()
        };
        self.has_ended = true;
        self.passed = count(" passed").unwrap_or(0);
        self.failed = count(" failed").unwrap_or(0);
    }

    /// The list stands at the end; above it is what each of them said.
    fn failures(&self) -> Vec<Failure> {
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
        let failure =
            |name: &str| Failure { program: self.program.clone(), name: name.to_owned(), text: told(name) };
        names.map(failure).collect()
    }
}

/// Returns the number of failed programs, if this is the line of cargo that tells it.
fn closing(line: &str) -> Option<usize> {
    let count = line.strip_prefix("error: ")?;
    let count = count.strip_suffix(" target failed:").or(count.strip_suffix(" targets failed:"))?;
    count.parse().ok()
}

/// The program that this line of cargo's says is run next.
fn begun(line: &str) -> Option<Option<PathBuf>> {
    if line.starts_with("   Doc-tests ") {
        return Some(None);
    }
    let path = line.strip_prefix("     Running ")?.strip_suffix(')')?.rsplit_once('(')?.1;
    Some(Some(PathBuf::from(path)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::Said;

    const CLI: &str = "   Compiling eyot\n     Running tests/cli/main.rs (target/debug/deps/cli-0a)\n\nrunning 3 tests\n\
        test a ... ok\ntest b::c ... FAILED\ntest d ... FAILED\n\nfailures:\n\n---- b::c stdout ----\nlate\n    by much\n\n\
        ---- d stdout ----\nno\n\nfailures:\n    b::c\n    d\n\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n\n\
        error: test failed, to rerun pass `-p eyot-cli --test cli`\n";
    const POOL: &str = "     Running tests/pool/main.rs (target/debug/deps/pool-1b)\n\nrunning 1 test\ntest d ... ok\n\n\
        test result: ok. 1 passed; 0 failed; 0 ignored\n";
    const CLOSING: &str = "error: 1 target failed:\n    `-p eyot-cli --test cli`\n";

    fn heard(parts: &[&str]) -> Said {
        let mut said = Said::default();
        parts.concat().lines().for_each(|line| said.hear(line));
        said
    }

    fn ended(code: i32) -> ExitStatus {
        ExitStatus::from_raw(code << 8)
    }

    #[test]
    fn each_test_that_failed_is_named_with_its_program_and_what_it_said() {
        let said = heard(&[CLI, POOL, CLOSING]);
        let failures = said.failures();
        let names: Vec<_> = failures.iter().map(|failure| failure.name.as_str()).collect();
        assert_eq!(names, ["b::c", "d"]);
        assert_eq!(failures[0].program.as_deref(), Some("target/debug/deps/cli-0a".as_ref()));
        assert!(failures[0].text.contains("    by much") && !failures[0].text.contains("no"));
        assert!(said.passed() == 2 && said.explains(ended(101)));
    }

    #[test]
    fn tests_that_failed_explain_no_program_that_died_or_was_never_heard() {
        let two = "error: 2 targets failed:\n    `-p eyot-cli --test cli`\n    `-p eyot --test pool`\n";
        let died = "error: test failed\n\nCaused by:\n  process didn't exit successfully: `pool` (signal: 6, SIGABRT)\n";
        let begun =
            "     Running unittests src/lib.rs (target/debug/deps/a-0)\n\nrunning 1 test\ntest a ...\n";
        let too_few = "     Running a (target/a)\n\nrunning 2 tests\nfailures:\n\nfailures:\n    a\n\n\
            test result: FAILED. 0 passed; 2 failed; 0 ignored\nerror: 1 target failed:\n";
        assert!(!heard(&[CLI, POOL]).explains(ended(101)) && !heard(&[CLI, POOL, two]).explains(ended(101)));
        assert!(!heard(&[CLI, POOL, died, CLOSING]).explains(ended(101)));
        assert!(
            !heard(&[CLI, begun, CLOSING]).explains(ended(101)) && !heard(&[too_few]).explains(ended(101))
        );
        assert!(!heard(&[begun]).explains(ended(101)) && !heard(&[]).explains(ended(101)));
    }

    #[test]
    fn a_program_that_cargo_did_not_start_is_heard_too() {
        let own = CLI.split_once("\n\n").unwrap().1.replace("error: test failed", "");
        let said = heard(&[&own]);
        assert_eq!((said.passed(), said.failures().len()), (1, 2));
        assert!(said.failures()[0].program.is_none());
        assert!(said.explains(ended(101)) && !said.explains(ended(139)));
        assert!(!said.explains(ExitStatus::from_raw(6)));
    }
}
