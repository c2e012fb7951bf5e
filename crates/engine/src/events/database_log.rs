//! The log of a shared store, in its database.

use std::sync::Arc;

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result};

use super::event::{Event, EventHash, NewEvent};
use super::line;
use super::verify::{BrokenChain, VerifiedLog};
use crate::changes::ChangeWatch;
use crate::store::{LogEnds, MOST_LINES, Store};

/// The number of lines that are checked at once.
const BATCH: usize = 1_000;

/// The log of a store.
pub(super) struct DatabaseLog {
    store: Arc<Store>,
}

/// A place in the log of a store.
pub(super) struct DatabaseCursor {
    store: Arc<Store>,
    next: u64,
}

impl DatabaseLog {
    /// Takes a shared store.
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }

    /// Adds an event.
    pub(super) fn append(&self, event: NewEvent) -> Result<Event> {
        let middle =
            line::middle(now_ms(), event).map_err(|error| Error::host("append to the event log", error))?;
        let (_, line) = self.store.append_line(&middle)?;
        decode(&line)
    }

    /// Returns the number of the last event.
    pub(super) fn last_seq(&self) -> Result<u64> {
        Ok(self.store.log_ends()?.last)
    }

    /// Returns a reader at this event.
    pub(super) fn cursor(&self, from_seq: u64) -> DatabaseCursor {
        DatabaseCursor { store: Arc::clone(&self.store), next: from_seq }
    }

    /// Returns what followers wait for.
    pub(super) fn changes(&self) -> Result<Arc<ChangeWatch>> {
        self.store.line_changes().map(Arc::new)
    }

    /// Checks every line, and both ends.
    pub(super) fn verify(&self) -> Result<VerifiedLog> {
        loop {
            let ends = self.store.log_ends()?;
            let checked = self.check(&ends);
            // The oldest lines may have gone while they were read: then the log begins elsewhere now.
            if checked.is_ok() || self.store.log_ends()?.first == ends.first {
                return checked;
            }
        }
    }

    fn check(&self, ends: &LogEnds) -> Result<VerifiedLog> {
        if ends.first > 1 && ends.last + 1 - ends.first < MOST_LINES {
            return Err(broken(1, &format!("and all to event {} are missing", ends.first - 1)));
        }
        let (mut next, mut previous) = (ends.first, (ends.first == 1).then_some(EventHash::ZERO));
        while next <= ends.last {
            let lines = self.store.lines(next, BATCH)?;
            if lines.is_empty() {
                break;
            }
            for (seq, text) in lines {
                let event = checked(seq, &text, next, previous)?;
                if seq == ends.last && event.hash.to_string() != ends.hash {
                    return Err(broken(seq, "is another one than the end of the log says"));
                }
                (next, previous) = (seq + 1, Some(event.hash));
            }
        }
        if next <= ends.last {
            return Err(broken(next, &format!("and all to event {} are missing", ends.last)));
        }
        Ok(VerifiedLog { events: next - ends.first, first_seq: ends.first, last_seq: next - 1 })
    }
}

impl DatabaseCursor {
    /// At most `limit` of the events that follow; none if there are no more yet.
    pub(super) fn next_batch(&mut self, limit: usize) -> Result<Vec<Event>> {
        let lines = self.store.lines(self.next, limit)?;
        let events: Vec<Event> = lines.iter().map(|(_, line)| decode(line)).collect::<Result<_>>()?;
        if let Some(last) = events.last() {
            self.next = last.seq + 1;
        }
        Ok(events)
    }
}

fn decode(line: &str) -> Result<Event> {
    line::decode(line.as_bytes()).map_err(|_| {
        Error::new(ErrorKind::Conflict, "read the event log: a line is no event")
            .with_hint("`eyot events --verify` says what is wrong with the log")
    })
}

/// Checks one line: its hash, its number, the hash of the line before.
fn checked(seq: u64, text: &str, expected: u64, previous: Option<EventHash>) -> Result<Event> {
    let event = line::check(text.as_bytes()).map_err(|_| broken(seq, "was changed"))?;
    match () {
        () if seq != expected => Err(broken(expected, &format!("is missing; the next is {seq}"))),
        () if event.seq != seq => Err(broken(seq, "has another number in its line")),
        () if previous.is_some_and(|hash| hash != event.previous) => {
            Err(broken(seq, "does not follow the event before it"))
        }
        () => Ok(event),
    }
}

fn broken(seq: u64, what: &str) -> Error {
    let broken = BrokenChain { seq, what: what.to_owned(), place: None };
    Error::new(ErrorKind::Conflict, format!("verify the event log: {broken}")).with_source(broken)
}
