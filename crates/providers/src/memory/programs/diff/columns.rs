//! `diff -y`: two columns side by side.

use std::ops::Range;

use super::changes::DiffChange;
use super::text::DiffText;

/// The least columns between the two.
const GUTTER: usize = 3;

/// Writes two texts side by side.
pub(super) struct DiffColumns<'a> {
    pub texts: [&'a DiffText; 2],
    pub expands_tabs: bool,
    pub tab_size: usize,
    pub is_left_column: bool,
    pub hides_common: bool,
    /// The width of each column.
    half: usize,
    /// The place at which the right column begins.
    offset: usize,
}

impl<'a> DiffColumns<'a> {
    pub(super) fn new(texts: [&'a DiffText; 2], width: usize, tab_size: usize, expands_tabs: bool) -> Self {
        let (half, offset) = layout(width, if expands_tabs { 1 } else { tab_size });
        Self { texts, expands_tabs, tab_size, is_left_column: false, hides_common: false, half, offset }
    }

    /// Writes lines that both have. They may differ in what is ignored, even in their number.
    pub(super) fn common(&self, old: Range<usize>, new: Range<usize>) -> Vec<u8> {
        let mut out = Vec::new();
        if self.hides_common {
            return out;
        }
        let pairs = old.len().min(new.len());
        for (left, right) in old.clone().zip(new.clone()) {
            if self.is_left_column {
                self.write(Some(left), '(', None, &mut out);
            } else {
                self.write(Some(left), ' ', Some(right), &mut out);
            }
        }
        new.skip(pairs).for_each(|right| self.write(None, ')', Some(right), &mut out));
        old.skip(pairs).for_each(|left| self.write(Some(left), '(', None, &mut out));
        out
    }

    /// Writes a change.
    pub(super) fn change(&self, change: &DiffChange) -> Vec<u8> {
        let mut out = Vec::new();
        let pairs = change.old.len().min(change.new.len());
        for (left, right) in change.old.clone().zip(change.new.clone()) {
            self.write(Some(left), '|', Some(right), &mut out);
        }
        change.new.clone().skip(pairs).for_each(|right| self.write(None, '>', Some(right), &mut out));
        change.old.clone().skip(pairs).for_each(|left| self.write(Some(left), '<', None, &mut out));
        out
    }

    fn write(&self, left: Option<usize>, mark: char, right: Option<usize>, out: &mut Vec<u8>) {
        let is_complete = |side: usize, at: Option<usize>| at.map(|at| self.texts[side].is_complete(at));
        let (left_complete, right_complete) = (is_complete(0, left), is_complete(1, right));
        let mut column = left.map_or(0, |at| self.write_half(self.texts[0].content(at), 0, out));
        if mark != ' ' {
            column = self.go(column, (self.half + self.offset - 1) / 2, out) + 1;
            let mark = match (mark, left_complete, right_complete) {
                ('|', Some(true), Some(false)) => '/',
                ('|', Some(false), Some(true)) => '\\',
                _ => mark,
            };
            out.push(mark as u8);
        }
        if let Some(at) = right
            && !self.texts[1].content(at).is_empty()
        {
            let column = self.go(column, self.offset, out);
            self.write_half(self.texts[1].content(at), column, out);
        }
        if left_complete == Some(true) || right_complete == Some(true) {
            out.push(b'\n');
        }
    }

    /// Goes on to a column, by tabs as far as they reach.
    fn go(&self, mut from: usize, to: usize, out: &mut Vec<u8>) -> usize {
        if !self.expands_tabs {
            let mut stop = from + self.tab_size - from % self.tab_size;
            while stop <= to {
                out.push(b'\t');
                from = stop;
                stop += self.tab_size;
            }
        }
        out.resize(out.len() + to.saturating_sub(from), b' ');
        from.max(to)
    }

    /// Writes as much of a line as a column holds, and returns the column where it ends.
    fn write_half(&self, content: &[u8], indent: usize, out: &mut Vec<u8>) -> usize {
        // Where the line is, and where the output is, within the column.
        let (mut at, mut written) = (0, 0);
        for chunk in content.utf8_chunks() {
            for letter in chunk.valid().chars() {
                self.write_letter(letter, &mut at, &mut written, indent, out);
            }
            if at < self.half {
                out.extend_from_slice(chunk.invalid());
            }
        }
        indent + written
    }

    fn write_letter(
        &self,
        letter: char,
        at: &mut usize,
        written: &mut usize,
        indent: usize,
        out: &mut Vec<u8>,
    ) {
        match letter {
            '\t' => {
                let spaces = self.tab_size - *at % self.tab_size;
                if at == written {
                    let stop = *written + spaces;
                    if self.expands_tabs {
                        let stop = stop.min(self.half);
                        out.resize(out.len() + stop.saturating_sub(*written), b' ');
                        *written = (*written).max(stop);
                    } else if stop < self.half {
                        out.push(b'\t');
                        *written = stop;
                    }
                }
                *at += spaces;
            }
            '\r' => {
                out.push(b'\r');
                self.go(0, indent, out);
                (*at, *written) = (0, 0);
            }
            letter if letter.is_control() => {
                if *at < self.half {
                    out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
            letter => {
                *at += 1;
                if *at <= self.half {
                    *written = *at;
                    out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
        }
    }
}

/// The width of a column, and where the right one begins: at a tab stop, so that its tabs fit.
fn layout(width: usize, tab: usize) -> (usize, usize) {
    let around = tab + GUTTER;
    let middle = width / 2 + around / 2 + (width & around & 1);
    let offset = middle - middle % tab;
    if offset <= GUTTER || width <= offset {
        return (0, width);
    }
    ((offset - GUTTER).min(width - offset), offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_column_begins_at_a_tab_stop() {
        assert_eq!(layout(130, 8), (61, 64));
        assert_eq!(layout(30, 8), (13, 16));
        assert_eq!(layout(5, 8), (0, 5));
    }
}
