//! The table of surfaces in `docs/surfaces.md`: each cell names something that is there, says yes, or leads to a note.

use std::fs;
use std::path::Path;

use crate::process::root;

const PAGE: &str = "docs/surfaces.md";
/// The columns in their order, and the places of their names.
const COLUMNS: [(&str, Sources); 7] = [
    ("command line", Sources { folder: "crates/cli/src/args", marks: &["\"{}\", \"", "\"{}\" | \""] }),
    ("HTTP", Sources { folder: "crates/server/openapi.json", marks: &["{}"] }),
    ("TypeScript", Sources { folder: "sdks/typescript/src", marks: &["  async {}(", "  async *{}("] }),
    ("Python", Sources { folder: "sdks/python/src/eyot", marks: &["    def {}("] }),
    ("Rust", Sources { folder: "crates", marks: &["pub fn {}(", "pub async fn {}("] }),
    ("page", Sources { folder: "web/src", marks: &[] }),
    ("tools", Sources { folder: "crates/tools/src", marks: &["\"{}\""] }),
];

/// The place of a column's names, and the text around each there.
struct Sources {
    folder: &'static str,
    marks: &'static [&'static str],
}

/// Says which cells name what is not there, or lead to no note.
pub fn check() -> Result<Vec<String>, String> {
    let page = fs::read_to_string(root().join(PAGE)).map_err(|error| format!("read {PAGE}: {error}"))?;
    let texts = COLUMNS.iter().map(|(_, sources)| text_of(&root().join(sources.folder)));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let mut wrong = Vec::new();
    for row in rows(&page) {
        for (((column, sources), text), cell) in COLUMNS.iter().zip(&texts).zip(&row[1..]) {
            wrong.extend(
                faults(sources, text, &page, cell)
                    .map(|why| format!("{PAGE}: {column} of `{}`: {why}", row[0])),
            );
        }
    }
    Ok(wrong)
}

/// Returns the rows of the table below its heading.
fn rows(page: &str) -> Vec<Vec<&str>> {
    let lines = page.lines().filter(|line| line.starts_with("| "));
    lines.skip(1).map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

fn faults<'a>(
    sources: &'a Sources,
    text: &'a str,
    page: &'a str,
    cell: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let names = cell.split('`').skip(1).step_by(2);
    let missing =
        names.filter(|name| !is_there(sources, text, name)).map(|name| format!("there is no `{name}`"));
    let plain =
        cell.split('`').step_by(2).flat_map(|part| part.split([' ', ','])).filter(|word| !word.is_empty());
    let lost = plain.filter(|word| *word != "yes" && !page.contains(&format!("\n{word}. ")));
    let empty = cell.is_empty().then(|| "it is empty".to_owned());
    missing.chain(lost.map(|word| format!("`{word}` is no note"))).chain(empty)
}

/// Tells whether a name is there: `eyot create`, `POST …/exec`, `client.create`, `Sandbox::create`, `glob`.
fn is_there(sources: &Sources, text: &str, name: &str) -> bool {
    if let Some((method, path)) = name.split_once(' ').filter(|(method, _)| *method != "eyot") {
        return has_operation(text, method, path);
    }
    let name = name.strip_prefix("eyot ").unwrap_or(name);
    let name = name.rsplit(['.', ':']).next().unwrap_or(name);
    sources.marks.iter().any(|mark| text.contains(&mark.replace("{}", name)))
}

/// Tells whether the API's document has an operation.
fn has_operation(document: &str, method: &str, path: &str) -> bool {
    let path = path.replace('…', "/v1/sandboxes/{sandbox}");
    let document: serde_json::Value = serde_json::from_str(document).unwrap_or_default();
    document["paths"][path.as_str()][method.to_lowercase()].is_object()
}

/// Returns the text of a file, or of all files below a folder.
fn text_of(path: &Path) -> Result<String, String> {
    let failed = |error| format!("read {}: {error}", path.display());
    if path.is_file() {
        // What is not text has no names.
        return Ok(fs::read_to_string(path).unwrap_or_default());
    }
    let mut text = String::new();
    for entry in fs::read_dir(path).map_err(failed)?.flatten() {
        text.push_str(&text_of(&entry.path())?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_is_empty_or_names_what_is_not_there_or_no_note_is_told() {
        let sources = &COLUMNS[3].1;
        let (text, page) = ("    def list(self)", "\n1. Why.\n");
        let told = |cell: &str| faults(sources, text, page, cell).collect::<Vec<_>>();
        assert!(told("`client.list` 1").is_empty() && told("yes").is_empty());
        assert_eq!(told("`client.drop`"), ["there is no `client.drop`"]);
        assert_eq!(told("2"), ["`2` is no note"]);
        assert_eq!(told(""), ["it is empty"]);
    }
}
