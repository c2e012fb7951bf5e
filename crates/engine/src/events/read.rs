//! Reading: from a number on, across segments, as far as the log goes now.

use std::io;
use std::path::PathBuf;

use eyot::{Error, ErrorKind, Result};

use super::database_log::DatabaseCursor;
use super::event::Event;
use super::line;
use super::segment::{self, SegmentLines};

/// A reader's place in a log.
pub(super) enum LogCursor {
    Folder(Cursor),
    Database(DatabaseCursor),
}

impl LogCursor {
    /// At most `limit` of the events that follow; none if there are no more yet.
    pub(super) fn next_batch(&mut self, limit: usize) -> Result<Vec<Event>> {
        match self {
            Self::Folder(cursor) => cursor.next_batch(limit),
            Self::Database(cursor) => cursor.next_batch(limit),
        }
    }
}

/// A reader's place in the log of a folder.
pub(super) struct Cursor {
    folder: PathBuf,
    /// The next event's number, if it is still there.
    next: u64,
    segment: Option<OpenSegment>,
    /// The segment that was read to its end last.
    done: Option<u64>,
}

struct OpenSegment {
    first: u64,
    lines: SegmentLines,
    /// A later segment was seen, so nothing is added to this one any more.
    is_final: bool,
}

impl Cursor {
    /// At event `from_seq`.
    pub(super) fn new(folder: PathBuf, from_seq: u64) -> Self {
        Self { folder, next: from_seq, segment: None, done: None }
    }

    /// At most `limit` of the events that follow; none if there are no more yet.
    pub(super) fn next_batch(&mut self, limit: usize) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        while events.len() < limit {
            match self.next() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return Err(self.unreadable(error));
                }
                Err(error) => return Err(Error::host("read the event log", error)),
            }
        }
        Ok(events)
    }

    fn next(&mut self) -> io::Result<Option<Event>> {
        loop {
            if self.segment.is_none() && !self.open_next_segment()? {
                return Ok(None);
            }
            let Some(open) = &mut self.segment else { continue };
            match open.lines.next()? {
                // Before the place that was asked for, or a line that stands twice.
                Some(line) if line::has_seq_below(line, self.next) => {}
                Some(line) => {
                    let event = line::decode(line)
                        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a line is no event"))?;
                    self.next = event.seq + 1;
                    return Ok(Some(event));
                }
                None => {
                    if !self.has_more()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Opens the segment that holds the next event, or else the first that may.
    fn open_next_segment(&mut self) -> io::Result<bool> {
        loop {
            let mut segments = segment::list(&self.folder)?;
            segments.retain(|first| self.done.is_none_or(|done| *first > done));
            let holding = segments.iter().rev().find(|first| **first <= self.next);
            let Some(first) = holding.or(segments.first()).copied() else {
                return Ok(false);
            };
            // It may have gone since it was listed; then others are there.
            if let Some(file) = segment::open(&self.folder, first)? {
                self.segment =
                    Some(OpenSegment { first, lines: SegmentLines::new(file, 0), is_final: false });
                return Ok(true);
            }
        }
    }

    /// At the end of a segment: whether there is more to read, here or in a later one.
    fn has_more(&mut self) -> io::Result<bool> {
        let Some(open) = &mut self.segment else { return Ok(true) };
        if open.is_final {
            // The last lines were read after the next segment was seen.
            self.done = Some(open.first);
            self.segment = None;
            return Ok(true);
        }
        let first = open.first;
        open.is_final = segment::list(&self.folder)?.iter().any(|other| *other > first);
        Ok(open.is_final)
    }

    fn unreadable(&self, error: io::Error) -> Error {
        let message = format!("read the event log: event {} can't be read", self.next);
        Error::new(ErrorKind::Conflict, message)
            .with_hint("`eyot events --verify` says what is wrong with the log")
            .with_source(error)
    }
}
