//! The contract of a guest that stands beside other programs, in a container whose only stream from outside is a
//! terminal, beyond that of a [container](super::container).
//!
//! The guest is `eyot-guest beside DIRECTORY`, and listens in that directory. It is not the container's first program,
//! and runs as the user who runs commands. A stream to it is `eyot-guest terminal DIRECTORY`, on a terminal that it makes
//! raw. What goes through the terminal are pieces, in both directions: the length (two bytes, little endian) and as many
//! bytes. Two lengths mean something else: `ALIVE` and `END`. A terminal does not tell that its program has ended, so
//! each side says that it is there while it has nothing else to say, and ends when the other has not for [`SILENCE`].
//! The first piece from inside is one byte, the relay's first.

use std::time::Duration;

/// The argument that makes the program a guest beside others.
pub const BESIDE: &str = "beside";
/// The argument that makes the program a stream to it, on a terminal.
pub const TERMINAL: &str = "terminal";

/// The most bytes in a piece.
pub const MAX_PIECE_BYTES: usize = 16 << 10;
/// The time between two signs of life.
pub const HEARTBEAT: Duration = Duration::from_secs(5);
/// The silence after which the other side is taken for gone.
pub const SILENCE: Duration = Duration::from_secs(30);

/// The length that is a sign of life.
const ALIVE: u16 = 0;
/// The length that is the end of the stream.
const END: u16 = u16::MAX;

/// A piece of what comes through the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalPiece {
    /// Bytes of the stream.
    Bytes(Vec<u8>),
    /// The other side is there.
    Alive,
    /// The stream has ended.
    End,
}

/// Adds bytes to what is sent, in pieces.
pub fn push_bytes(sent: &mut Vec<u8>, bytes: &[u8]) {
    for piece in bytes.chunks(MAX_PIECE_BYTES) {
        // No piece is longer than the constant, which is one.
        let length = u16::try_from(piece.len()).unwrap_or(END);
        sent.extend_from_slice(&length.to_le_bytes());
        sent.extend_from_slice(piece);
    }
}

/// Returns a sign of life.
pub fn alive() -> [u8; 2] {
    ALIVE.to_le_bytes()
}

/// Returns the end.
pub fn end() -> [u8; 2] {
    END.to_le_bytes()
}

/// Puts pieces together again, however they were cut on their way.
#[derive(Debug, Default)]
pub struct TerminalReader {
    read: Vec<u8>,
}

impl TerminalReader {
    /// Takes what came, and returns the pieces that are whole by now.
    ///
    /// # Errors
    /// The length that no piece may have.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<TerminalPiece>, u16> {
        self.read.extend_from_slice(bytes);
        let (mut pieces, mut at) = (Vec::new(), 0);
        while let Some(&[low, high]) = self.read.get(at..at + 2) {
            let length = u16::from_le_bytes([low, high]);
            let start = at + 2;
            let (piece, next) = match length {
                ALIVE => (TerminalPiece::Alive, start),
                END => (TerminalPiece::End, start),
                _ if usize::from(length) > MAX_PIECE_BYTES => return Err(length),
                _ => {
                    let next = start + usize::from(length);
                    let Some(whole) = self.read.get(start..next) else { break };
                    (TerminalPiece::Bytes(whole.to_vec()), next)
                }
            };
            pieces.push(piece);
            at = next;
        }
        self.read.drain(..at);
        Ok(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_as_they_were_written_however_they_are_cut() {
        let long: Vec<u8> = (0..=255).cycle().take(MAX_PIECE_BYTES + 3).collect();
        let mut sent = Vec::new();
        push_bytes(&mut sent, &long);
        sent.extend(alive());
        sent.extend(end());
        let whole = TerminalReader::default().push(&sent).unwrap();
        assert_eq!(whole.len(), 4);
        let mut reader = TerminalReader::default();
        let cut: Vec<TerminalPiece> = sent.iter().flat_map(|byte| reader.push(&[*byte]).unwrap()).collect();
        assert_eq!(cut, whole);
        let [
            TerminalPiece::Bytes(first),
            TerminalPiece::Bytes(second),
            TerminalPiece::Alive,
            TerminalPiece::End,
        ] = &whole[..]
        else {
            panic!("{whole:?}")
        };
        assert_eq!([&first[..], second].concat(), long);
    }

    #[test]
    fn a_length_past_the_limit_is_refused_at_its_edge() {
        let length = |length: usize| u16::try_from(length).unwrap().to_le_bytes();
        assert_eq!(TerminalReader::default().push(&length(MAX_PIECE_BYTES)), Ok(Vec::new()));
        assert!(TerminalReader::default().push(&length(MAX_PIECE_BYTES + 1)).is_err());
    }
}
