//! Checks that the chain holds: every line's own hash, its number, the hash of the one before, and
//! both ends.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::Path;

use eyot::{Error, ErrorKind, Result};

use super::append::HEAD_LOST;
use super::event::{Event, EventHash, EventKind};
use super::head::{self, Head};
use super::line::{self, LineError};
use super::segment::{self, SegmentLines};
use crate::store::Anchor;

/// A log whose chain holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedLog {
    /// The number of events that are kept.
    pub events: u64,
    /// The first that is kept; one more than `last_seq` if none is.
    pub first_seq: u64,
    /// The last; 0 if there never was one.
    pub last_seq: u64,
}

/// A place where a log's chain does not hold, and why. It travels as the source of an [`Error`] of
/// kind `conflict`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenChain {
    /// The first event that is not as it should be.
    pub seq: u64,
    /// The fault, as the end of a sentence that begins with the event.
    pub what: String,
    /// The file's name and the line (from 1) where it shows; none where something is missing at the end.
    pub place: Option<(String, u64)>,
}

impl fmt::Display for BrokenChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {} {}", self.seq, self.what)?;
        match &self.place {
            Some((file, line)) => write!(f, " ({file}, line {line})"),
            None => Ok(()),
        }
    }
}

impl StdError for BrokenChain {}

/// The reason why a check ended early.
enum VerifyStop {
    Broken(BrokenChain),
    Host(io::Error),
}

impl From<io::Error> for VerifyStop {
    fn from(error: io::Error) -> Self {
        Self::Host(error)
    }
}

pub(super) fn verify(folder: &Path, anchor: Option<&Anchor>) -> Result<VerifiedLog> {
    let host = |error| Error::host("verify the event log", error);
    let mut head = head::read_shared(folder).map_err(host)?;
    loop {
        let ended = match check(folder, head.as_ref(), anchor) {
            Ok(verified) => return Ok(verified),
            Err(ended) => ended,
        };
        // Segments may have gone while they were read: then the log begins elsewhere now.
        let now = head::read_shared(folder).map_err(host)?;
        if now.as_ref().map(|head| head.first_seq) != head.as_ref().map(|head| head.first_seq) {
            head = now;
            continue;
        }
        return Err(match ended {
            VerifyStop::Host(error) => host(error),
            VerifyStop::Broken(broken) => {
                Error::new(ErrorKind::Conflict, format!("verify the event log: {broken}")).with_source(broken)
            }
        });
    }
}

fn check(folder: &Path, head: Option<&Head>, anchor: Option<&Anchor>) -> Result<VerifiedLog, VerifyStop> {
    let mut segments = segment::list(folder)?;
    let Some(head) = head else {
        let Some(first) = segments.first() else {
            check_anchor(0, anchor)?;
            return Ok(VerifiedLog { events: 0, first_seq: 1, last_seq: 0 });
        };
        let what =
            "and what follows can't be judged: the file `head`, which says where the log ends, is missing";
        return Err(VerifyStop::Broken(BrokenChain { seq: *first, what: what.to_owned(), place: None }));
    };
    segments.retain(|first| *first >= head.first_seq);
    let mut chain = ChainCheck { head, anchor, next: head.first_seq, previous: EventHash::ZERO };
    for (index, first) in segments.iter().enumerate() {
        chain.check_segment(folder, *first, index + 1 == segments.len())?;
    }
    chain.check_end()?;
    check_anchor(chain.next - 1, anchor)?;
    Ok(VerifiedLog {
        events: chain.next - head.first_seq,
        first_seq: head.first_seq,
        last_seq: chain.next - 1,
    })
}

/// Compares the end of a log with what the store knows of it. The log may have come further, as after the end of a process.
fn check_anchor(last: u64, anchor: Option<&Anchor>) -> Result<(), VerifyStop> {
    let Some(anchor) = anchor else { return Ok(()) };
    let broken = |seq, what: String| Err(VerifyStop::Broken(BrokenChain { seq, what, place: None }));
    if last < anchor.seq {
        let what = format!(
            "and all to event {} are missing: `eyot.db` knows of them, so the log was removed, or an older copy was put in its place",
            anchor.seq
        );
        return broken(last + 1, what);
    }
    if anchor.is_contradicted {
        let what = "was missing when the log went on, or another one stood in its place: the log was removed, or an older \
                    copy was put in its place, and then written to";
        return broken(anchor.seq, what.to_owned());
    }
    Ok(())
}

/// How far the check has come.
struct ChainCheck<'a> {
    head: &'a Head,
    anchor: Option<&'a Anchor>,
    /// The number of the event that is due.
    next: u64,
    /// The hash of the one before it.
    previous: EventHash,
}

