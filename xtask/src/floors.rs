//! The floors of each crate: a module uses modules on floors below it, and no module above or beside it. The crates have
//! floors too.
//!
//! `xtask/floors.txt` has the floors of a folder of modules, the lowest first, and the uses that run up today, which must
//! become fewer. A folder that is not listed there must have no circle.

mod crates;
mod edges;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::process::root;
use crate::source::{self, Source};
use edges::{Edge, edges};

const TABLE: &str = "xtask/floors.txt";

/// The floors as they are written down.
#[derive(Default)]
struct Floors {
    /// The floor of each module, by folder.
    floors: BTreeMap<String, BTreeMap<String, usize>>,
    /// The uses that run up today.
    up: BTreeSet<Edge>,
}

/// Prints the uses between siblings: for those who write the table.
pub fn run() -> Result<(), String> {
    for (edge, count) in edges(&source::all()?) {
        println!("{} {} {} {count}", edge.folder, edge.from, edge.to);
    }
    Ok(())
}

/// Says which uses run up, and which exceptions are no longer needed.
pub fn check(sources: &[Source]) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(root().join(TABLE)).map_err(|error| format!("read {TABLE}: {error}"))?;
    let mut found: BTreeSet<Edge> = edges(sources).into_keys().collect();
    found.extend(crates::edges()?);
    Ok(wrong(&parse(&text)?, &found))
}

fn parse(text: &str) -> Result<Floors, String> {
    let mut floors = Floors::default();
    let mut folder = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [name] if !line.starts_with(" ") => folder = (*name).to_owned(),
            ["up", from, "->", to] => {
                let (from, to) = ((*from).to_owned(), (*to).to_owned());
                floors.up.insert(Edge { folder: folder.clone(), from, to });
            }
            [floor, modules @ ..] => {
                let number = floor.trim_end_matches(':').parse();
                let number: usize = number.map_err(|_| format!("{TABLE}: no floor: {line}"))?;
                let of_folder = floors.floors.entry(folder.clone()).or_default();
                of_folder.extend(modules.iter().map(|module| ((*module).to_owned(), number)));
            }
            [] => {}
        }
    }
    Ok(floors)
}

fn wrong(floors: &Floors, found: &BTreeSet<Edge>) -> Vec<String> {
    let mut wrong: Vec<String> = floors
        .up
        .difference(found)
        .map(|edge| format!("{TABLE}: {}: nothing in {} uses {} any more", edge.folder, edge.from, edge.to))
        .collect();
    let folders: BTreeSet<&str> = found.iter().map(|edge| edge.folder.as_str()).collect();
    for folder in folders {
        let uses: Vec<&Edge> =
            found.iter().filter(|edge| edge.folder == folder && !floors.up.contains(edge)).collect();
        match floors.floors.get(folder) {
            Some(of_folder) => wrong.extend(uses.iter().filter_map(|edge| runs_up(edge, of_folder))),
            None => wrong.extend(circle(&uses)),
        }
    }
    wrong
}

fn runs_up(edge: &Edge, floors: &BTreeMap<String, usize>) -> Option<String> {
    let Edge { folder, from, to } = edge;
    let (Some(above), Some(below)) = (floors.get(from), floors.get(to)) else {
        let missing = if floors.contains_key(from) { to } else { from };
        return Some(format!("{TABLE}: {folder}: {missing} has no floor"));
    };
    (above <= below).then(|| format!("{folder}: {from} (floor {above}) uses {to} (floor {below})"))
}

/// Finds a circle: takes away the modules that use nothing that is left, until none can be taken.
fn circle(uses: &[&Edge]) -> Option<String> {
    let mut left: Vec<&Edge> = uses.to_vec();
    loop {
        let users: BTreeSet<&str> = left.iter().map(|edge| edge.from.as_str()).collect();
        let before = left.len();
        left.retain(|edge| users.contains(edge.to.as_str()));
        if left.len() == before {
            break;
        }
    }
    let edge = left.first()?;
    let modules: BTreeSet<&str> = left.iter().map(|edge| edge.from.as_str()).collect();
    Some(format!("{}: a circle among {}", edge.folder, modules.into_iter().collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(table: &str, uses: &[(&str, &str)]) -> Vec<String> {
        let edge = |(from, to): &(&str, &str)| Edge {
            folder: "x".to_owned(),
            from: (*from).to_owned(),
            to: (*to).to_owned(),
        };
        wrong(&parse(table).unwrap(), &uses.iter().map(edge).collect())
    }

    #[test]
    fn a_use_of_a_floor_below_is_fine_and_one_that_runs_up_or_along_is_told() {
        let table = "# the floors\nx\n  0: a b\n  1: c\n";
        assert!(said(table, &[("c", "a"), ("c", "b")]).is_empty());
        assert_eq!(said(table, &[("a", "c")]), ["x: a (floor 0) uses c (floor 1)"]);
        assert_eq!(said(table, &[("a", "b")]), ["x: a (floor 0) uses b (floor 0)"]);
        assert_eq!(said(table, &[("d", "a")]), ["xtask/floors.txt: x: d has no floor"]);
    }

    #[test]
    fn an_exception_holds_as_long_as_it_is_needed() {
        let table = "x\n  0: a\n  1: c\n  up a -> c\n";
        assert!(said(table, &[("a", "c")]).is_empty());
        assert_eq!(said(table, &[]), ["xtask/floors.txt: x: nothing in a uses c any more"]);
    }

    #[test]
    fn a_circle_in_a_folder_without_floors_is_told() {
        assert!(said("", &[("a", "b"), ("b", "c"), ("a", "c")]).is_empty());
        assert_eq!(said("", &[("a", "b"), ("b", "c"), ("c", "a")]), ["x: a circle among a, b, c"]);
    }
}
