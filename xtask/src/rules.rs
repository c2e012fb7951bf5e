//! `docs/rules.md`: every row names tests that are there, as `file::test`, or the issue that it
//! waits for.

use std::fs;

use crate::process::root;
use crate::source::{Kind, Source};

const PAGE: &str = "docs/rules.md";

/// Says what is wrong with the page.
pub fn without_a_test(sources: &[Source]) -> Result<Vec<String>, String> {
    let page = fs::read_to_string(root().join(PAGE)).map_err(|error| format!("read {PAGE}: {error}"))?;
    Ok(page.lines().filter_map(row).flat_map(|row| wrong(&row, sources)).collect())
}

/// The cells of a table's row: its number or tool, what it says, what holds it.
fn row(line: &str) -> Option<[&str; 3]> {
    let cells: Vec<&str> =
        line.strip_prefix("| ")?.trim_end_matches('|').split(" | ").map(str::trim).collect();
    let cells: [&str; 3] = cells.try_into().ok()?;
    (cells[2] != "held by").then_some(cells)
}

fn wrong([rule, what, held_by]: &[&str; 3], sources: &[Source]) -> Vec<String> {
    let tests: Vec<&str> = held_by.split('`').skip(1).step_by(2).collect();
    if tests.is_empty() && !held_by.contains("issue") {
        return vec![format!("{PAGE}: `{rule}` ({what}) names neither a test nor an issue")];
    }
    let missing = tests.into_iter().filter(|test| !is_there(test, sources));
    missing.map(|test| format!("{PAGE}: `{rule}` ({what}) names `{test}`, which is nowhere")).collect()
}

/// Returns `true` if the file has a function of this name, or a trial that is called so.
fn is_there(test: &str, sources: &[Source]) -> bool {
    let Some((file, name)) = test.rsplit_once("::") else { return false };
    let (file, quoted) = (format!("/{file}.rs"), format!("\"{name}\""));
    let has = |source: &Source| {
        let is_function = source.tokens.windows(2).any(|pair| pair[0].is("fn") && pair[1].is(name));
        is_function || source.tokens.iter().any(|token| token.kind == Kind::Literal && token.text == quoted)
    };
    sources.iter().filter(|source| source.path.ends_with(&file)).any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Vec<String> {
        let text = "fn holds() {}\ntrial(\"a_trial\", f) // fn gone()";
        let sources = [Source::new("crates/x/tests/tools/files.rs", text)];
        row(line).map_or_else(Vec::new, |row| wrong(&row, &sources))
    }

    #[test]
    fn a_row_names_tests_that_are_there_or_an_issue() {
        assert!(said("| 1 | a | `tools/files::holds`, `tools/files::a_trial` |").is_empty());
        assert!(said("| 1 | a | Docker's: issue 5 |").is_empty());
        assert!(said("| rule | what | held by |").is_empty() && said("text").is_empty());
        for row in
            ["`tools/files::hold`", "`tools/files::gone`", "`tools/other::holds`", "`holds`", "nothing"]
        {
            assert_eq!(said(&format!("| 1 | a | {row} |")).len(), 1, "{row}");
        }
    }
}
