//! Lines of output, with a mark in front.

use std::ops::Range;

use super::text::DiffText;

/// The note after a last line without a newline.
const INCOMPLETE: &[u8] = b"\n\\ No newline at end of file\n";

/// Writes lines with a mark in front.
pub(super) struct LineWriter {
    /// The text between the mark and the line.
    pub gap: &'static str,
    /// The columns between tab stops, if tabs are printed as spaces.
    pub tab_size: Option<usize>,
    /// An empty line has no gap behind its mark.
    pub blank_stays_empty: bool,
}

impl LineWriter {
    pub(super) fn write_all(&self, mark: &str, text: &DiffText, lines: Range<usize>, out: &mut Vec<u8>) {
        for at in lines {
            self.write(mark, text, at, out);
        }
    }

    pub(super) fn write(&self, mark: &str, text: &DiffText, at: usize, out: &mut Vec<u8>) {
        let content = text.content(at);
        out.extend_from_slice(mark.as_bytes());
        if !(self.blank_stays_empty && content.is_empty()) {
            out.extend_from_slice(self.gap.as_bytes());
        }
        match self.tab_size {
            None => out.extend_from_slice(content),
            Some(tab_size) => write_expanded(content, tab_size, out),
        }
        out.extend_from_slice(if text.is_complete(at) { b"\n" } else { INCOMPLETE });
    }
}

/// Writes a line with spaces in place of its tabs.
fn write_expanded(content: &[u8], tab_size: usize, out: &mut Vec<u8>) {
    let mut column = 0;
    for byte in content {
        match byte {
            b'\t' => {
                let spaces = tab_size - column % tab_size;
                out.resize(out.len() + spaces, b' ');
                column += spaces;
            }
            b'\r' => {
                out.push(b'\r');
                column = 0;
            }
            _ => {
                // The bytes behind the first of a letter take no column.
                column += usize::from(byte & 0xc0 != 0x80);
                out.push(*byte);
            }
        }
    }
}
