//! `docs/rules.md`: every row names tests that are there, as `file::test`, or the issue that it waits for.

use std::fs;
use std::path::PathBuf;

use crate::process::root;

const PAGE: &str = "docs/rules.md";

/// A source: its path without `.rs`, and its text.
type Source = (String, String);

/// What is wrong with the page.
pub fn without_a_test(sources: &[PathBuf]) -> Result<Vec<String>, String> {
    let page = fs::read_to_string(root().join(PAGE)).map_err(|error| format!("read {PAGE}: {error}"))?;
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).map_err(|error| format!("read {}: {error}", path.display()))?;
        Ok((path.with_extension("").display().to_string(), text))
    };
    let sources: Vec<Source> = sources.iter().map(read).collect::<Result<_, String>>()?;
    Ok(page.lines().filter_map(row).flat_map(|row| wrong(&row, &sources)).collect())
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

/// A test is a function, or a trial that is called so.
fn is_there(test: &str, sources: &[Source]) -> bool {
    let Some((file, name)) = test.rsplit_once("::") else { return false };
    let forms = [format!("fn {name}("), format!("\"{name}\"")];
    let of_file = sources.iter().filter(|(path, _)| path.ends_with(&format!("/{file}")));
    of_file.into_iter().any(|(_, text)| forms.iter().any(|form| text.contains(form)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Vec<String> {
        let text = "fn holds() {}\ntrial(\"a_trial\", f)".to_owned();
        let sources = [("crates/x/tests/tools/files".to_owned(), text)];
        row(line).map_or_else(Vec::new, |row| wrong(&row, &sources))
    }

    #[test]
    fn a_row_names_tests_that_are_there_or_an_issue() {
        assert!(said("| 1 | a | `tools/files::holds`, `tools/files::a_trial` |").is_empty());
        assert!(said("| 1 | a | Docker's: issue 5 |").is_empty());
        assert!(said("| rule | what | held by |").is_empty() && said("text").is_empty());
        for row in ["`tools/files::hold`", "`tools/other::holds`", "`holds`", "nothing"] {
            assert_eq!(said(&format!("| 1 | a | {row} |")).len(), 1, "{row}");
        }
    }
}
