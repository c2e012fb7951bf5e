//! A call that reads the output of a kept command, piece by piece as its client takes them.

use super::call_handle::GuestCall;
use crate::kept_output::{KeptOutput, PIECE_BYTES};
use crate::protocol::{CHANNEL_STDERR, LOG_PREFIX_BYTES, WINDOW};

/// A call that reads kept output.
#[derive(Debug)]
pub struct KeptReader {
    /// The call.
    pub handle: GuestCall,
    next: u64,
    credit: [u64; 2],
}

impl KeptReader {
    /// Begins at this position.
    pub fn new(handle: GuestCall, next: u64) -> Self {
        Self { handle, next, credit: [u64::from(WINDOW); 2] }
    }

    /// The client takes more of a stream; credit counts whole payloads.
    pub fn grant(&mut self, channel: u8, bytes: u32) {
        let credit = &mut self.credit[index_of(channel)];
        *credit = credit.saturating_add(u64::from(bytes));
    }

    /// Sends what the client takes. Returns whether nothing is left to send.
    pub fn pump(&mut self, output: &mut KeptOutput) -> bool {
        let is_done = self.send(output);
        output.note_read(self.next);
        is_done
    }

    fn send(&mut self, output: &KeptOutput) -> bool {
        while let Some(piece) = output.piece(self.next, PIECE_BYTES) {
            let index = index_of(piece.channel);
            let length = (LOG_PREFIX_BYTES + piece.bytes.len()) as u64;
            // A client that takes everything has more than a whole piece's credit again.
            if self.credit[index] < length || self.handle.is_full() {
                return false;
            }
            self.credit[index] -= length;
            self.next = piece.end;
            let prefix = [piece.start.to_le_bytes(), piece.end.to_le_bytes()];
            self.handle.data(piece.channel, &[&prefix[0], &prefix[1], piece.bytes]);
        }
        true
    }
}

fn index_of(channel: u8) -> usize {
    usize::from(channel == CHANNEL_STDERR)
}
