//! The last bytes that a started process wrote, both streams in the order in which they arrived. Offsets count every
//! byte ever written to either.

use std::collections::VecDeque;

/// What a record costs beyond its bytes: a process that writes single bytes to both streams in turn is bounded too.
const RECORD_COST: u64 = 48;
/// The largest record: what is forgotten at a time. A shorter one is continued by what follows on the same stream.
const RECORD_BYTES: usize = 4096;

/// Some bytes of one stream.
#[derive(Debug)]
struct Record {
    channel: u8,
    offset: u64,
    bytes: Vec<u8>,
}

/// The last bytes of a log.
#[derive(Debug)]
pub struct LogRing {
    records: VecDeque<Record>,
    end: u64,
    cost: u64,
    capacity: u64,
}

/// A piece of a log, of one stream.
#[derive(Debug, PartialEq, Eq)]
pub struct LogPiece<'a> {
    /// Which stream.
    pub channel: u8,
    /// Where it begins.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl LogRing {
    /// An empty log that keeps about `capacity` bytes; it takes memory as it grows.
    pub fn new(capacity: u64) -> Self {
        Self { records: VecDeque::new(), end: 0, cost: 0, capacity }
    }

    /// Where the next byte will stand.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Adds what was written to a stream; forgets the oldest.
    pub fn append(&mut self, channel: u8, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.room(channel);
            let (piece, later) = rest.split_at(room.min(rest.len()));
            if let Some(last) = self.records.back_mut() {
                last.bytes.extend_from_slice(piece);
            }
            self.end += piece.len() as u64;
            self.cost += piece.len() as u64;
            rest = later;
        }
        self.forget_oldest();
    }

    /// How much the last record still takes of that stream; a new one is begun if it takes nothing.
    fn room(&mut self, channel: u8) -> usize {
        match self.records.back() {
            Some(last) if last.channel == channel && last.bytes.len() < RECORD_BYTES => {
                RECORD_BYTES - last.bytes.len()
            }
            _ => {
                self.cost += RECORD_COST;
                self.records.push_back(Record { channel, offset: self.end, bytes: Vec::new() });
                RECORD_BYTES
            }
        }
    }

    fn forget_oldest(&mut self) {
        while self.cost > self.capacity {
            let Some(first) = self.records.front_mut() else {
                return;
            };
            let excess = self.cost - self.capacity;
            let length = first.bytes.len() as u64;
            // A record is cut rather than dropped only when it is the last one: cutting moves its bytes.
            if self.records.len() == 1 && excess < length {
                if let Some(only) = self.records.front_mut() {
                    only.bytes.drain(..excess as usize);
                    only.offset += excess;
                }
                self.cost -= excess;
                return;
            }
            self.cost -= length + RECORD_COST;
            self.records.pop_front();
        }
    }

    /// The first piece at or after `offset`, of that stream if one is named, at most `limit` bytes.
    pub fn piece(&self, offset: u64, channel: Option<u8>, limit: usize) -> Option<LogPiece<'_>> {
        let first =
            self.records.partition_point(|record| record.offset + record.bytes.len() as u64 <= offset);
        let wanted = |record: &&Record| channel.is_none_or(|channel| record.channel == channel);
        let record = self.records.range(first..).find(wanted)?;
        let skipped = offset.saturating_sub(record.offset) as usize;
        let bytes = &record.bytes[skipped..];
        let bytes = &bytes[..bytes.len().min(limit)];
        Some(LogPiece { channel: record.channel, offset: record.offset + skipped as u64, bytes })
    }

    /// Where the last `bytes` bytes begin, of that stream if one is named.
    pub fn tail(&self, bytes: u64, channel: Option<u8>) -> u64 {
        let mut missing = bytes;
        let mut start = self.end;
        for record in self.records.iter().rev() {
            if missing == 0 {
                break;
            }
            if channel.is_none_or(|channel| record.channel == channel) {
                let length = record.bytes.len() as u64;
                start = record.offset + length.saturating_sub(missing);
                missing = missing.saturating_sub(length);
            }
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CHANNEL_STDERR as ERR, CHANNEL_STDOUT as OUT};

    fn ring() -> LogRing {
        let mut ring = LogRing::new(1000);
        ring.append(OUT, b"one ");
        ring.append(OUT, b"two ");
        ring.append(ERR, b"bad ");
        ring.append(OUT, b"three");
        ring
    }

    #[test]
    fn offsets_count_both_streams_and_pieces_stay_of_one() {
        let ring = ring();
        assert_eq!(ring.piece(0, None, 99), Some(LogPiece { channel: OUT, offset: 0, bytes: b"one two " }));
        assert_eq!(ring.piece(9, None, 2), Some(LogPiece { channel: ERR, offset: 9, bytes: b"ad" }));
        assert_eq!(
            ring.piece(8, Some(OUT), 99),
            Some(LogPiece { channel: OUT, offset: 12, bytes: b"three" })
        );
        assert_eq!(ring.piece(17, None, 99), None);
    }

    #[test]
    fn a_tail_counts_the_bytes_of_the_stream_that_was_asked_for() {
        let ring = ring();
        assert_eq!((ring.tail(7, None), ring.tail(7, Some(OUT)), ring.tail(3, Some(ERR))), (10, 6, 9));
        assert_eq!((ring.tail(0, None), ring.tail(9999, None)), (17, 0));
    }

    #[test]
    fn the_oldest_bytes_are_forgotten_and_the_offsets_say_so() {
        let mut ring = ring();
        ring.append(OUT, &[b'x'; 5000]);
        let piece = ring.piece(0, None, 1).unwrap();
        assert!(piece.offset > 17 && piece.bytes == b"x" && ring.end() == 5017);
        for index in 0..10_000_u32 {
            ring.append(if index % 2 == 0 { OUT } else { ERR }, b"y");
        }
        assert!(ring.records.len() < 30 && ring.cost <= 1000);
    }

    #[test]
    fn all_but_one_record_of_the_capacity_is_kept_however_much_comes_at_once() {
        let mut ring = LogRing::new(100_000);
        for size in [65_536, 1, 65_536, 70_000, 3] {
            ring.append(OUT, &vec![b'x'; size]);
        }
        let kept = ring.end() - ring.piece(0, None, 1).unwrap().offset;
        assert!((94_000..=100_000).contains(&kept), "{kept}");
    }
}
