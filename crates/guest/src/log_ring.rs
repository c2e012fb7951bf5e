//! The last bytes that a started process wrote, by stream. Offsets count every byte ever written to
//! either, in the order in which they arrived.
//!
//! The streams share the room: one alone has all of it, and a noisy one pushes a quiet one out of
//! none of its half.

use std::collections::VecDeque;

use crate::protocol::{CHANNEL_STDERR, CHANNEL_STDOUT, LogRange};

/// The cost of a record beyond its bytes. It bounds a process that writes single bytes to both
/// streams in turn.
const RECORD_COST: u64 = 56;
/// The size of the largest record. Whole records are forgotten at a time. A shorter record is
/// continued by the next bytes of the same stream.
const RECORD_BYTES: usize = 4096;

/// The positions from which to continue in each stream, standard output first.
pub type Positions = [u64; 2];

/// A selection of streams, standard output first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSelection([bool; 2]);

impl StreamSelection {
    /// The stream of a channel, or both.
    pub fn new(channel: Option<u8>) -> Self {
        Self([CHANNEL_STDOUT, CHANNEL_STDERR].map(|of| channel.is_none_or(|channel| channel == of)))
    }
}

/// Some bytes of one stream, which arrived one right after the other.
#[derive(Debug)]
struct LogRecord {
    /// The offset of the first byte, counted over both streams.
    offset: u64,
    /// The offset of the first byte in the record's own stream.
    stream_offset: u64,
    bytes: Vec<u8>,
}

impl LogRecord {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

#[derive(Debug, Default)]
struct LogStream {
    records: VecDeque<LogRecord>,
    written: u64,
    cost: u64,
}

impl LogStream {
    /// Returns the number of bytes that are no longer kept.
    fn dropped(&self) -> u64 {
        self.records.front().map_or(self.written, |first| first.stream_offset)
    }

    /// Forgets the oldest bytes: a record, or so many bytes of the only one.
    fn forget_oldest(&mut self, excess: u64) {
        let is_only = self.records.len() == 1;
        let Some(first) = self.records.front_mut() else { return };
        let length = first.bytes.len() as u64;
        // A record is cut rather than dropped only when it is the last one: cutting moves its
        // bytes.
        if is_only && excess < length {
            first.bytes.drain(..excess as usize);
            first.offset += excess;
            first.stream_offset += excess;
            self.cost -= excess;
            return;
        }
        self.cost -= length + RECORD_COST;
        self.records.pop_front();
    }
}

/// The last bytes of a log.
#[derive(Debug)]
pub struct LogRing {
    streams: [LogStream; 2],
    /// The stream that the last byte was written to.
    last: usize,
    end: u64,
    capacity: u64,
}

/// A piece of a log, of one stream.
#[derive(Debug, PartialEq, Eq)]
pub struct LogPiece<'a> {
    /// The stream.
    pub channel: u8,
    /// The offset of the first byte, counted over both streams.
    pub offset: u64,
    /// The offset of the first byte in its own stream.
    pub stream_offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl LogRing {
    /// An empty log that keeps about `capacity` bytes; it takes memory as it grows.
    pub fn new(capacity: u64) -> Self {
        Self { streams: Default::default(), last: 0, end: 0, capacity }
    }

    /// Returns the offset of the next byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Adds what was written to a stream; forgets the oldest.
    pub fn append(&mut self, channel: u8, bytes: &[u8]) {
        let index = index_of(channel);
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.room(index);
            let (piece, later) = rest.split_at(room.min(rest.len()));
            let (stream, length) = (&mut self.streams[index], piece.len() as u64);
            if let Some(last) = stream.records.back_mut() {
                last.bytes.extend_from_slice(piece);
            }
            stream.written += length;
            stream.cost += length;
            (self.last, self.end) = (index, self.end + length);
            rest = later;
        }
        self.forget_oldest();
    }

