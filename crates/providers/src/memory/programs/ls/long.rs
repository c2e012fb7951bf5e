//! The lines of `ls -l`.

use std::collections::HashMap;

use super::entries::Entry;
use super::label::EntryLabel;
use super::options::Options;
use crate::memory::programs::facts::{NodeFacts, ShownNodeKind};
use crate::memory::programs::times::{Moment, Zone, format_time};

/// Half a year of the Gregorian calendar, in seconds. Times before it show their year.
const HALF_A_YEAR: i64 = 31_556_952 / 2;

/// The lines of one listing, with the widths of their columns.
pub(super) struct LongLines<'a> {
    options: &'a Options,
    zone: Zone,
    now: Moment,
    links: usize,
    owner: usize,
    size: usize,
    minor: usize,
}

impl<'a> LongLines<'a> {
    /// Measures the columns. They are as wide as others need it too.
    pub(super) fn new(
        entries: &[Entry],
        others: &[Entry],
        options: &'a Options,
        env: &HashMap<String, String>,
    ) -> Self {
        let known = || entries.iter().chain(others).filter_map(|entry| entry.facts.as_ref());
        let minor = known().filter_map(|facts| match facts.kind {
            ShownNodeKind::Device(_, minor) => Some(minor.to_string().len()),
            _ => None,
        });
        let mut lines = Self {
            options,
            zone: Zone::of(env),
            now: Moment::now(),
            links: known().map(|facts| facts.links.to_string().len()).max().unwrap_or(1),
            owner: known().map(|facts| owner(facts, options).len()).max().unwrap_or(1),
            size: 1,
            minor: minor.max().unwrap_or(0),
        };
        lines.size = known().map(|facts| lines.size_of(facts).len()).max().unwrap_or(1);
        lines
    }

    fn size_of(&self, facts: &NodeFacts) -> String {
        match facts.kind {
            ShownNodeKind::Device(major, minor) => format!("{major}, {minor:>width$}", width = self.minor),
            _ => self.options.sizes.show(facts.size),
        }
    }

    fn time_of(&self, time: Moment) -> String {
        let since = self.now.seconds.saturating_sub(time.seconds);
        let is_near = time <= self.now && since < HALF_A_YEAR;
        format_time(&self.options.time_style[usize::from(is_near)], time, &self.zone)
    }

    pub(super) fn put(&self, entry: &Entry, label: &EntryLabel, out: &mut Vec<u8>) {
        let [mode, links, owner, size, time] = match &entry.facts {
            Some(facts) => [
                facts.mode_text(),
                facts.links.to_string(),
                owner(facts, self.options),
                self.size_of(facts),
                self.time_of(facts.modified),
            ],
            None => {
                let width = self.time_of(self.now).len();
                ["??????????", "?", "?", "?", &format!("{:>width$}", "?")].map(str::to_owned)
            }
        };
        // What stands in front of a name stands in front of its line here.
        let front = label.front;
        out.extend_from_slice(&label.bytes[..front]);
        let mut line = format!("{mode} {links:>width$} ", width = self.links);
        for is_shown in [self.options.has_owner, self.options.has_group, self.options.has_author] {
            if !is_shown {
                continue;
            }
            if self.options.is_numeric {
                line += &format!("{owner:>width$} ", width = self.owner);
            } else {
                line += &format!("{owner:<width$} ", width = self.owner);
            }
        }
        line += &format!("{size:>width$} {time} ", width = self.size);
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(&label.bytes[front..]);
        out.push(self.options.line_end);
    }
}

fn owner(facts: &NodeFacts, options: &Options) -> String {
    let (number, name) = facts.owner();
    if options.is_numeric { number.to_string() } else { name.to_owned() }
}
