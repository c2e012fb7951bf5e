//! What test programs say: which of them runs, and which tests failed, as Rust's own harness and `libtest-mimic` write it.

use std::path::PathBuf;

/// A test that failed.
#[derive(Debug)]
pub struct Failure {
    /// The program it is in, as cargo names it; none for an example of the documentation.
    pub program: Option<PathBuf>,
    /// Its name in there.
    pub name: String,
    /// What is said of it.
    pub text: String,
}

/// What was said of one program.
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
}

impl Said {
    /// Hears one more line.
    pub fn hear(&mut self, line: &str) {
        if let Some(program) = begun(line) {
            self.parts.push(Part { program, ..Part::default() });
        } else if line.starts_with("running ") && self.parts.last().is_none_or(|part| part.has_ended) {
            // It was not cargo that began it, or it begins a second time, as examples do.
            let program = self.parts.last().and_then(|part| part.program.clone());
            self.parts.push(Part { program, ..Part::default() });
        }
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

    /// Whether every program said how it ended, and named as many failures as it counted.
    pub fn is_whole(&self) -> bool {
        self.parts.iter().all(|part| part.has_ended && part.failures().len() == part.failed)
    }

    /// How many tests passed.
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
    use super::Said;

    fn heard(text: &str) -> Said {
        let mut said = Said::default();
        text.lines().for_each(|line| said.hear(line));
        said
    }

    #[test]
    fn each_test_that_failed_is_named_with_its_program_and_what_it_said() {
        let said = heard(
            "   Compiling eyot\n     Running tests/cli/main.rs (target/debug/deps/cli-0a)\n\nrunning 3 tests\ntest a ... ok\n\
             test b::c ... FAILED\ntest d ... FAILED\n\nfailures:\n\n---- b::c stdout ----\nlate\n    by much\n\n\
             ---- d stdout ----\nno\n\nfailures:\n    b::c\n    d\n\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n\n\
             error: test failed, to rerun pass `-p eyot-cli --test cli`\n\
             \x20    Running tests/pool/main.rs (target/debug/deps/pool-1b)\n\nrunning 1 test\ntest d ... ok\n\n\
             test result: ok. 1 passed; 0 failed; 0 ignored\n",
        );
        let failures = said.failures();
        let names: Vec<_> = failures.iter().map(|failure| failure.name.as_str()).collect();
        assert_eq!(names, ["b::c", "d"]);
        assert_eq!(failures[0].program.as_deref(), Some("target/debug/deps/cli-0a".as_ref()));
        assert!(failures[0].text.contains("    by much") && !failures[0].text.contains("no"));
        assert_eq!((said.passed(), said.is_whole()), (2, true));
    }

    #[test]
    fn a_program_that_never_says_how_it_ended_or_names_too_few_leaves_the_run_not_whole() {
        let begun = "     Running unittests src/lib.rs (target/debug/deps/a-0)\n\nrunning 1 test\n";
        let died = heard(&format!("{begun}test a ...\n"));
        assert!(!died.is_whole() && died.failures().is_empty());
        let result = "test result: FAILED. 0 passed; 2 failed; 0 ignored\n";
        let named = heard(&format!("{begun}failures:\n\nfailures:\n    a\n\n{result}"));
        assert!(!named.is_whole() && named.failures().len() == 1);
    }

    #[test]
    fn a_program_that_cargo_did_not_start_is_heard_too() {
        let said =
            heard("\nrunning 1 test\ntest a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n");
        assert!(said.is_whole() && said.passed() == 1 && said.failures().is_empty());
    }
}
