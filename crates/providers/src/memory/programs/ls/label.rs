//! Names as `ls` prints them: quoted, coloured, marked, with what stands in front.

use unicode_width::UnicodeWidthStr;

use super::entries::Entry;
use super::options::{ListLayout, NameMarks, Options};
use crate::memory::programs::facts::{NodeFacts, ShownNodeKind};
use crate::memory::programs::name_style::{NameStyle, with_marks};

/// A name as it is printed, and the columns that it takes.
#[derive(Debug)]
pub(super) struct EntryLabel {
    pub bytes: Vec<u8>,
    /// The bytes in front of the name: its inode and its blocks.
    pub front: usize,
    pub width: usize,
}

/// Writes colours. The first one of a run is led in.
#[derive(Debug, Default)]
pub(super) struct Painter {
    has_painted: bool,
}

impl Painter {
    pub(super) fn labels(&mut self, entries: &[Entry], options: &Options) -> Vec<EntryLabel> {
        let is_aligned =
            matches!(options.layout, ListLayout::Long | ListLayout::Columns | ListLayout::Across)
                && matches!(options.style, NameStyle::Shell | NameStyle::ShellEscape | NameStyle::CMaybe);
        let is_quoted = |entry: &Entry| options.style.of(&entry.name) != entry.name;
        let is_aligned = is_aligned && entries.iter().any(is_quoted);
        let fronts = fronts(entries, options);
        let label = |(entry, front): (&Entry, String)| {
            let mut bytes = front.into_bytes();
            let front = bytes.len();
            if is_aligned && !is_quoted(entry) {
                bytes.push(b' ');
            }
            let mut width = bytes.len();
            let name = shown(&entry.name, options);
            width += width_of(&name);
            let is_lost = entry.target.is_none();
            self.paint(&name, &entry.name, entry.facts.as_ref(), is_lost, options, &mut bytes);
            let has_target =
                options.layout == ListLayout::Long && self.put_target(entry, options, &mut bytes);
            if !has_target
                && let Some(mark) = entry.facts.as_ref().and_then(|facts| mark(facts, options.marks))
            {
                bytes.push(mark);
                width += 1;
            }
            EntryLabel { bytes, front, width }
        };
        entries.iter().zip(fronts).map(label).collect()
    }

    /// Writes where a link leads to.
    fn put_target(&mut self, entry: &Entry, options: &Options, out: &mut Vec<u8>) -> bool {
        let Some(target) = entry.facts.as_ref().and_then(|facts| facts.target.as_ref()) else { return false };
        out.extend_from_slice(b" -> ");
        let name = shown(target, options);
        match &entry.target {
            Some(facts) => {
                self.paint(&name, target, Some(facts), false, options, out);
                out.extend(mark(facts, options.marks));
            }
            None => self.paint(&name, target, None, true, options, out),
        }
        true
    }

    fn paint(
        &mut self,
        shown: &[u8],
        name: &[u8],
        facts: Option<&NodeFacts>,
        is_lost: bool,
        options: &Options,
        out: &mut Vec<u8>,
    ) {
        let is_lost_link = is_lost && facts.is_some_and(|facts| facts.kind == ShownNodeKind::Link);
        let color = options.colors.as_ref().and_then(|colors| colors.color(name, facts, is_lost_link));
        let Some(color) = color else {
            out.extend_from_slice(shown);
            return;
        };
        if !self.has_painted {
            self.has_painted = true;
            out.extend_from_slice(b"\x1b[0m");
        }
        out.extend_from_slice(format!("\x1b[{color}m").as_bytes());
        out.extend_from_slice(shown);
        out.extend_from_slice(b"\x1b[0m");
    }
}

/// The columns that a name takes. What can't be printed takes none.
fn width_of(name: &[u8]) -> usize {
    let text: String = String::from_utf8_lossy(name).chars().filter(|letter| !letter.is_control()).collect();
    text.width()
}

fn shown(name: &[u8], options: &Options) -> Vec<u8> {
    let name = options.style.of(name);
    if options.marks_odd { with_marks(&name) } else { name }
}

fn mark(facts: &NodeFacts, marks: NameMarks) -> Option<u8> {
    match (facts.kind, marks) {
        (_, NameMarks::None) => None,
        (ShownNodeKind::Directory, _) => Some(b'/'),
        (_, NameMarks::Slash) => None,
        (ShownNodeKind::Link, _) => Some(b'@'),
        (ShownNodeKind::Fifo, _) => Some(b'|'),
        (ShownNodeKind::File, NameMarks::Classify) if facts.is_program() => Some(b'*'),
        _ => None,
    }
}

/// The inodes and blocks in front of names.
fn fronts(entries: &[Entry], options: &Options) -> Vec<String> {
    let known = |entry: &Entry, what: fn(&NodeFacts, &Options) -> String| {
        entry.facts.as_ref().map_or("?".to_owned(), |facts| what(facts, options))
    };
    let mut fronts = vec![String::new(); entries.len()];
    let inode: fn(&NodeFacts, &Options) -> String = |facts, _| facts.inode.to_string();
    let blocks: fn(&NodeFacts, &Options) -> String = |facts, options| options.blocks.show(facts.disk_bytes);
    for (is_asked_for, what) in [(options.has_inode, inode), (options.has_blocks, blocks)] {
        if !is_asked_for {
            continue;
        }
        let all: Vec<String> = entries.iter().map(|entry| known(entry, what)).collect();
        let widest = all.iter().map(String::len).max().unwrap_or(0);
        let width = if options.layout == ListLayout::Commas { 0 } else { widest };
        for (front, text) in fronts.iter_mut().zip(all) {
            *front += &format!("{text:>width$} ");
        }
    }
    fronts
}
