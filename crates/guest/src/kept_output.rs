//! The output of a kept command that is still kept, each part under its position.
//!
//! A command on a terminal goes on writing when nobody reads, and its last bytes are kept. Any other
//! command waits for its reader: what none has read yet is never dropped.

use std::collections::VecDeque;

use crate::protocol::{CHANNEL_STDERR, CHANNEL_STDOUT, LOG_PREFIX_BYTES, MAX_PAYLOAD_BYTES, WINDOW};

/// The size of the largest piece.
pub const PIECE_BYTES: usize = MAX_PAYLOAD_BYTES - LOG_PREFIX_BYTES;
/// The output that may wait for a reader. A command that is further ahead waits.
const MAX_UNREAD: u64 = 1 << 20;
/// The output that is kept after it was sent to a reader. A client may have 1 MiB of it again, even
/// if all that was under way to it is lost.
const MAX_READ: u64 = (1 << 20) + 2 * WINDOW as u64;
/// The bytes of a terminal that are kept.
const SCROLLBACK_BYTES: u64 = 256 << 10;
/// The distance in bytes that a terminal may be ahead of its reader.
const TERMINAL_AHEAD: u64 = SCROLLBACK_BYTES / 2;
/// A terminal's bytes are kept in records of up to this size.
const RECORD_BYTES: usize = 4096;
/// The cost of a record beyond its bytes. It bounds a command that writes single bytes.
const RECORD_COST: u64 = 56;

/// Some bytes of one stream.
#[derive(Debug)]
struct OutputRecord {
    start: u64,
    channel: u8,
    bytes: Vec<u8>,
}

impl OutputRecord {
    fn cost(&self) -> u64 {
        self.bytes.len() as u64 + RECORD_COST
    }
}

/// The unit of positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PositionUnit {
    /// From 0 on.
    Byte,
    /// From 1 on.
    Piece,
}

/// The output that is kept.
#[derive(Debug)]
pub struct KeptOutput {
    unit: PositionUnit,
    records: VecDeque<OutputRecord>,
    next: u64,
    /// The position behind what was sent to a reader.
    read: u64,
    /// The cost of what was not, and of what was and is kept. For pieces alone.
    unread_cost: u64,
    read_cost: u64,
    written: [u64; 2],
}

