//! Nothing is decided by the words of an error: kinds and types say what went wrong, and texts are made from them.

use crate::source::{Source, Token};

/// Methods that look into a text.
const LOOKS: [&str; 8] =
    ["contains", "starts_with", "ends_with", "strip_prefix", "strip_suffix", "find", "split_once", "as_str"];

/// The names that errors have.
const ERRORS: [&str; 9] =
    ["error", "err", "e", "failure", "failed", "refusal", "refused", "problem", "reason"];

/// Places that may: the file, how often, and the reason.
const ALLOWED: &[(&str, usize, &str)] = &[(
    "crates/native/src/plan.rs",
    1,
    "reads the names of steps off its own source; they are to be an enum",
)];

/// Says where production code looks into an error's text, and which exceptions are no longer needed.
pub fn check(sources: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources.iter().filter(|source| is_checked(source)) {
        let lines = lines(source);
        let allowed =
            ALLOWED.iter().find(|(path, ..)| *path == source.path).map_or(0, |(_, count, _)| *count);
        if lines.len() < allowed {
            wrong.push(format!(
                "xtask/src/error_text.rs: {} has {} places, not {allowed}",
                source.path,
                lines.len()
            ));
        } else if lines.len() > allowed {
            let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
            wrong.push(format!("{}: decides by an error's words in line {}", source.path, lines.join(", ")));
        }
    }
    wrong
}

/// The probes, the conformance suite and the fuzz targets are tests: they say what a text must be.
fn is_checked(source: &Source) -> bool {
    let is_test =
        ["/probes/", "/fuzz/", "/conformance/", "xtask/"].iter().any(|part| source.path.contains(part));
    source.is_production() && !is_test
}

fn lines(source: &Source) -> Vec<usize> {
    let tokens = source.production();
    let looks = (0..tokens.len()).filter(|at| looks_into(&tokens, *at) || includes_source(&tokens, *at));
    looks.map(|at| tokens[at].line).collect()
}

/// Finds `error.to_string().contains(`, `x.message().starts_with(`, and comparisons of either with `==`.
fn looks_into(tokens: &[Token], at: usize) -> bool {
    let is = |ahead: usize, text: &str| tokens.get(at + ahead).is_some_and(|token| token.is(text));
    let is_error = at > 0 && ERRORS.iter().any(|name| tokens[at - 1].is(name));
    let is_text = is(1, "message") || is_error && is(1, "to_string");
    if !(is(0, ".") && is_text && is(2, "(") && is(3, ")")) {
        return false;
    }
    let is_compared = (is(4, "=") || is(4, "!")) && is(5, "=");
    is_compared || is(4, ".") && LOOKS.iter().any(|method| is(5, method))
}

/// Finds `include_str!("….rs")`: a program that reads its own source decides by texts.
fn includes_source(tokens: &[Token], at: usize) -> bool {
    let is = |ahead: usize, text: &str| tokens.get(at + ahead).is_some_and(|token| token.is(text));
    is(0, "include_str") && is(1, "!") && tokens.get(at + 3).is_some_and(|name| name.text.ends_with(".rs\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> usize {
        check(&[Source::new("crates/x/src/a.rs", &format!("fn f() {{ {line} }}"))]).len()
    }

    #[test]
    fn a_decision_by_an_errors_words_is_told() {
        for line in [
            "if error.to_string().contains(\"in use\") {}",
            "if a.message().starts_with(\"create\") {}",
            "if failure.message() == \"x\" {}",
            "match err.to_string().as_str() { _ => {} }",
            "let steps = include_str!(\"plan.rs\");",
        ] {
            assert_eq!(of(line), 1, "{line}");
        }
    }

    #[test]
    fn other_texts_and_tests_may() {
        for line in ["if name.to_string().contains('a') {}", "let text = error.to_string();", "a.message();"]
        {
            assert_eq!(of(line), 0, "{line}");
        }
        let test = "#[test]\nfn f() { assert!(error.to_string().contains(\"x\")); }";
        assert!(check(&[Source::new("crates/x/src/a.rs", test)]).is_empty());
    }

    #[test]
    fn an_exception_that_is_no_longer_needed_is_told() {
        assert_eq!(check(&[Source::new(ALLOWED[0].0, "")]).len(), 1);
    }
}
