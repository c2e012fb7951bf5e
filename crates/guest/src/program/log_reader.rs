//! A call that reads a started process's log, piece by piece as its client takes them.

use super::call_handle::CallHandle;
use super::log_ring::LogRing;
use crate::protocol::{CHANNEL_STDERR, CHANNEL_STDOUT, LogRequest, MAX_PAYLOAD_BYTES, WINDOW};

/// Each payload begins with its offset.
const OFFSET_BYTES: usize = 8;

/// A call that reads a log.
#[derive(Debug)]
pub struct LogReader {
    /// The call.
    pub handle: CallHandle,
    stream: Option<u8>,
    next: u64,
    /// Where to stop; `None`: it follows.
    until: Option<u64>,
    credit: [u64; 2],
}

impl LogReader {
    /// Begins where the request says.
    pub fn new(handle: CallHandle, request: &LogRequest, log: &LogRing) -> Self {
        let next = request.tail.map_or(request.offset, |bytes| log.tail(bytes, request.stream));
        let until = (!request.follow).then_some(log.end());
        Self { handle, stream: request.stream, next, until, credit: [u64::from(WINDOW); 2] }
    }

    /// The client takes more of a stream; credit counts whole payloads.
    pub fn grant(&mut self, channel: u8, bytes: u32) {
        if let Some(credit) = credit_of(&mut self.credit, channel) {
            *credit = credit.saturating_add(u64::from(bytes));
        }
    }

    /// Sends what the client takes. Whether that was the last: everything was sent and, if it follows, the process
    /// `has_ended`.
    pub fn pump(&mut self, log: &LogRing, has_ended: bool) -> bool {
        loop {
            let Some(piece) = log.piece(self.next, self.stream, MAX_PAYLOAD_BYTES - OFFSET_BYTES) else {
                return has_ended || self.until.is_some();
            };
            let left = self.until.map_or(u64::MAX, |until| until.saturating_sub(piece.offset));
            if left == 0 {
                return true;
            }
            let Some(credit) = credit_of(&mut self.credit, piece.channel) else {
                return true;
            };
            let room = credit.saturating_sub(OFFSET_BYTES as u64).min(left);
            if room == 0 || self.handle.is_full() {
                return false;
            }
            let bytes = &piece.bytes[..piece.bytes.len().min(room as usize)];
            *credit -= (OFFSET_BYTES + bytes.len()) as u64;
            self.next = piece.offset + bytes.len() as u64;
            self.handle.data(piece.channel, &[&piece.offset.to_le_bytes(), bytes]);
        }
    }
}

fn credit_of(credit: &mut [u64; 2], channel: u8) -> Option<&mut u64> {
    match channel {
        CHANNEL_STDOUT => credit.first_mut(),
        CHANNEL_STDERR => credit.last_mut(),
        _ => None,
    }
}