    /// Returns how many bytes of that stream the last record still takes. If it takes none, a new
    /// one is begun.
    fn room(&mut self, index: usize) -> usize {
        let continues = self.last == index;
        let stream = &mut self.streams[index];
        match stream.records.back() {
            Some(last) if continues && last.bytes.len() < RECORD_BYTES => RECORD_BYTES - last.bytes.len(),
            _ => {
                let record = LogRecord { offset: self.end, stream_offset: stream.written, bytes: Vec::new() };
                stream.records.push_back(record);
                stream.cost += RECORD_COST;
                RECORD_BYTES
            }
        }
    }

    /// Drops excess bytes from the stream that has more, which is more than its half.
    fn forget_oldest(&mut self) {
        loop {
            let costs = self.streams.each_ref().map(|stream| stream.cost);
            let excess = (costs[0] + costs[1]).saturating_sub(self.capacity);
            let larger = usize::from(costs[1] > costs[0]);
            if excess == 0 || self.streams[larger].records.is_empty() {
                return;
            }
            self.streams[larger].forget_oldest(excess);
        }
    }

    /// Returns the range that an answer from these positions covers.
    pub fn range(&self, positions: Positions, wanted: StreamSelection) -> LogRange {
        let sum = |of: fn(&LogStream) -> u64| {
            (0..2).filter(|index| wanted.0[*index]).map(|index| of(&self.streams[index])).sum()
        };
        LogRange {
            start: self.piece(positions, wanted, 1).map_or(self.end, |piece| piece.offset),
            end: self.end,
            total_bytes: sum(|stream| stream.written),
            dropped_bytes: sum(LogStream::dropped),
        }
    }

    /// The first piece at or after its stream's position, at most `limit` bytes.
    pub fn piece(&self, positions: Positions, wanted: StreamSelection, limit: usize) -> Option<LogPiece<'_>> {
        let first = |index: usize| {
            let records = &self.streams[index].records;
            let at = records.partition_point(|record| record.end() <= positions[index]);
            records
                .get(at)
                .filter(|_| wanted.0[index])
                .map(|record| (record.offset.max(positions[index]), index, record))
        };
        let (offset, index, record) =
            first(0).into_iter().chain(first(1)).min_by_key(|(offset, ..)| *offset)?;
        let skipped = offset - record.offset;
        let bytes = &record.bytes[skipped as usize..];
        let bytes = &bytes[..bytes.len().min(limit)];
        let channel = if index == 0 { CHANNEL_STDOUT } else { CHANNEL_STDERR };
        Some(LogPiece { channel, offset, stream_offset: record.stream_offset + skipped, bytes })
    }

    /// Returns the positions of the last `bytes` bytes.
    pub fn tail_bytes(&self, bytes: u64, wanted: StreamSelection) -> Positions {
        let mut missing = bytes;
        let mut start = self.end;
        for (_, record) in self.backwards(wanted).take_while(|_| bytes > 0) {
            if missing == 0 {
                break;
            }
            let length = record.bytes.len() as u64;
            start = record.offset + length.saturating_sub(missing);
            missing = missing.saturating_sub(length);
        }
        [start; 2]
    }

    /// Returns the positions of the last `lines` lines: those that ended last, in either stream. A
    /// line ends with its line feed, or at its stream's present end. It belongs together whatever
    /// the other stream wrote in between.
    pub fn tail_lines(&self, lines: u64, wanted: StreamSelection) -> Positions {
        let mut starts = [self.end; 2];
        let mut left = lines;
        // Whether a part of a line was taken, and whether the whole line was and no other one is
        // needed.
        let (mut begun, mut done) = ([false; 2], [false; 2]);
        for (index, record) in self.backwards(wanted) {
            if done[index] {
                continue;
            }
            let mut until = record.bytes.len();
            if !std::mem::replace(&mut begun[index], true) {
                // A line feed at the very end ends the last line and begins none.
                until -= usize::from(record.bytes.ends_with(b"\n"));
                done[index] = left == 0;
                left = left.saturating_sub(1);
            }
            while !done[index] {
                let Some(feed) = record.bytes[..until].iter().rposition(|byte| *byte == b'\n') else {
                    starts[index] = record.offset;
                    break;
                };
                starts[index] = record.offset + feed as u64 + 1;
                done[index] = left == 0;
                left = left.saturating_sub(1);
                until = feed;
            }
        }
        starts
    }

    /// The records, the last first.
    fn backwards(&self, wanted: StreamSelection) -> impl Iterator<Item = (usize, &LogRecord)> {
        let mut streams = self.streams.each_ref().map(|stream| stream.records.iter().rev().peekable());
        std::iter::from_fn(move || {
            let [out, err] = &mut streams;
            let next = |records: &mut std::iter::Peekable<_>, index: usize| {
                records.peek().filter(|_| wanted.0[index]).map(|record: &&LogRecord| record.offset)
            };
            match (next(out, 0), next(err, 1)) {
                (None, None) => None,
                (out_at, err_at) if out_at >= err_at => out.next().map(|record| (0, record)),
                _ => err.next().map(|record| (1, record)),
            }
        })
    }
}