impl ChainCheck<'_> {
    fn check_segment(&mut self, folder: &Path, first: u64, is_last: bool) -> Result<(), VerifyStop> {
        if first != self.next {
            return Err(self.broken(self.gap(folder, first)?, None));
        }
        let mut place = (file_name(folder, first), 1);
        let Some(file) = segment::open(folder, first)? else {
            return Err(self.broken("is missing with its whole segment".to_owned(), Some(place)));
        };
        let mut lines = SegmentLines::new(file, 0);
        while let Some(line) = next_line(&mut lines)? {
            let checked = line.and_then(|line| self.check_line(line));
            checked.map_err(|what| self.broken(what, Some(place.clone())))?;
            place.1 += 1;
        }
        // Beyond what the head knows a torn line is what a killed process leaves; before it the line was whole once.
        let may_be_torn = is_last && (first > self.head.segment || lines.offset() >= self.head.bytes);
        if lines.rest()? > 0 && !may_be_torn {
            return Err(self.broken("is cut short".to_owned(), Some(place)));
        }
        Ok(())
    }

    /// Describes the fault where the next segment begins with another event than the one that is
    /// due.
    fn gap(&self, folder: &Path, first: u64) -> io::Result<String> {
        let begins = segment::open(folder, first)?
            .map(|file| SegmentLines::new(file, 0).next().map(is_lost_head_note));
        match begins.transpose()? {
            Some(true) if first == self.next + 1 => {
                Ok("and any that followed it may be missing: the file `head`, which said where the log ended, was lost"
                    .to_owned())
            }
            _ => Ok(describe_gap(self.next, first)),
        }
    }

    /// Checks the line that is due, or says what is wrong with the event that should be it.
    fn check_line(&mut self, line: &[u8]) -> Result<(), String> {
        let event = line::check(line).map_err(|wrong| match wrong {
            LineError::NoEvent => "is missing: what stands in its place is no event".to_owned(),
            LineError::Changed => "was changed: its line does not have the hash that it names".to_owned(),
        })?;
        self.check_link(&event)?;
        (self.next, self.previous) = (event.seq + 1, event.hash);
        Ok(())
    }

    fn check_link(&self, event: &Event) -> Result<(), String> {
        let due = self.next;
        if event.seq > due {
            return Err(describe_gap(due, event.seq));
        }
        if event.seq < due {
            return Err(format!("is not there: event {} stands in its place, moved or inserted", event.seq));
        }
        // The line before the first kept one is gone with its segment.
        let is_anchor = due == self.head.first_seq && due > 1;
        if event.previous != self.previous && !is_anchor {
            return Err("does not follow the event before it: one of the two was replaced".to_owned());
        }
        if due == self.head.seq && event.hash != self.head.hash {
            return Err("is not the one that was appended: it was replaced".to_owned());
        }
        if self.anchor.is_some_and(|anchor| due == anchor.seq && event.hash.to_string() != anchor.hash) {
            return Err("is not the one that `eyot.db` knows: the log was replaced".to_owned());
        }
        Ok(())
    }

    fn check_end(&self) -> Result<(), VerifyStop> {
        if self.next > self.head.seq {
            Ok(())
        } else {
            let last = self.head.seq;
            let what = if self.next == last {
                "is missing at the end of the log".to_owned()
            } else {
                format!("and all to event {last} are missing at the end of the log")
            };
            Err(self.broken(what, None))
        }
    }

    fn broken(&self, what: String, place: Option<(String, u64)>) -> VerifyStop {
        VerifyStop::Broken(BrokenChain { seq: self.next, what, place })
    }
}

/// The next line; the inner error is what is wrong with the event that should be it.
fn next_line(lines: &mut SegmentLines) -> io::Result<Option<Result<&[u8], String>>> {
    match lines.next() {
        Ok(line) => Ok(line.map(Ok)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Ok(Some(Err(format!("is missing: {error}"))))
        }
        Err(error) => Err(error),
    }
}

/// Returns whether a line is the note that the head was lost before it.
fn is_lost_head_note(line: Option<&[u8]>) -> bool {
    let kind = line.and_then(|line| line::check(line).ok()).map(|event| event.kind);
    matches!(kind, Some(EventKind::Reconciled { what }) if what.starts_with(HEAD_LOST))
}

fn describe_gap(due: u64, found: u64) -> String {
    match found.saturating_sub(due) {
        0 => format!("is not there: a segment that begins with event {found} stands in its place"),
        1 => format!("is missing: event {found} stands in its place"),
        _ => format!("and all before event {found} are missing (or were moved)"),
    }
}

fn file_name(folder: &Path, first: u64) -> String {
    segment::path(folder, first).file_name().unwrap_or_default().to_string_lossy().into_owned()
}
