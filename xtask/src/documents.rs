//! The documents: their links lead to files and headings that exist, published figures name a command that exists, the
//! table of surfaces names what is there, and programs compile when they are copied.

mod copied;
pub mod figures;
mod surfaces;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::root;

/// Says which links of the documents lead nowhere, and which paths in ARCHITECTURE.md are not there.
pub fn check() -> Result<Vec<String>, String> {
    let mut wrong = figures::check()?;
    wrong.extend(surfaces::check()?);
    for page in pages()? {
        let root = root();
        let name = page.strip_prefix(&root).unwrap_or(&page).display().to_string();
        let text = read(&page)?;
        let folder = page.parent().unwrap_or(&root);
        wrong.extend(
            links(&text)
                .filter_map(|link| leads_nowhere(folder, &text, link))
                .map(|why| format!("{name}: {why}")),
        );
        wrong.extend(copied::hidden_lines(&text).into_iter().map(|why| format!("{name}: {why}")));
        if copied::WITH_DEPENDENCIES.contains(&name.as_str()) {
            wrong.extend(copied::unnamed_crates(&text).into_iter().map(|why| format!("{name}: {why}")));
        }
        if name == "ARCHITECTURE.md" {
            let missing = paths(&text).filter(|path| !root.join(path).exists());
            wrong.extend(missing.map(|path| format!("{name}: there is no `{path}`")));
        }
    }
    Ok(wrong)
}

fn pages() -> Result<Vec<PathBuf>, String> {
    let mut pages: Vec<PathBuf> =
        ["ARCHITECTURE.md", "CHANGELOG.md", "README.md", "SECURITY.md"].map(|page| root().join(page)).into();
    for folder in ["docs", "docs/decisions"] {
        let entries = fs::read_dir(root().join(folder)).map_err(|error| format!("read {folder}: {error}"))?;
        let files = entries.flatten().map(|entry| entry.path());
        pages.extend(files.filter(|file| file.extension().is_some_and(|extension| extension == "md")));
    }
    pages.sort();
    Ok(pages)
}

fn read(page: &Path) -> Result<String, String> {
    fs::read_to_string(page).map_err(|error| format!("read {}: {error}", page.display()))
}

/// Returns the targets of Markdown's links to files here.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '\n']).next());
    targets.filter(|target| !target.contains("://") && !target.contains(' '))
}

fn leads_nowhere(folder: &Path, text: &str, link: &str) -> Option<String> {
    let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
    let target = folder.join(file);
    if !file.is_empty() && !target.exists() {
        return Some(format!("the link to {link} leads nowhere"));
    }
    let heading = heading?;
    let there = if file.is_empty() { text.to_owned() } else { fs::read_to_string(&target).ok()? };
    let missing = !headings(&there).contains(heading);
    missing.then(|| format!("the link to {link} leads to no heading"))
}

/// Returns the names by which a page's headings are linked to.
fn headings(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = |letter: char| letter.is_alphanumeric() || letter == ' ' || letter == '-' || letter == '_';
    heading
        .to_lowercase()
        .chars()
        .filter(|letter| kept(*letter))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// Returns what looks like a path of the repository between backticks. `x`, `NAME` and their like are placeholders.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_path = |quoted: &&str| {
        let begins =
            ["crates/", "docs/", "sdks/", "xtask/", "web/"].iter().any(|folder| quoted.starts_with(folder));
        begins && !quoted.contains(['{', '*', ' ']) && !quoted.split(['/', '.']).any(is_placeholder)
    };
    quoted.filter(is_path)
}

fn is_placeholder(part: &str) -> bool {
    let all_capitals = part.len() > 2 && part.chars().all(|letter| letter.is_ascii_uppercase());
    part == "x" || all_capitals && part != "SECURITY" && part != "README"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_no_file_or_no_heading_is_told() {
        let text = "## Two words: `a`\n[a](Cargo.toml) [b](#two-words-a) [c](https://x.y/z)\n";
        let of = |text: &str| {
            links(text).filter_map(|link| leads_nowhere(&root(), text, link)).collect::<Vec<_>>()
        };
        assert!(of(text).is_empty());
        assert_eq!(of("[a](no/file.md)"), ["the link to no/file.md leads nowhere"]);
        assert_eq!(of("# A\n[a](#b)"), ["the link to #b leads to no heading"]);
    }

    #[test]
    fn a_path_in_backticks_is_read_and_a_placeholder_is_not() {
        let text = "`crates/a/b.rs` `crates/x/src/NAME.rs` `docs/x.md` `sdks/*/src/` `eyot run`";
        assert_eq!(paths(text).collect::<Vec<_>>(), ["crates/a/b.rs"]);
    }
}
