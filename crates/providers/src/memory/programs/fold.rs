//! `fold`: long lines are broken. A character is a byte, as in GNU's of coreutils 9.7.

use async_trait::async_trait;

use super::each_file::EachFile;
use super::options::{OptionWord, complete, or_standard_input, unknown};
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
                // The old form: the width alone.
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
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let mut out = Vec::new();
        loop {
            let line = lines.next();
            if line.is_none() || out.len() > BYTES_AT_ONCE {
                run.print(std::mem::take(&mut out)).await?;
                run.breathe().await;
            }
            let Some(line) = line else { return Ok(()) };
            self.fold(line, &mut out);
        }
    }

    /// Writes a line with its breaks.
    fn fold(&self, line: &[u8], out: &mut Vec<u8>) {
        let (mut start, mut column, mut at) = (0, 0, 0);
        // The place behind the last blank.
        let mut blank = None;
        while at < line.len() {
            let byte = line[at];
            let after = if byte == b'\n' { 0 } else { self.column_after(column, byte) };
            if after > self.width && at > start {
                let end = blank.take().unwrap_or(at);
                out.extend_from_slice(&line[start..end]);
                out.push(b'\n');
                (start, at, column) = (end, end, 0);
                continue;
            }
            column = after;
            at += 1;
            if self.at_spaces && matches!(byte, b' ' | b'\t') {
                blank = Some(at);
            }
        }
        out.extend_from_slice(&line[start..]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_at_its_width_or_at_a_blank() {
        let fold = |width, at_spaces, line: &str| {
            let mut out = Vec::new();
            LineFolder { width, by_bytes: false, at_spaces }.fold(line.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(fold(2, false, "abcde\n"), "ab\ncd\ne\n");
        assert_eq!(fold(5, true, "ab cd ef"), "ab \ncd ef");
        assert_eq!(fold(2, false, "éa\n"), "é\na\n");
        assert_eq!(fold(4, false, "a\tb\n"), "a\n\t\nb\n");
        assert_eq!(fold(2, false, "ab\n"), "ab\n");
    }
}
