//! `read`: a text file, or some lines of it. The file passes through piece by piece; only what may be shown is kept.

use eyot::internal::SandboxInternals;
use eyot::{ByteRange, Error, ErrorKind, MAX_BUFFERED_READ_BYTES, Result, Sandbox};
use futures_util::StreamExt;
use memchr::{memchr, memchr_iter};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{MAX_LINES, MAX_UNITS, units};
use crate::context::ToolContext;
use crate::definition::ToolDef;
use crate::output::ToolOutput;

const DESCRIPTION: &str =
    "Read a file. Output is truncated to 2000 lines or 50KB — use offset/limit for large files.";

/// So many bytes have more than [`MAX_UNITS`] units, even without a half character at their end: a unit has three bytes at
/// the most.
const ENOUGH_BYTES: usize = 3 * (MAX_UNITS + 2);

#[derive(Debug, Deserialize, JsonSchema)]
struct Args {
    /// Path to the file to read
    path: String,
    /// Line number to start from (1-indexed)
    offset: Option<f64>,
    /// Maximum number of lines to read
    limit: Option<f64>,
}

pub(super) fn tool() -> Result<ToolDef> {
    ToolDef::typed("read", DESCRIPTION, async |context: ToolContext, asked: Args| {
        let sandbox = context.sandbox(None).await?;
        read(&sandbox, &asked).await.map(ToolOutput::text)
    })
    .map(ToolDef::read_only)
}

/// Returns lines of a text as `read` shows them: at most `limit` lines, from line `offset` on, counted from 1.
pub fn show_lines(text: &[u8], offset: Option<f64>, limit: Option<f64>) -> Result<String> {
    let asked = Args { path: String::new(), offset, limit };
    let mut window = LineWindow::from_args(&asked);
    window.take(text);
    window.render(&asked)
}

async fn read(sandbox: &Sandbox, asked: &Args) -> Result<String> {
    let mut window = LineWindow::from_args(asked);
    let mut file = sandbox.read_stream(&asked.path, ByteRange::default()).await?;
    while let Some(piece) = file.next().await {
        let (was_done, was_full) = (window.line >= window.end, window.is_full());
        window.take(&piece?);
        // Without a last line all of it would be read, to count its lines: its length says before
        // whether that ends well.
        let is_too_long = !was_full
            && window.counts_all()
            && sandbox.stat(&asked.path).await.is_ok_and(|stat| stat.size > Some(MAX_BUFFERED_READ_BYTES));
        if is_too_long || window.total_bytes > MAX_BUFFERED_READ_BYTES {
            let why = format!("it has more than {MAX_BUFFERED_READ_BYTES} bytes");
            let error =
                Error::new(ErrorKind::TooLarge, why).with_hint("use bash, for example sed -n '1,100p'");
            return Err(sandbox.failed("read file", &asked.path)(error));
        }
        if !was_done && window.is_complete() {
            break;
        }
    }
    window.render(asked).map_err(|error| match error.kind() {
        ErrorKind::NotFound => error,
        _ => sandbox.failed("read file", &asked.path)(error),
    })
}

/// The lines that were asked for, as far as they may be shown, and how many there are in all.
#[derive(Debug, Default)]
struct LineWindow {
    /// The first line, counted from 0.
    start: u64,
    /// Behind the last line.
    end: u64,
    /// The line that the next byte belongs to.
    line: u64,
    /// The lines, with the line feeds between them.
    kept: Vec<u8>,
    /// The number of line feeds in `kept`.
    kept_ends: usize,
    total_bytes: u64,
}

impl LineWindow {
    fn from_args(asked: &Args) -> Self {
        // As Flue has it, an offset of 0 or less is the first line, and a limit of 0 is none.
        let start = to_index(asked.offset).saturating_sub(1);
        let end = match to_index(asked.limit) {
            0 => u64::MAX,
            limit => start.saturating_add(limit),
        };
        Self { start, end, ..Self::default() }
    }

