//! Names beside each other: in columns, in rows, or with commas.

use super::label::EntryLabel;
use super::options::{ListLayout, Options};

/// The narrowest column: a letter, and the blanks behind it.
const MIN_COLUMN: usize = 3;
/// The blanks between columns.
const GAP: usize = 2;
/// Listings that are longer have one column: to try all widths would take too long.
const MOST_NAMES: usize = 100_000;

/// The search for the most columns that fit.
pub(super) struct ColumnSearch<'a> {
    labels: &'a [EntryLabel],
    options: &'a Options,
    columns: usize,
    widths: Option<Vec<usize>>,
}

impl<'a> ColumnSearch<'a> {
    pub(super) fn new(labels: &'a [EntryLabel], options: &'a Options) -> Self {
        let most = (options.width / MIN_COLUMN).max(1);
        let columns = if labels.len() > MOST_NAMES { 1 } else { labels.len().min(most).max(1) };
        Self { labels, options, columns, widths: None }
    }

    pub(super) fn is_found(&self) -> bool {
        self.widths.is_some()
    }

    /// Tries a number of columns, each time one less.
    pub(super) fn try_next(&mut self) {
        let columns = self.columns;
        let rows = self.labels.len().div_ceil(columns);
        let mut widths = vec![MIN_COLUMN; columns];
        let mut total = MIN_COLUMN * columns;
        for (index, label) in self.labels.iter().enumerate() {
            let column = self.column(index, rows);
            let width = label.width + if column + 1 == columns { 0 } else { GAP };
            if width > widths[column] {
                total += width - widths[column];
                widths[column] = width;
            }
            if columns > 1 && total >= self.options.width {
                self.columns -= 1;
                return;
            }
        }
        self.widths = Some(widths);
    }

    fn column(&self, index: usize, rows: usize) -> usize {
        if self.options.layout == ListLayout::Across { index % self.columns } else { index / rows.max(1) }
    }

    pub(super) fn print(&self) -> Vec<u8> {
        let Some(widths) = &self.widths else { return Vec::new() };
        let rows = self.labels.len().div_ceil(self.columns);
        let mut out = Vec::new();
        for row in 0..rows {
            let (mut at, mut start) = (0, 0);
            for (column, width) in widths.iter().enumerate() {
                let index = match self.options.layout {
                    ListLayout::Across => row * self.columns + column,
                    _ => column * rows + row,
                };
                let Some(label) = self.labels.get(index) else { break };
                indent(at, start, self.options.tab, &mut out);
                out.extend_from_slice(&label.bytes);
                at = start + label.width;
                start += width;
            }
            out.push(self.options.line_end);
        }
        out
    }
}

/// Goes to a column, by tabs where they reach.
fn indent(mut from: usize, to: usize, tab: usize, out: &mut Vec<u8>) {
    while from < to {
        if tab != 0 && to / tab > (from + 1) / tab {
            out.push(b'\t');
            from += tab - from % tab;
        } else {
            out.push(b' ');
            from += 1;
        }
    }
}

/// Writes names with commas, in lines that are not too long.
pub(super) fn with_commas(labels: &[EntryLabel], options: &Options) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    for (index, label) in labels.iter().enumerate() {
        if index > 0 {
            let fits = at + label.width + GAP < options.width;
            out.extend_from_slice(if fits { b", " } else { b",\n" });
            at = if fits { at + GAP } else { 0 };
        }
        out.extend_from_slice(&label.bytes);
        at += label.width;
    }
    if !labels.is_empty() {
        out.push(options.line_end);
    }
    out
}
