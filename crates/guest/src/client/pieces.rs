//! The data of a call that has arrived and was not taken yet. Credits bound its bytes. This bounds
//! the cost of each byte, since a guest may send frames of one byte.

use std::collections::VecDeque;

use eyot::Bytes;

use super::shape::Framing;

/// A piece of a stream grows up to this many bytes before the next one begins.
const JOINED_BYTES: usize = 16 * 1024;
/// With this many pieces waiting, the order between two channels is given up: a channel's bytes
/// then join the piece that its channel has last, however long that gets.
const ORDERED_PIECES: usize = 1024;

/// Bytes that arrived on a channel.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DataPiece {
    /// The channel.
    pub(super) channel: u8,
    /// The bytes.
    pub(super) bytes: Vec<u8>,
}

/// Takes a number of eight bytes off the front of a payload.
pub(super) fn take_number(payload: &mut Bytes) -> u64 {
    let prefix = payload.split_to(payload.len().min(8));
    prefix.as_ref().try_into().map(u64::from_le_bytes).unwrap_or_default()
}

/// The pieces that wait, oldest first.
#[derive(Debug, Default)]
pub(super) struct PieceQueue(VecDeque<DataPiece>);

impl PieceQueue {
    /// Takes in what arrived. Small frames of a stream become one piece.
    pub(super) fn push(&mut self, channel: u8, bytes: Vec<u8>, framing: Framing) {
        let joined = match framing {
            Framing::Stream => self.can_join(channel, bytes.len()),
            Framing::Whole | Framing::Prefixed => None,
        };
        match joined {
            Some(piece) => piece.bytes.extend_from_slice(&bytes),
            None => self.0.push_back(DataPiece { channel, bytes }),
        }
    }

    fn can_join(&mut self, channel: u8, length: usize) -> Option<&mut DataPiece> {
        if self.0.len() >= ORDERED_PIECES {
            return self.0.iter_mut().rev().find(|piece| piece.channel == channel);
        }
        self.0
            .back_mut()
            .filter(|piece| piece.channel == channel && piece.bytes.len() + length <= JOINED_BYTES)
    }

    /// Takes the oldest.
    pub(super) fn pop(&mut self) -> Option<DataPiece> {
        self.0.pop_front()
    }

    /// Throws all of them away.
    pub(super) fn clear(&mut self) {
        self.0 = VecDeque::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_one_byte_become_one_piece_and_keep_their_order() {
        let mut pieces = PieceQueue::default();
        for (channel, byte) in [(1, b'a'), (1, b'b'), (2, b'c'), (1, b'd')] {
            pieces.push(channel, vec![byte], Framing::Stream);
        }
        let all: Vec<_> =
            std::iter::from_fn(|| pieces.pop()).map(|piece| (piece.channel, piece.bytes)).collect();
        assert_eq!(all, [(1, b"ab".to_vec()), (2, b"c".to_vec()), (1, b"d".to_vec())]);
    }

    #[test]
    fn alternating_channels_of_single_bytes_do_not_pile_up_pieces() {
        let mut pieces = PieceQueue::default();
        for index in 0..200_000_u32 {
            pieces.push(1 + (index % 2) as u8, vec![(index % 251) as u8], Framing::Stream);
        }
        assert!(pieces.0.len() <= ORDERED_PIECES);
        let mut first = Vec::new();
        while let Some(piece) = pieces.pop() {
            if piece.channel == 1 {
                first.extend(piece.bytes);
            }
        }
        let expected: Vec<u8> = (0..200_000_u32).step_by(2).map(|index| (index % 251) as u8).collect();
        assert_eq!(first, expected);
    }

    #[test]
    fn messages_are_never_joined() {
        let mut pieces = PieceQueue::default();
        pieces.push(0, vec![1], Framing::Whole);
        pieces.push(0, vec![2], Framing::Whole);
        assert_eq!(pieces.pop().map(|piece| piece.bytes), Some(vec![1]));
    }
}
