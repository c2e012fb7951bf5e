//! Writing: under the lock, from where the head says that the log ends, after putting right what a killed process left.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use eyot::internal::now_ms;

use super::event::{Event, EventHash, EventKind, NewEvent};
use super::head::{Head, lock_to_append, try_lock};
use super::segment::{self, SegmentLines};
use super::{EventLogOptions, line};

/// The beginning of a note that the head was lost. The number of the last event that was found
/// follows.
pub(super) const HEAD_LOST: &str = "the log's head was lost, and made anew after event";

/// Appends to a log. It keeps files open between calls and trusts none of them to be what it was.
pub(super) struct Writer {
    folder: PathBuf,
    options: EventLogOptions,
    head: Option<File>,
    /// The first event of a segment, and its file.
    segment: Option<(u64, File)>,
}

impl Writer {
    pub(super) fn new(folder: PathBuf, options: EventLogOptions) -> Self {
        Self { folder, options, head: None, segment: None }
    }

    pub(super) fn append(&mut self, event: NewEvent) -> io::Result<Event> {
        let file = lock_to_append(&self.folder, self.head.take())?;
        let appended = self.append_locked(&file, event);
        // Should this fail, closing the file gives the lock back.
        if file.unlock().is_ok() {
            self.head = Some(file);
        }
        appended
    }

    /// [`Writer::append`] if no other process writes just now; else the event stays where it is. So it does the first time.
    pub(super) fn append_at_once(&mut self, event: &mut Option<NewEvent>) -> Option<io::Result<Event>> {
        let file = self.head.take()?;
        match try_lock(&self.folder, &file) {
            Ok(true) => {}
            Ok(false) => {
                self.head = Some(file);
                return None;
            }
            Err(error) => return Some(Err(error)),
        }
        let appended = event.take().map(|event| self.append_locked(&file, event));
        if file.unlock().is_ok() {
            self.head = Some(file);
        }
        appended
    }

    fn append_locked(&mut self, file: &File, event: NewEvent) -> io::Result<Event> {
        let mut notes = Vec::new();
        let mut head = match Head::read(file)? {
            Some(head) => head,
            None => self.rebuild(file, &mut notes)?,
        };
        self.settle(&mut head, &mut notes)?;
        for note in notes {
            self.write(file, &mut head, note)?;
        }
        self.write(file, &mut head, event)
    }

    /// The head of a log that has lost it, from its newest segment. A number is left out then, for good: what had it, and
    /// whatever followed, may have been removed, and [`super::EventLog::verify`] says so from now on.
    fn rebuild(&mut self, file: &File, notes: &mut Vec<NewEvent>) -> io::Result<Head> {
        let segments = segment::list(&self.folder)?;
        let (Some(&first_seq), Some(&newest)) = (segments.first(), segments.last()) else {
            let head = Head::empty();
            // Before there is a segment: whoever is killed behind the first line has left a head.
            head.write(file)?;
            return Ok(head);
        };
        let (mut last, mut hash) = (newest.saturating_sub(1), EventHash::ZERO);
        if let Some(file) = segment::open(&self.folder, newest)? {
            let mut lines = SegmentLines::new(file, 0);
            while let Some(line) = lines.next()? {
                if let Ok(event) = line::check(line) {
                    (last, hash) = (event.seq, event.hash);
                }
            }
        }
        notes.push(note(
            format!("{HEAD_LOST} {last}"),
            "the file `head` was missing or unreadable, so events at the end may be missing too",
        ));
        let seq = last + 1;
        Ok(Head { first_seq, seq, hash, segment: seq + 1, bytes: 0 })
    }

    /// Compares the newest segment with what the head knows of it, and makes them one.
    fn settle(&mut self, head: &mut Head, notes: &mut Vec<NewEvent>) -> io::Result<()> {
        loop {
            let size = match self.newest(head.segment)? {
                Some(file) => file.metadata()?.len(),
                None => 0,
            };
            match size.cmp(&head.bytes) {
                Ordering::Equal => return Ok(()),
                Ordering::Greater => self.adopt_tail(head, notes)?,
                Ordering::Less => {
                    notes.push(note(
                        format!("a new segment was begun after event {}", head.seq),
                        "events at the end of the last one are missing",
                    ));
                    (head.segment, head.bytes) = (head.seq + 1, 0);
                }
            }
        }
    }