    fn take(&mut self, piece: &[u8]) {
        self.total_bytes += piece.len() as u64;
        let mut rest = piece;
        while !rest.is_empty() && self.line < self.end && !self.is_full() {
            let (line, ended) = match memchr(b'\n', rest) {
                Some(end) => (&rest[..end], true),
                None => (rest, false),
            };
            if self.line >= self.start {
                let room = ENOUGH_BYTES.saturating_sub(self.kept.len()).min(line.len());
                self.kept.extend_from_slice(&line[..room]);
                if ended && self.line + 1 < self.end {
                    self.kept.push(b'\n');
                    self.kept_ends += 1;
                }
            }
            self.line += u64::from(ended);
            rest = &rest[line.len() + usize::from(ended)..];
        }
        self.line += memchr_iter(b'\n', rest).count() as u64;
    }

    /// Every line that was asked for is here and will be shown: neither the rest of the file nor its length matters.
    fn is_complete(&self) -> bool {
        self.line >= self.end && self.text().is_ok_and(|text| !cut(text).is_cut)
    }

    /// Nothing that follows can be shown, and every line of it counts.
    fn counts_all(&self) -> bool {
        self.is_full() && self.end == u64::MAX
    }

    /// Nothing that follows can be shown.
    fn is_full(&self) -> bool {
        self.kept.len() >= ENOUGH_BYTES || self.kept_ends > MAX_LINES
    }

    fn render(&self, asked: &Args) -> Result<String> {
        let total = self.line + 1;
        if self.start >= total {
            let offset = asked.offset.unwrap_or_default();
            let message = format!("Offset {offset} is beyond end of file ({total} lines total)");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let text = self.text()?;
        let TextHead { text: shown, lines, is_cut } = cut(text);
        let first = self.start + 1;
        Ok(match (is_cut, lines) {
            (false, _) => shown.to_owned(),
            (true, 0) => format!(
                "{}\n\n[Line {first} exceeds the {MAX_UNITS}-byte read limit; showing the first {MAX_UNITS} bytes of \
                 it. The remainder of this line is not accessible via offset/limit.]",
                units::head(text, MAX_UNITS)
            ),
            (true, lines) => {
                let last = self.start + lines;
                let next = last + 1;
                format!(
                    "{shown}\n\n[Showing lines {first}-{last} of {total}. Use offset={next} to continue.]"
                )
            }
        })
    }

    fn text(&self) -> Result<&str> {
        match std::str::from_utf8(&self.kept) {
            Ok(text) => Ok(text),
            // The cut was inside a character, and there is more than enough without it.
            Err(error) if self.is_full() && error.error_len().is_none() => {
                Ok(std::str::from_utf8(&self.kept[..error.valid_up_to()]).unwrap_or_default())
            }
            Err(_) => {
                let why = format!("it is not UTF-8 text; it has {} bytes", self.total_bytes);
                let hint = "look at it with bash, for example with file, xxd or iconv";
                Err(Error::new(ErrorKind::Invalid, why).with_hint(hint))
            }
        }
    }
}

/// A number as JavaScript uses it for an index: what is behind the point does not count.
fn to_index(number: Option<f64>) -> u64 {
    // The cast saturates: less than 0 is 0.
    number.unwrap_or_default() as u64
}

/// The beginning of a text, and whether there is more.
struct TextHead<'a> {
    text: &'a str,
    lines: u64,
    is_cut: bool,
}

