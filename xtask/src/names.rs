//! A type's name is used once in the workspace, but for a short list; and a list of today's duplicates, which must shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::process::root;
use crate::source::{Kind, Source};

const LIST: &str = "xtask/names.txt";

/// Names that say what a type is in its module, and may be used again.
const ALLOWED: &[&str] = &["Answer", "Args", "Config", "Error", "Inner", "Kind", "Options", "State"];

/// Says which names are used more often than the list allows, and which entries are no longer needed.
pub fn check(sources: &[Source]) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(root().join(LIST)).map_err(|error| format!("read {LIST}: {error}"))?;
    Ok(wrong(&listed(&text), &duplicates(sources)))
}

/// Writes the list without what is no longer needed.
pub fn shrink(sources: &[Source]) -> Result<(), String> {
    let path = root().join(LIST);
    let text = fs::read_to_string(&path).map_err(|error| format!("read {LIST}: {error}"))?;
    let found = duplicates(sources);
    let (comment, _) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut shrunk = format!("{comment}\n\n");
    for (name, count) in listed(&text) {
        if let Some(files) = found.get(&name) {
            shrunk += &format!("{name} {}\n", count.min(files.len()));
        }
    }
    fs::write(&path, shrunk).map_err(|error| format!("write {LIST}: {error}"))
}

/// Reads lines such as `Place 11`.
fn listed(text: &str) -> BTreeMap<String, usize> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let entry = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    lines.filter_map(entry).collect()
}

/// Returns the names that several types of production code have, and the files of each.
fn duplicates(sources: &[Source]) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_production()) {
        for pair in source.production().windows(2) {
            let is_type = ["struct", "enum", "trait", "union"].iter().any(|word| pair[0].is(word));
            let name = &pair[1].text;
            if is_type && pair[1].kind == Kind::Word && name.starts_with(char::is_uppercase) {
                found.entry(name.clone()).or_default().insert(source.path.clone());
            }
        }
    }
    found.retain(|name, files| files.len() > 1 && !ALLOWED.contains(&name.as_str()));
    found
}

fn wrong(listed: &BTreeMap<String, usize>, found: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, files) in found {
        let allowed = listed.get(name).copied().unwrap_or(1);
        if files.len() > allowed {
            let files: Vec<&str> = files.iter().map(String::as_str).collect();
            wrong.push(format!(
                "{} types are called {name}, {allowed} may be: {}",
                files.len(),
                files.join(", ")
            ));
        }
    }
    for (name, allowed) in listed {
        let count = found.get(name).map_or(1, BTreeSet::len);
        if count < *allowed {
            wrong.push(format!(
                "{LIST}: {name} is used {count} times, not {allowed}: cargo xtask check --shrink"
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(list: &str) -> Vec<String> {
        let source = |file: &str, text: &str| Source::new(&format!("crates/x/src/{file}.rs"), text);
        let tests = "pub struct Place;\npub struct Args;\n#[cfg(test)]\nmod tests { struct Once; }";
        let sources =
            [source("a", "struct Place<'a>(&'a u8);\nstruct Args;\nenum Once {}"), source("b", tests)];
        wrong(&listed(list), &duplicates(&sources))
    }

    #[test]
    fn a_name_that_is_used_twice_is_told_unless_it_is_listed() {
        assert_eq!(said("").len(), 1);
        assert!(said("")[0].starts_with("2 types are called Place, 1 may be: crates/x/src/a.rs, "));
        assert!(said("# today's\n\nPlace 2\n").is_empty());
    }

    #[test]
    fn an_entry_that_is_no_longer_needed_is_told() {
        assert_eq!(said("Place 3\n").len(), 1);
        assert_eq!(said("Place 2\nOnce 2\n").len(), 1);
    }
}
