//! A part of a text file by lines, bounded in lines and bytes; only what is needed of the file is read.

use std::time::Duration;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::{DEFAULT_TIMEOUT_MS, Workspace, text};
use crate::driver::ByteStream;
use crate::error::{Error, ErrorKind, Result};
use crate::files::ByteRange;

/// A part of a text file to read. Each number must be at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct PageOptions {
    /// The first line, counted from 1; by default 1.
    pub start_line: u64,
    /// The most lines; by default 500.
    pub line_count: u64,
    /// The most bytes; by default 65,536.
    pub max_bytes: u64,
}

impl Default for PageOptions {
    fn default() -> Self {
        Self { start_line: 1, line_count: 500, max_bytes: 65_536 }
    }
}

/// The limit that ended a page before the file did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TruncatedBy {
    /// The number of lines.
    Lines,
    /// The number of bytes; the cut is at a whole character.
    Bytes,
}

/// A part of a text file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TextPage {
    /// The text, line ends included.
    pub content: String,
    /// The first line, as it was asked for.
    pub start_line: u64,
    /// The last line of which something is here; `None` if nothing is.
    pub end_line: Option<u64>,
    /// The line at which to go on, if there is more and the page ended at a line's end.
    pub next_start_line: Option<u64>,
    /// There is more.
    pub truncated: bool,
    /// The limit that ended it.
    pub truncated_by: Option<TruncatedBy>,
}

impl Workspace {
    /// Reads a page of a text file. Past the end it is empty. The spec's `limits.max_file_bytes` does not apply; its
    /// `limits.timeout_ms` (or [`DEFAULT_TIMEOUT_MS`]) does: looking for a line may take long in a file that claims to be any
    /// size, and ends with `timeout` then.
    pub async fn read_text_file_page(&self, path: &str, options: PageOptions) -> Result<TextPage> {
        let (path, place) = self.place("read_text_file_page", path)?;
        options.check()?;
        let stream =
            self.sandbox.read_stream_at(&place, path.as_str(), ByteRange::default(), u64::MAX).await?;
        let timeout_ms = self.sandbox.info().spec.limits.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
        let read =
            tokio::time::timeout(Duration::from_millis(timeout_ms), PageWindow::read(stream, options)).await;
        let window = read.unwrap_or_else(|_elapsed| {
            let why = format!("looking for line {} took more than {timeout_ms} ms", options.start_line);
            let error =
                Error::new(ErrorKind::Timeout, why).with_hint("run sed or tail, which can take longer");
            Err(self.sandbox.failed("read file", &path)(error))
        })?;
        Ok(window.page(options))
    }
}

impl PageOptions {
    fn check(&self) -> Result<()> {
        let Self { start_line, line_count, max_bytes } = *self;
        for (field, value) in [("startLine", start_line), ("lineCount", line_count), ("maxBytes", max_bytes)]
        {
            if value == 0 {
                return Err(Error::invalid(field, "must be at least 1"));
            }
        }
        Ok(())
    }
}

/// The bytes of the lines that were asked for, and at most a few more than may be shown.
#[derive(Debug, Default)]
struct PageWindow {
    bytes: Vec<u8>,
    /// Line ends before the window.
    skipped: u64,
    /// Line ends in the window.
    lines: u64,
    /// There is something after the last line that was asked for.
    more: bool,
}

impl PageWindow {
    async fn read(mut stream: ByteStream, options: PageOptions) -> Result<Self> {
        let mut window = Self::default();
        while let Some(piece) = stream.next().await {
            if window.take(&piece?, options) {
                break;
            }
        }
        Ok(window)
    }

    /// Takes what belongs into the window, and says whether nothing that follows can matter.
    fn take(&mut self, piece: &[u8], options: PageOptions) -> bool {
        let mut rest = self.skip(piece, options.start_line - 1);
        // A character has at most four bytes: with four more than may be shown, the cut is known.
        let room = options.max_bytes.saturating_add(4);
        while !rest.is_empty() {
            if self.lines == options.line_count {
                self.more = true;
                return true;
            }
            let line = line_of(rest);
            self.bytes.extend_from_slice(line);
            self.lines += u64::from(line.ends_with(b"\n"));
            rest = &rest[line.len()..];
            if self.bytes.len() as u64 >= room {
                return true;
            }
        }
        false
    }

