//! The entries that `ls` shows.

use std::collections::BTreeSet;

use super::is_shown;
use super::options::{DotNames, LsFollow, Options};
use crate::memory::files::HeldFiles;
use crate::memory::node::{FileAccess, NodeId};
use crate::memory::place::Place;
use crate::memory::programs::facts::{NodeFacts, ShownNodeKind, look};
use crate::memory::programs::run::{ProgramRun, reason};
use crate::memory::walk::Last;

/// The prefix of the names of internal programs, which are not listed.
const INNER_NAMES: &[u8] = b"__eyot_";

/// A name, and what it leads to.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub name: Vec<u8>,
    /// `None` if nothing is known.
    pub facts: Option<NodeFacts>,
    /// The target of a link, if it is needed.
    pub target: Option<NodeFacts>,
}

/// A directory that was read.
#[derive(Debug)]
pub(super) struct Folder {
    pub id: NodeId,
    pub entries: Vec<Entry>,
    /// The names of which nothing is known, with the reasons.
    pub failed: Vec<(Vec<u8>, &'static str)>,
}

/// The path of a name in a directory.
pub(super) fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if directory.ends_with(b"/") { b"" } else { b"/" };
    [directory, slash, name].concat()
}

/// Looks at a name on the command line.
pub(super) async fn operand(
    run: &ProgramRun<'_>,
    options: &Options,
    name: &str,
) -> Result<Entry, &'static str> {
    let facts = match options.follow {
        LsFollow::Never => look(run, name, Last::Keep).await?,
        LsFollow::CommandLine | LsFollow::Always => look(run, name, Last::Follow).await?,
        LsFollow::Directories => match look(run, name, Last::Follow).await {
            Ok(facts) if facts.is_directory() => facts,
            _ => look(run, name, Last::Keep).await?,
        },
    };
    let held = run.hold();
    let target = target_of(run, &held, options, name.as_bytes(), &facts);
    Ok(Entry { name: name.as_bytes().to_vec(), facts: Some(facts), target })
}

/// Reads a directory.
pub(super) async fn list(
    run: &ProgramRun<'_>,
    options: &Options,
    path: &[u8],
) -> Result<Folder, &'static str> {
    match read(run, options, path) {
        Ok((mut folder, place)) => {
            if has_more_beyond(&place) {
                add_beyond(run, options, &place.path(), &mut folder).await;
            }
            Ok(folder)
        }
        Err(error) => {
            let mut folder = Folder { id: 0, entries: Vec::new(), failed: Vec::new() };
            let is_missing = error.kind() == eyot::ErrorKind::NotFound;
            let is_there = is_missing && add_beyond(run, options, path, &mut folder).await;
            if is_there { Ok(folder) } else { Err(reason(&error)) }
        }
    }
}

/// Returns whether the shell provides more files in this directory: its programs, or the files with the host's name.
fn has_more_beyond(place: &Place) -> bool {
    let names: Vec<&[u8]> = place.names.iter().map(Vec::as_slice).collect();
    matches!(names.as_slice(), [b"bin" | b"etc"] | [b"usr", b"bin"])
}

/// Adds the files that the shell provides in a directory. Returns whether the directory exists.
async fn add_beyond(run: &ProgramRun<'_>, options: &Options, path: &[u8], folder: &mut Folder) -> bool {
    let name = String::from_utf8_lossy(path);
    let Some(found) = run.list_beyond(&name).await else { return false };
    let entry = |found: bashkit::DirEntry| Entry {
        name: found.name.into_bytes(),
        facts: Some(NodeFacts::beyond(&found.metadata)),
        target: None,
    };
    let there: BTreeSet<Vec<u8>> = folder.entries.iter().map(|entry| entry.name.clone()).collect();
    let is_new = |entry: &Entry| {
        let name = entry.name.as_slice();
        is_shown(name, options) && !there.contains(name) && !name.starts_with(INNER_NAMES)
    };
    folder.entries.extend(found.into_iter().map(entry).filter(is_new));
    true
}

fn read(run: &ProgramRun<'_>, options: &Options, path: &[u8]) -> eyot::Result<(Folder, Place)> {
    let held = run.hold();
    let place = run.find_bytes(&held, path, Last::Follow)?;
    let id = place.found()?;
    let directory = held.tree.node(id);
    let names = held.tree.entries(id)?;
    directory.check(FileAccess::Read)?;
    let is_closed = directory.check(FileAccess::Search).is_err();
    let mut folder = Folder { id, entries: Vec::new(), failed: Vec::new() };
    if options.hidden == DotNames::All {
        for (name, id) in [(b".".as_slice(), id), (b"..", place.parent)] {
            if is_shown(name, options) {
                let facts = Some(NodeFacts::of(&held, id));
                folder.entries.push(Entry { name: name.to_vec(), facts, target: None });
            }
        }
    }
    for (name, id) in names.iter().filter(|(name, _)| is_shown(name, options)) {
        if is_closed && options.needs_facts() {
            folder.failed.push((name.clone(), "Permission denied"));
            folder.entries.push(Entry { name: name.clone(), facts: None, target: None });
            continue;
        }
        let facts = NodeFacts::of(&held, *id);
        let entry = if facts.kind == ShownNodeKind::Link {
            link(run, &held, options, (path, name), facts, &mut folder.failed)
        } else {
            Entry { name: name.clone(), facts: Some(facts), target: None }
        };
        folder.entries.push(entry);
    }
    Ok((folder, place))
}

/// Makes the entry of a link, which is perhaps followed.
fn link(
    run: &ProgramRun<'_>,
    held: &HeldFiles<'_>,
    options: &Options,
    (directory, name): (&[u8], &[u8]),
    facts: NodeFacts,
    failed: &mut Vec<(Vec<u8>, &'static str)>,
) -> Entry {
    let path = joined(directory, name);
    let name = name.to_vec();
    if options.follow != LsFollow::Always {
        let target = target_of(run, held, options, &path, &facts);
        return Entry { name, facts: Some(facts), target };
    }
    let found = run.find_bytes(held, &path, Last::Follow).and_then(|place| place.found());
    match found {
        Ok(id) => Entry { name, facts: Some(NodeFacts::of(held, id)), target: None },
        Err(error) => {
            if options.needs_facts() {
                failed.push((name.clone(), reason(&error)));
            }
            let facts = if options.needs_facts() { None } else { Some(facts) };
            Entry { name, facts, target: None }
        }
    }
}

/// Looks at what a link leads to, if a colour or a mark hangs on it.
fn target_of(
    run: &ProgramRun<'_>,
    held: &HeldFiles<'_>,
    options: &Options,
    path: &[u8],
    facts: &NodeFacts,
) -> Option<NodeFacts> {
    if facts.kind != ShownNodeKind::Link || !options.needs_targets() {
        return None;
    }
    let id = run.find_bytes(held, path, Last::Follow).ok()?.node?;
    Some(NodeFacts::of(held, id))
}
