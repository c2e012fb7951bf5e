//! Reading of records from the inputs of `awk`.

use std::io::Read;
use std::rc::Rc;

use super::pattern::AwkPattern;
use super::text::{return_bytes, take_bytes};
use crate::memory::content::ContentReader;
use crate::memory::programs::run::Ending;
use crate::memory::programs::worker::Worker;

const PIECE_BYTES: usize = 64 << 10;

/// The rule for the end of a record.
#[derive(Clone)]
pub(super) enum RecordRule {
    Byte(u8),
    /// Empty lines end a record.
    Paragraphs,
    Pattern(Rc<AwkPattern>),
}

/// The source of an input.
pub(super) enum InputSource {
    Standard,
    File(ContentReader),
    /// The input has been read completely.
    Over,
}

/// An input that is read record by record.
pub(super) struct RecordReader {
    source: InputSource,
    buffer: Vec<u8>,
    start: usize,
    /// The status of the command that the input comes from.
    pub status: i32,
    /// The bytes that are charged to the memory of values.
    counted: usize,
}

impl Drop for RecordReader {
    fn drop(&mut self) {
        return_bytes(self.counted);
    }
}

impl RecordReader {
    pub(super) fn new(source: InputSource) -> Self {
        Self { source, buffer: Vec::new(), start: 0, status: 0, counted: 0 }
    }

    /// Creates a reader for an input that is already in memory.
    pub(super) fn whole(buffer: Vec<u8>, status: i32) -> Self {
        let counted = buffer.len();
        take_bytes(counted);
        Self { source: InputSource::Over, buffer, start: 0, status, counted }
    }

    /// Reads more. Returns `false` at the end.
    fn fill(&mut self, worker: &Worker) -> Result<bool, Ending> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let before = self.buffer.len();
        match &mut self.source {
            InputSource::Standard => {
                let more = worker.read_input()?.unwrap_or_default();
                self.buffer.extend_from_slice(&more);
            }
            InputSource::File(reader) => {
                worker.breathe()?;
                let piece = u64::try_from(before.max(PIECE_BYTES)).unwrap_or(u64::MAX);
                // A file in memory is always read.
                reader.take(piece).read_to_end(&mut self.buffer).unwrap_or_default();
            }
            InputSource::Over => {}
        }
        if self.buffer.len() == before {
            self.source = InputSource::Over;
        }
        Ok(self.buffer.len() > before)
    }

    /// Reads the next record, or returns `None` at the end.
    pub(super) fn read(&mut self, worker: &Worker, rule: &RecordRule) -> Result<Option<Vec<u8>>, Ending> {
        if matches!(rule, RecordRule::Paragraphs) {
            self.skip_newlines(worker)?;
        }
        let mut seen = 0;
        loop {
            let rest = &self.buffer[self.start..];
            if let Some((end, next)) = record_end(rest, rule, seen, matches!(self.source, InputSource::Over))
            {
                let record = rest[..end].to_vec();
                self.start += next;
                return Ok(Some(record));
            }
            seen = rest.len();
            if !self.fill(worker)? {
                // At the end of the input, the rest may contain an end that was not final before.
                let rest = &self.buffer[self.start..];
                let (end, next) = match record_end(rest, rule, 0, true) {
                    Some(found) => found,
                    None if rest.is_empty() => return Ok(None),
                    None if matches!(rule, RecordRule::Paragraphs) && rest.ends_with(b"\n") => {
                        (rest.len() - 1, rest.len())
                    }
                    None => (rest.len(), rest.len()),
                };
                let record = rest[..end].to_vec();
                self.start += next;
                return Ok(Some(record));
            }
        }
    }

    fn skip_newlines(&mut self, worker: &Worker) -> Result<(), Ending> {
        loop {
            while self.buffer.get(self.start) == Some(&b'\n') {
                self.start += 1;
            }
            if self.start < self.buffer.len() || !self.fill(worker)? {
                return Ok(());
            }
        }
    }
}

/// Finds the end of a record and the beginning of the next. The first `seen` bytes contain no end.
fn record_end(rest: &[u8], rule: &RecordRule, seen: usize, is_whole: bool) -> Option<(usize, usize)> {
    match rule {
        RecordRule::Byte(byte) => {
            let at = seen + memchr::memchr(*byte, &rest[seen..])?;
            Some((at, at + 1))
        }
        RecordRule::Paragraphs => {
            let from = seen.saturating_sub(1);
            let at = from + memchr::memmem::find(&rest[from..], b"\n\n")?;
            let newlines = rest[at..].iter().take_while(|byte| **byte == b'\n').count();
            (is_whole || at + newlines < rest.len()).then_some((at, at + newlines))
        }
        RecordRule::Pattern(pattern) => {
            let mut from = 0;
            loop {
                let found = pattern.find_at(rest, from)?;
                // A match at the end of the buffer may continue in the next piece.
                if found.end == rest.len() && !is_whole {
                    return None;
                }
                if !found.is_empty() {
                    return Some((found.start, found.end));
                }
                from = found.end + 1;
                if from > rest.len() {
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_ends_where_its_rule_says() {
        let pattern = RecordRule::Pattern(Rc::new(AwkPattern::new(b"[0-9]+").unwrap()));
        assert_eq!(record_end(b"a\nb", &RecordRule::Byte(b'\n'), 0, false), Some((1, 2)));
        assert_eq!(record_end(b"a\n\n\nb", &RecordRule::Paragraphs, 0, false), Some((1, 4)));
        assert_eq!(record_end(b"a\n\n", &RecordRule::Paragraphs, 0, false), None);
        assert_eq!(record_end(b"a12", &pattern, 0, false), None);
        assert_eq!(record_end(b"a12", &pattern, 0, true), Some((1, 3)));
    }
}