    /// Returns what is left of a piece after the lines before the window.
    fn skip<'a>(&mut self, mut piece: &'a [u8], before: u64) -> &'a [u8] {
        while self.skipped < before && !piece.is_empty() {
            let line = line_of(piece);
            self.skipped += u64::from(line.ends_with(b"\n"));
            piece = &piece[line.len()..];
        }
        piece
    }

    fn page(self, options: PageOptions) -> TextPage {
        let max = usize::try_from(options.max_bytes).unwrap_or(usize::MAX);
        let cut = self.bytes.len() > max;
        let shown =
            if cut { &self.bytes[..max - text::unfinished(&self.bytes[..max])] } else { &self.bytes[..] };
        let ends = shown.iter().filter(|byte| **byte == b'\n').count() as u64;
        let at_line_end = shown.ends_with(b"\n");
        let lines = ends + u64::from(!at_line_end && !shown.is_empty());
        let truncated_by = match (cut, self.more) {
            (true, _) => Some(TruncatedBy::Bytes),
            (false, true) => Some(TruncatedBy::Lines),
            (false, false) => None,
        };
        let goes_on = truncated_by.is_some() && at_line_end;
        let content = if options.start_line == 1 { text::decode(shown) } else { text::lossy(shown) };
        TextPage {
            content,
            start_line: options.start_line,
            end_line: (lines > 0).then(|| options.start_line + lines - 1),
            next_start_line: goes_on.then(|| options.start_line + lines),
            truncated: truncated_by.is_some(),
            truncated_by,
        }
    }
}

/// The first line of some bytes with its end, or all of them if the line goes on.
fn line_of(bytes: &[u8]) -> &[u8] {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => &bytes[..=end],
        None => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page that any way of cutting the file into pieces gives.
    fn page(file: &str, start_line: u64, line_count: u64, max_bytes: u64) -> TextPage {
        let options = PageOptions { start_line, line_count, max_bytes };
        let pages: Vec<TextPage> = (1..=file.len().max(1))
            .map(|size| {
                let mut window = PageWindow::default();
                file.as_bytes().chunks(size).any(|piece| window.take(piece, options));
                window.page(options)
            })
            .collect();
        assert!(pages.windows(2).all(|pair| pair[0] == pair[1]), "{pages:?}");
        pages[0].clone()
    }

    fn facts(page: &TextPage) -> (&str, Option<u64>, Option<u64>, Option<TruncatedBy>) {
        (&page.content, page.end_line, page.next_start_line, page.truncated_by)
    }

    #[test]
    fn a_cut_by_lines_says_where_to_go_on() {
        let cut = page("one\ntwo\nthree\n", 1, 2, 100);
        assert_eq!(facts(&cut), ("one\ntwo\n", Some(2), Some(3), Some(TruncatedBy::Lines)));
        let rest = page("one\ntwo\nthree\n", 3, 2, 100);
        assert_eq!(facts(&rest), ("three\n", Some(3), None, None));
    }

    #[test]
    fn the_exact_end_is_no_cut_and_a_last_line_without_its_end_counts() {
        assert_eq!(facts(&page("one\ntwo", 1, 2, 7)), ("one\ntwo", Some(2), None, None));
        assert_eq!(facts(&page("one\r\ntwo\r\n", 2, 1, 100)), ("two\r\n", Some(2), None, None));
    }

    #[test]
    fn past_the_end_and_in_an_empty_file_there_is_nothing() {
        assert_eq!(facts(&page("one\n", 9, 2, 100)), ("", None, None, None));
        assert_eq!(facts(&page("", 1, 2, 100)), ("", None, None, None));
    }

    #[test]
    fn a_cut_by_bytes_is_at_a_whole_character_and_goes_on_only_at_a_line_end() {
        let inside = page("abc😀def\nnext\n", 1, 500, 6);
        assert_eq!(facts(&inside), ("abc", Some(1), None, Some(TruncatedBy::Bytes)));
        let at_end = page("one\ntwo\n", 1, 500, 4);
        assert_eq!(facts(&at_end), ("one\n", Some(1), Some(2), Some(TruncatedBy::Bytes)));
    }
}
