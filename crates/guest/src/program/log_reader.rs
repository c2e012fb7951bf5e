//! A call that reads a started process's log, piece by piece as its client takes them.

use super::call_handle::GuestCall;
use crate::log_ring::{LogRing, Positions, StreamSelection};
use crate::protocol::{
    CHANNEL_STDERR, CHANNEL_STDOUT, LOG_PREFIX_BYTES, LogRange, LogRequest, MAX_PAYLOAD_BYTES, WINDOW,
};

/// A call that reads a log.
#[derive(Debug)]
pub struct LogReader {
    /// The call.
    pub handle: GuestCall,
    wanted: StreamSelection,
    next: Positions,
    /// The position at which to stop; `None` to follow.
    until: Option<u64>,
    credit: [u64; 2],
}

impl LogReader {
    /// Begins where the request says.
    pub fn new(handle: GuestCall, request: &LogRequest, log: &LogRing) -> Self {
        let wanted = StreamSelection::new(request.stream);
        let next = match (request.tail, request.tail_lines) {
            (Some(bytes), _) => log.tail_bytes(bytes, wanted),
            (None, Some(lines)) => log.tail_lines(lines, wanted),
            (None, None) => [request.offset; 2],
        };
        let until = (!request.follow).then_some(log.end());
        Self { handle, wanted, next, until, credit: [u64::from(WINDOW); 2] }
    }

    /// Returns the range of the present log that it will send.
    pub fn range(&self, log: &LogRing) -> LogRange {
        log.range(self.next, self.wanted)
    }

    /// The client takes more of a stream; credit counts whole payloads.
    pub fn grant(&mut self, channel: u8, bytes: u32) {
        if let Some(index) = index_of(channel) {
            self.credit[index] = self.credit[index].saturating_add(u64::from(bytes));
        }
    }

    /// Sends what the client takes. Whether that was the last: everything was sent and, if it
    /// follows, the process `has_ended`.
    pub fn pump(&mut self, log: &LogRing, has_ended: bool) -> bool {
        loop {
            let Some(piece) = log.piece(self.next, self.wanted, MAX_PAYLOAD_BYTES - LOG_PREFIX_BYTES) else {
                return has_ended || self.until.is_some();
            };
            let left = self.until.map_or(u64::MAX, |until| until.saturating_sub(piece.offset));
            let Some(index) = index_of(piece.channel).filter(|_| left > 0) else {
                return true;
            };
            let room = self.credit[index].saturating_sub(LOG_PREFIX_BYTES as u64).min(left);
            if room == 0 || self.handle.is_full() {
                return false;
            }
            let bytes = &piece.bytes[..piece.bytes.len().min(room as usize)];
            self.credit[index] -= (LOG_PREFIX_BYTES + bytes.len()) as u64;
            self.next[index] = piece.offset + bytes.len() as u64;
            let prefix = [piece.offset.to_le_bytes(), piece.stream_offset.to_le_bytes()];
            self.handle.data(piece.channel, &[&prefix[0], &prefix[1], bytes]);
        }
    }
}

fn index_of(channel: u8) -> Option<usize> {
    [CHANNEL_STDOUT, CHANNEL_STDERR].iter().position(|of| *of == channel)
}
