//! `fold`: breaks long lines. A character is a byte, as in GNU coreutils 9.7.

use async_trait::async_trait;

use super::each_file::EachFile;
use super::options::{OptionWord, complete, or_standard_input, unknown};
use super::paced_output::PacedOutput;
use super::quoting::curly;
use super::run::{BYTES_AT_ONCE, Ending, ProgramRun, ShellProgram};

const USUAL_WIDTH: usize = 80;
const TAB: usize = 8;

const LONG: &[&str] = &["bytes", "spaces", "width"];

pub(super) struct Fold;

#[async_trait]
impl ShellProgram for Fold {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let mut folder = LineFolder { width: USUAL_WIDTH, by_bytes: false, at_spaces: false };
        let mut files = Vec::new();
        let mut words = run.words();
        while let Some(word) = words.next()? {
            match &word {
                OptionWord::Short('b') => folder.by_bytes = true,
                OptionWord::Short('s') => folder.at_spaces = true,
                OptionWord::Short('w') => folder.width = width(&words.value()?)?,
                // The old form: only the width.
                OptionWord::Short(digit) if digit.is_ascii_digit() => {
                    let more = words.attached()?.unwrap_or_default();
                    folder.width = width(&format!("{digit}{more}"))?;
                }
                OptionWord::Short(_) => return Err(unknown(&word)),
                OptionWord::Operand(operand) => files.push(operand.clone()),
                OptionWord::Long(name) => match complete(name, LONG)? {
                    "bytes" => folder.by_bytes = true,
                    "spaces" => folder.at_spaces = true,
                    _ => folder.width = width(&words.value()?)?,
                },
            }
        }
        let files = or_standard_input(files);
        let mut files = EachFile::new(run, &files);
        while let Some(bytes) = files.next(|file, reason| format!("{file}: {reason}")).await? {
            folder.print(run, &bytes).await?;
        }
        Ok(files.status)
    }
}

fn width(text: &str) -> Result<usize, Ending> {
    let refused = |why: &str| Ending::refused(format!("invalid number of columns: {}{why}", curly(text)));
    match text.parse() {
        Ok(0) => Err(refused(": Numerical result out of range")),
        Ok(width) => Ok(width),
        Err(_) => Err(refused("")),
    }
}

#[derive(Debug, Clone, Copy)]
struct LineFolder {
    width: usize,
    by_bytes: bool,
    at_spaces: bool,
}

impl LineFolder {
    async fn print(&self, run: &ProgramRun<'_>, bytes: &[u8]) -> Result<(), Ending> {
        let mut out = PacedOutput::new(run);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let mut rest = FoldedLine::new(*self, line);
            while let Some(piece) = rest.next_piece() {
                if piece.is_empty() {
                    run.breathe().await;
                }
                out.add(piece).await?;
            }
        }
        out.flush().await
    }

    fn column_after(&self, column: usize, byte: u8) -> usize {
        match byte {
            _ if self.by_bytes => column + 1,
            0x08 => column.saturating_sub(1),
            b'\r' => 0,
            b'\t' => column + TAB - column % TAB,
            _ => column + 1,
        }
    }
}

/// A line on its way through the folder.
struct FoldedLine<'a> {
    folder: LineFolder,
    line: &'a [u8],
    /// The part that begins here has not been given yet.
    start: usize,
    at: usize,
    column: usize,
    /// The position after the last blank.
    blank: Option<usize>,
    needs_break: bool,
}

impl<'a> FoldedLine<'a> {
    fn new(folder: LineFolder, line: &'a [u8]) -> Self {
        Self { folder, line, start: 0, at: 0, column: 0, blank: None, needs_break: false }
    }

    /// Returns the next piece of what is to be written. It is empty where there is more to look at.
    fn next_piece(&mut self) -> Option<&'a [u8]> {
        if std::mem::take(&mut self.needs_break) {
            return Some(b"\n");
        }
        if self.start == self.line.len() {
            return None;
        }
        for _ in 0..BYTES_AT_ONCE {
            let Some(byte) = self.line.get(self.at).copied() else {
                return Some(&self.line[std::mem::replace(&mut self.start, self.line.len())..]);
            };
            let after = if byte == b'\n' { 0 } else { self.folder.column_after(self.column, byte) };
            if after > self.folder.width && self.at > self.start {
                let end = self.blank.take().unwrap_or(self.at);
                let piece = &self.line[self.start..end];
                (self.start, self.at, self.column, self.needs_break) = (end, end, 0, true);
                return Some(piece);
            }
            self.column = after;
            self.at += 1;
            if self.folder.at_spaces && matches!(byte, b' ' | b'\t') {
                self.blank = Some(self.at);
            }
        }
        Some(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_at_its_width_or_at_a_blank() {
        let fold = |width, at_spaces, line: &str| {
            let folder = LineFolder { width, by_bytes: false, at_spaces };
            let mut rest = FoldedLine::new(folder, line.as_bytes());
            let pieces = std::iter::from_fn(|| rest.next_piece());
            String::from_utf8(pieces.collect::<Vec<_>>().concat()).unwrap()
        };
        assert_eq!(fold(2, false, "abcde\n"), "ab\ncd\ne\n");
        assert_eq!(fold(5, true, "ab cd ef"), "ab \ncd ef");
        assert_eq!(fold(2, false, "éa\n"), "é\na\n");
        assert_eq!(fold(4, false, "a\tb\n"), "a\n\t\nb\n");
        assert_eq!(fold(2, false, "ab\n"), "ab\n");
    }
}