    /// The newest segment has more than the head knows: whole lines of a process that was killed before it could say so,
    /// and perhaps a torn one. A whole line that does not continue the log stays, for [`super::EventLog::verify`] to find.
    fn adopt_tail(&mut self, head: &mut Head, notes: &mut Vec<NewEvent>) -> io::Result<()> {
        let Some(file) = self.newest(head.segment)? else {
            return Ok(());
        };
        let mut lines = SegmentLines::new(file.try_clone()?, head.bytes);
        loop {
            match lines.next() {
                Ok(Some(line)) => adopt_line(head, line),
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    let what = format!("a new segment was begun after event {}", head.seq);
                    notes.push(note(what, format!("in the last one {error}, which is not the log's own")));
                    (head.segment, head.bytes) = (head.seq + 1, 0);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        head.bytes = lines.offset();
        let torn = lines.rest()?;
        if torn > 0 {
            file.set_len(head.bytes)?;
            let what = format!("{torn} bytes of a torn line after event {} were cut off", head.seq);
            notes.push(note(what, "a process ended while it wrote; nobody was told that this event is kept"));
        }
        self.skip_to_next_segment(head)
    }

    /// After a power failure the head may be older than a whole segment.
    fn skip_to_next_segment(&self, head: &mut Head) -> io::Result<()> {
        if head.seq >= head.segment && segment::open(&self.folder, head.seq + 1)?.is_some() {
            (head.segment, head.bytes) = (head.seq + 1, 0);
        }
        Ok(())
    }

    fn write(&mut self, file: &File, head: &mut Head, event: NewEvent) -> io::Result<Event> {
        let (event, line) = line::encode(head.seq + 1, now_ms(), event, head.hash)?;
        if head.bytes > 0 && head.bytes + line.len() as u64 > self.options.max_segment_bytes {
            self.rotate(file, head)?;
        }
        let segment = self.newest_to_append(head.segment)?;
        if let Err(error) = (&*segment).write_all(&line) {
            // The part of the line that was written is no event. Should this fail too, the next
            // append sees a torn line.
            if let Err(error) = segment.set_len(head.bytes) {
                tracing::warn!(%error, "the event log keeps a part of a line until the next append");
            }
            return Err(error);
        }
        (head.seq, head.hash) = (event.seq, event.hash);
        head.bytes += line.len() as u64;
        head.write(file)?;
        Ok(event)
    }

    /// Begins a segment. The head says so before there is the file, and which segments are no
    /// longer part of the log before they go: a process that is killed in between leaves nothing
    /// that looks like a fault.
    fn rotate(&mut self, file: &File, head: &mut Head) -> io::Result<()> {
        (head.segment, head.bytes) = (head.seq + 1, 0);
        let before: Vec<u64> =
            segment::list(&self.folder)?.into_iter().filter(|first| *first < head.segment).collect();
        let expired = (before.len() + 1).saturating_sub(self.options.max_segments);
        if expired > 0 {
            head.first_seq = before.get(expired).copied().unwrap_or(head.segment);
        }
        head.write(file)?;
        for first in &before[..expired] {
            // It is no part of the log any more; the next rotation tries again.
            if let Err(error) = fs::remove_file(segment::path(&self.folder, *first)) {
                tracing::warn!(%error, "an old segment of the event log can't be removed");
            }
        }
        Ok(())
    }

    /// The file of the segment that begins with `first`, if there is one.
    fn newest(&mut self, first: u64) -> io::Result<Option<&File>> {
        if !self.has_open(first)? {
            self.segment = None;
            if segment::open(&self.folder, first)?.is_some() {
                self.segment = Some((first, segment::open_to_append(&self.folder, first)?));
            }
        }
        Ok(self.segment.as_ref().map(|(_, file)| file))
    }

    /// The same, made if there is none.
    fn newest_to_append(&mut self, first: u64) -> io::Result<&File> {
        let segment = match self.segment.take() {
            Some(segment) if segment.0 == first => segment,
            _ => (first, segment::open_to_append(&self.folder, first)?),
        };
        Ok(&self.segment.insert(segment).1)
    }

    fn has_open(&self, first: u64) -> io::Result<bool> {
        match &self.segment {
            Some((open, file)) if *open == first => segment::is_at(file, &segment::path(&self.folder, first)),
            _ => Ok(false),
        }
    }
}

fn adopt_line(head: &mut Head, line: &[u8]) {
    match line::check(line) {
        Ok(event) if event.seq == head.seq + 1 && event.previous == head.hash => {
            (head.seq, head.hash) = (event.seq, event.hash);
        }
        _ => tracing::warn!(after = head.seq, "the event log holds a line that is not its own"),
    }
}

fn note(what: String, reason: impl Into<String>) -> NewEvent {
    NewEvent::new(EventKind::Reconciled { what }, reason)
}