fn index_of(channel: u8) -> usize {
    usize::from(channel == CHANNEL_STDERR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CHANNEL_STDERR as ERR, CHANNEL_STDOUT as OUT};

    const BOTH: StreamSelection = StreamSelection([true; 2]);
    const ONLY_OUT: StreamSelection = StreamSelection([true, false]);
    const ONLY_ERR: StreamSelection = StreamSelection([false, true]);

    fn ring() -> LogRing {
        let mut ring = LogRing::new(1000);
        ring.append(OUT, b"one ");
        ring.append(OUT, b"two ");
        ring.append(ERR, b"bad ");
        ring.append(OUT, b"three");
        ring
    }

    fn from(offset: u64) -> Positions {
        [offset; 2]
    }

    /// Returns the content from these positions on.
    fn rest(ring: &LogRing, mut positions: Positions, wanted: StreamSelection) -> String {
        let mut text = String::new();
        while let Some(piece) = ring.piece(positions, wanted, 3) {
            positions[index_of(piece.channel)] = piece.offset + piece.bytes.len() as u64;
            text.push_str(std::str::from_utf8(piece.bytes).unwrap());
        }
        text
    }

    #[test]
    fn offsets_count_both_streams_and_pieces_stay_of_one() {
        let ring = ring();
        let piece =
            |channel, offset, stream_offset, bytes| Some(LogPiece { channel, offset, stream_offset, bytes });
        assert_eq!(ring.piece(from(0), BOTH, 99), piece(OUT, 0, 0, b"one two "));
        assert_eq!(ring.piece(from(9), BOTH, 2), piece(ERR, 9, 1, b"ad"));
        assert_eq!(ring.piece(from(8), ONLY_OUT, 99), piece(OUT, 12, 8, b"three"));
        assert_eq!(ring.piece(from(17), BOTH, 99), None);
        assert_eq!(rest(&ring, from(0), BOTH), "one two bad three");
        let range = LogRange { start: 8, end: 17, total_bytes: 4, dropped_bytes: 0 };
        assert_eq!(ring.range(from(0), ONLY_ERR), range);
    }

    #[test]
    fn a_tail_counts_the_bytes_of_the_stream_that_was_asked_for() {
        let ring = ring();
        let tail = |bytes, wanted| rest(&ring, ring.tail_bytes(bytes, wanted), wanted);
        assert_eq!(tail(7, BOTH), "d three");
        assert_eq!(tail(7, ONLY_OUT), "o three");
        assert_eq!(tail(3, ONLY_ERR), "ad ");
        assert_eq!((tail(0, BOTH).as_str(), tail(9999, BOTH).as_str()), ("", "one two bad three"));
    }

    #[test]
    fn the_oldest_bytes_are_forgotten_and_the_offsets_say_so() {
        let mut ring = ring();
        ring.append(OUT, &[b'x'; 5000]);
        let piece = ring.piece(from(17), BOTH, 1).unwrap();
        assert!(piece.offset > 17 && piece.bytes == b"x" && ring.end() == 5017);
        let range = ring.range(from(0), ONLY_OUT);
        assert_eq!(range.dropped_bytes, ring.piece(from(0), ONLY_OUT, 1).unwrap().stream_offset);
        for index in 0..10_000_u32 {
            ring.append(if index % 2 == 0 { OUT } else { ERR }, b"y");
        }
        let costs: u64 = ring.streams.iter().map(|stream| stream.cost).sum();
        assert!(costs <= 1000);
    }

    #[test]
    fn all_but_one_record_of_the_capacity_is_kept_however_much_comes_at_once() {
        let mut ring = LogRing::new(100_000);
        for size in [65_536, 1, 65_536, 70_000, 3] {
            ring.append(OUT, &vec![b'x'; size]);
        }
        let kept = ring.end() - ring.piece(from(0), BOTH, 1).unwrap().offset;
        assert!((94_000..=100_000).contains(&kept), "{kept}");
    }

    #[test]
    fn a_noisy_stream_pushes_a_quiet_one_out_of_nothing() {
        let mut ring = LogRing::new(100_000);
        ring.append(ERR, &[b'e'; 40_000]);
        for _ in 0..100 {
            ring.append(OUT, &[b'x'; 10_000]);
        }
        assert_eq!(ring.range(from(0), ONLY_ERR).dropped_bytes, 0);
        assert!(ring.range(from(0), ONLY_OUT).dropped_bytes >= 940_000);
        ring.append(ERR, &[b'f'; 90_000]);
        let kept = |wanted| {
            let range = ring.range(from(0), wanted);
            range.total_bytes - range.dropped_bytes
        };
        assert!(
            kept(ONLY_OUT) >= 45_000 && kept(ONLY_ERR) >= 45_000,
            "{} {}",
            kept(ONLY_OUT),
            kept(ONLY_ERR)
        );
    }

    #[test]
    fn the_last_lines_are_whole_whatever_the_other_stream_wrote_in_between() {
        let mut ring = LogRing::new(100_000);
        for (channel, text) in [
            (OUT, "a\nb"),
            (ERR, "x\ny\n"),
            (OUT, "b\r\nc\n"),
            (ERR, "zz"),
            (OUT, "d"),
            (ERR, "z\n"),
            (OUT, "d"),
        ] {
            ring.append(channel, text.as_bytes());
        }
        let tail = |lines, wanted| rest(&ring, ring.tail_lines(lines, wanted), wanted);
        let out: Vec<String> = (0..6).map(|lines| tail(lines, ONLY_OUT)).collect();
        assert_eq!(out, ["", "dd", "c\ndd", "bb\r\nc\ndd", "a\nbb\r\nc\ndd", "a\nbb\r\nc\ndd"]);
        let err: Vec<String> = (0..4).map(|lines| tail(lines, ONLY_ERR)).collect();
        assert_eq!(err, ["", "zzz\n", "y\nzzz\n", "x\ny\nzzz\n"]);
        let both: Vec<String> = (0..7).map(|lines| tail(lines, BOTH)).collect();
        let expected = [
            "",
            "dd",
            "zzdz\nd",
            "c\nzzdz\nd",
            "bb\r\nc\nzzdz\nd",
            "by\nb\r\nc\nzzdz\nd",
            "bx\ny\nb\r\nc\nzzdz\nd",
        ];
        assert_eq!(both, expected);
        assert_eq!(tail(u64::MAX, BOTH), "a\nbx\ny\nb\r\nc\nzzdz\nd");
    }

    #[test]
    fn lines_are_counted_rightly_at_the_borders_of_records() {
        for border in [RECORD_BYTES - 1, RECORD_BYTES, RECORD_BYTES + 1] {
            let mut ring = LogRing::new(100_000);
            let text = format!("first\n{}\n\nlast", "x".repeat(border - 7));
            ring.append(OUT, text.as_bytes());
            let tail = |lines| rest(&ring, ring.tail_lines(lines, BOTH), BOTH);
            assert_eq!((tail(1).as_str(), tail(2).as_str()), ("last", "\nlast"));
            assert_eq!((tail(3), tail(4)), (text[6..].to_owned(), text.clone()));
        }
        assert_eq!(LogRing::new(10).tail_lines(5, BOTH), [0; 2]);
    }
}