/// A part of the output, of one stream.
#[derive(Debug, PartialEq, Eq)]
pub struct OutputSlice<'a> {
    /// The stream.
    pub channel: u8,
    /// The position.
    pub start: u64,
    /// The position of what follows it.
    pub end: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl KeptOutput {
    /// Nothing yet, of a command on a terminal or of another one.
    pub fn new(is_terminal: bool) -> Self {
        let (unit, next) = if is_terminal { (PositionUnit::Byte, 0) } else { (PositionUnit::Piece, 1) };
        let records = VecDeque::new();
        Self { unit, records, next, read: next, unread_cost: 0, read_cost: 0, written: [0; 2] }
    }

    /// The position of the first that is kept.
    pub fn first(&self) -> u64 {
        self.records.front().map_or(self.next, |record| record.start)
    }

    /// The position of what comes next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The number of bytes ever written to standard output, and to standard error.
    pub fn written(&self) -> [u64; 2] {
        self.written
    }

    /// Adds what was written to a stream.
    pub fn append(&mut self, channel: u8, bytes: &[u8]) {
        self.written[usize::from(channel == CHANNEL_STDERR)] += bytes.len() as u64;
        match self.unit {
            PositionUnit::Byte => self.append_bytes(bytes),
            PositionUnit::Piece => bytes.chunks(PIECE_BYTES).for_each(|piece| self.add(channel, piece)),
        }
    }

    fn add(&mut self, channel: u8, piece: &[u8]) {
        let record = OutputRecord { start: self.next, channel, bytes: piece.to_vec() };
        self.unread_cost += record.cost();
        self.records.push_back(record);
        self.next += 1;
    }

    fn append_bytes(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.records.back().is_none_or(|last| last.bytes.len() >= RECORD_BYTES) {
                let record = OutputRecord { start: self.next, channel: CHANNEL_STDOUT, bytes: Vec::new() };
                self.records.push_back(record);
            }
            let Some(last) = self.records.back_mut() else { return };
            let (taken, rest) = bytes.split_at(bytes.len().min(RECORD_BYTES - last.bytes.len()));
            last.bytes.extend_from_slice(taken);
            self.next += taken.len() as u64;
            bytes = rest;
        }
        let next = self.next;
        while self.records.get(1).is_some_and(|second| second.start + SCROLLBACK_BYTES <= next) {
            self.records.pop_front();
        }
    }

    /// Tells whether the command may write on. `is_read`: a reader is there.
    pub fn has_room(&self, is_read: bool) -> bool {
        match self.unit {
            PositionUnit::Byte => !is_read || self.next - self.read.max(self.first()) < TERMINAL_AHEAD,
            PositionUnit::Piece => self.unread_cost < MAX_UNREAD,
        }
    }

    /// A reader begins here.
    pub fn begin_reading(&mut self, position: u64) {
        if self.unit == PositionUnit::Byte {
            self.read = position;
        }
    }

    /// A reader was sent everything before this position: the oldest of it may go.
    pub fn note_read(&mut self, position: u64) {
        match self.unit {
            PositionUnit::Byte => self.read = position,
            PositionUnit::Piece => self.move_read(position),
        }
    }

    fn move_read(&mut self, position: u64) {
        while self.read < position {
            let cost = self.find(self.read).map_or(0, OutputRecord::cost);
            self.unread_cost -= cost;
            self.read_cost += cost;
            self.read += 1;
        }
        while self.read_cost > MAX_READ && self.first() < self.read {
            self.read_cost -= self.records.pop_front().map_or(0, |record| record.cost());
        }
    }

    /// The record that has this position.
    fn find(&self, position: u64) -> Option<&OutputRecord> {
        let behind = self.records.partition_point(|record| record.start <= position);
        self.records.get(behind.checked_sub(1)?)
    }

    /// The output at this position, or the first after it that is kept: at most `limit` bytes of a
    /// terminal's, a whole piece of any other. `None`: nothing yet.
    pub fn piece(&self, position: u64, limit: usize) -> Option<OutputSlice<'_>> {
        let position = position.max(self.first());
        let record = self.find(position).filter(|_| position < self.next)?;
        let (channel, bytes) = (record.channel, record.bytes.as_slice());
        Some(match self.unit {
            PositionUnit::Piece => OutputSlice { channel, start: position, end: position + 1, bytes },
            PositionUnit::Byte => {
                let bytes = &bytes[(position - record.start) as usize..];
                let bytes = &bytes[..bytes.len().min(limit)];
                OutputSlice { channel, start: position, end: position + bytes.len() as u64, bytes }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: u8 = CHANNEL_STDOUT;
    const ERR: u8 = CHANNEL_STDERR;

    #[test]
    fn pieces_are_numbered_from_1_and_stay_as_they_were_written() {
        let mut output = KeptOutput::new(false);
        output.append(OUT, b"one");
        output.append(OUT, b"two");
        output.append(ERR, b"bad");
        let piece = |start, channel, bytes| Some(OutputSlice { channel, start, end: start + 1, bytes });
        assert_eq!(output.piece(0, 1), piece(1, OUT, &b"one"[..]));
        assert_eq!(output.piece(2, 1), piece(2, OUT, &b"two"[..]));
        assert_eq!(output.piece(3, 1), piece(3, ERR, &b"bad"[..]));
        assert_eq!((output.piece(4, 1), output.next(), output.written()), (None, 4, [6, 3]));
    }

    #[test]
    fn what_nobody_has_read_is_kept_and_makes_the_command_wait() {
        let mut output = KeptOutput::new(false);
        while output.has_room(false) {
            output.append(OUT, &[b'x'; 1000]);
        }
        let pieces = output.next();
        assert!((900..1100).contains(&pieces) && output.first() == 1, "{pieces}");
        output.note_read(pieces);
        assert!(output.has_room(true) && output.first() == 1);
        while output.has_room(true) {
            output.append(ERR, &[b'y'; 1000]);
        }
        output.note_read(output.next());
        // The last 1 MiB is there for a reader that comes back.
        let kept = (output.next() - output.first()) * 1000;
        assert!(output.first() > 1 && (1 << 20..2 << 20).contains(&kept), "{kept}");
    }

    #[test]
    fn single_bytes_are_bounded_too() {
        let mut output = KeptOutput::new(false);
        while output.has_room(false) {
            output.append(OUT, b"x");
        }
        assert!(output.next() < 20_000);
    }

    #[test]
    fn the_last_bytes_of_a_terminal_are_kept_and_read_from_anywhere_in_them() {
        let mut output = KeptOutput::new(true);
        output.append(OUT, b"abc");
        output.append(OUT, b"de");
        let piece = |start: u64, bytes: &'static [u8]| {
            Some(OutputSlice { channel: OUT, start, end: start + bytes.len() as u64, bytes })
        };
        assert_eq!(output.piece(0, 99), piece(0, b"abcde"));
        assert_eq!((output.piece(2, 2), output.piece(5, 9)), (piece(2, b"cd"), None));
        output.append(OUT, &vec![b'x'; 300_000]);
        let kept = output.next() - output.first();
        assert!((SCROLLBACK_BYTES..SCROLLBACK_BYTES + 2 * RECORD_BYTES as u64).contains(&kept), "{kept}");
        // What is not kept any more is left out.
        assert_eq!(output.piece(0, 1), piece(output.first(), b"x"));
        assert_eq!(output.piece(output.next() - 1, 9), piece(300_004, b"x"));
    }

    #[test]
    fn a_terminal_waits_for_who_is_connected_and_for_nobody_else() {
        let mut output = KeptOutput::new(true);
        output.begin_reading(0);
        output.append(OUT, &vec![0; SCROLLBACK_BYTES as usize / 2]);
        assert!(!output.has_room(true) && output.has_room(false));
        output.note_read(1);
        assert!(output.has_room(true));
        output.append(OUT, &vec![0; SCROLLBACK_BYTES as usize]);
        assert!(!output.has_room(true) && output.has_room(false));
    }
}