/// Cuts a text before the line that would be too much.
fn cut(text: &str) -> TextHead<'_> {
    let (mut units, mut end, mut lines) = (0, 0, 0);
    for line in text.split('\n') {
        let separator = usize::from(lines > 0);
        units += separator + units::length(line);
        if lines as usize >= MAX_LINES || units > MAX_UNITS {
            return TextHead { text: &text[..end], lines, is_cut: true };
        }
        end += separator + line.len();
        lines += 1;
    }
    TextHead { text, lines, is_cut: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(offset: Option<f64>, limit: Option<f64>) -> Args {
        Args { path: "f".into(), offset, limit }
    }

    /// Renders a file, however it arrives.
    fn render(file: &[u8], asked: &Args) -> Result<String> {
        let mut results = [1, 7, 4096, usize::MAX].map(|size| {
            let mut window = LineWindow::from_args(asked);
            file.chunks(size.min(file.len().max(1))).for_each(|piece| window.take(piece));
            window.render(asked).map_err(|error| error.to_string())
        });
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]));
        std::mem::replace(&mut results[0], Ok(String::new()))
            .map_err(|text| Error::new(ErrorKind::Invalid, text))
    }

    fn text(file: &str, offset: Option<f64>, limit: Option<f64>) -> String {
        render(file.as_bytes(), &asked(offset, limit)).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn a_file_is_shown_as_it_is_without_line_numbers() {
        assert_eq!(text("a\nb\r\n", None, None), "a\nb\r\n");
        assert_eq!(text("", None, None), "");
    }

    #[test]
    fn offset_counts_from_one_and_zero_or_less_is_the_first_line() {
        assert_eq!(text("a\nb\nc", Some(2.0), None), "b\nc");
        assert_eq!(text("a\nb\nc", Some(0.0), None), "a\nb\nc");
        assert_eq!(text("a\nb\nc", Some(-7.0), Some(1.0)), "a");
    }

    #[test]
    fn a_limit_cuts_without_a_marker_and_zero_is_none() {
        assert_eq!(text("a\nb\nc", Some(2.0), Some(1.0)), "b");
        assert_eq!(text("a\nb\nc", None, Some(0.0)), "a\nb\nc");
        assert_eq!(text("a\n", Some(2.0), None), "");
    }

    #[test]
    fn an_offset_past_the_end_says_how_many_lines_there_are() {
        assert_eq!(text("a\nb\n", Some(4.0), None), "Offset 4 is beyond end of file (3 lines total)");
        assert_eq!(text("", Some(2.0), None), "Offset 2 is beyond end of file (1 lines total)");
    }

    #[test]
    fn two_thousand_lines_are_shown_and_then_where_to_go_on() {
        let file = "x\n".repeat(2_001);
        let marker = "\n\n[Showing lines 1-2000 of 2002. Use offset=2001 to continue.]";
        assert_eq!(text(&file, None, None), format!("{}{marker}", "x\n".repeat(2_000).trim_end()));
        assert_eq!(text(&file, Some(2_001.0), None), "x\n");
        assert_eq!(text(&"x\n".repeat(1_999), None, None), "x\n".repeat(1_999));
    }

    #[test]
    fn the_line_that_would_pass_the_size_limit_is_left_out() {
        let file = format!("{}\n{}\nend", "a".repeat(40_000), "b".repeat(20_000));
        let marker = "\n\n[Showing lines 1-1 of 3. Use offset=2 to continue.]";
        assert!(text(&file, None, None) == format!("{}{marker}", "a".repeat(40_000)));
    }

    #[test]
    fn a_first_line_that_is_too_long_is_cut_and_said_to_be() {
        let file = format!("first\n{}", "漢".repeat(60_000));
        let marker = "\n\n[Line 2 exceeds the 51200-byte read limit; showing the first 51200 bytes of it. The \
                      remainder of this line is not accessible via offset/limit.]";
        assert!(text(&file, Some(2.0), None) == format!("{}{marker}", "漢".repeat(51_200)));
    }

    #[test]
    fn sizes_count_utf_16_units() {
        let exact = "漢".repeat(51_200);
        assert!(text(&exact, None, None) == exact);
        let emoji = "😀".repeat(25_600);
        assert!(text(&emoji, None, None) == emoji);
    }

    #[test]
    fn what_is_not_utf_8_is_said_to_be_so_with_the_files_size() {
        let error = render(b"ok\n\xff\xfe\n", &asked(None, None)).unwrap_err().to_string();
        assert_eq!(error, "it is not UTF-8 text; it has 6 bytes");
        let other_line = render(b"ok\n\xff\xfe\n", &asked(None, Some(1.0))).unwrap();
        assert_eq!(other_line, "ok");
    }
}
