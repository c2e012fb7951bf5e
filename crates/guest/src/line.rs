//! Lines of a file, read with bounded memory: a line that is too long comes in pieces.

use std::io::{self, BufRead, Read};

/// The longest piece of a line.
pub const MAX_PIECE_BYTES: u64 = 1 << 20;

/// Reads lines, piece by piece, into its buffer.
pub struct Lines<R> {
    reader: R,
    piece: Vec<u8>,
    number: u64,
    is_midway: bool,
}

/// A line, or a piece of a long one.
pub struct Piece<'l> {
    /// The bytes without the line's end.
    pub bytes: &'l [u8],
    /// The line's number, counted from 1.
    pub number: u64,
    /// The line began in an earlier piece.
    pub goes_on: bool,
    /// The line does not end here.
    pub is_cut: bool,
}

impl<R: BufRead> Lines<R> {
    /// The lines of what `reader` has.
    pub fn new(reader: R) -> Self {
        Self { reader, piece: Vec::new(), number: 0, is_midway: false }
    }

    /// The next piece; `None` at the end.
    pub fn next_piece(&mut self) -> io::Result<Option<Piece<'_>>> {
        self.piece.clear();
        if (&mut self.reader).take(MAX_PIECE_BYTES).read_until(b'\n', &mut self.piece)? == 0 {
            return Ok(None);
        }
        let goes_on = self.is_midway;
        self.number += u64::from(!goes_on);
        let ended = self.piece.strip_suffix(b"\n");
        self.is_midway = ended.is_none();
        let bytes = ended.map_or(&self.piece[..], |line| line.strip_suffix(b"\r").unwrap_or(line));
        Ok(Some(Piece { bytes, number: self.number, goes_on, is_cut: self.is_midway }))
    }
}

/// A line as text of at most `most` bytes, cut at a character; and whether it was cut.
pub fn display_text(line: &[u8], most: usize) -> (String, bool) {
    // Bytes that are not text become longer, never shorter, so these are enough. A character that
    // this slice cuts lies behind the end anyway.
    let slice = &line[..line.len().min(most.saturating_add(4))];
    let mut text = String::from_utf8_lossy(slice).into_owned();
    let is_cut = slice.len() < line.len() || text.len() > most;
    text.truncate(text.floor_char_boundary(most));
    (text, is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_their_ends_left_out() {
        let mut lines = Lines::new(&b"a\r\n\nb"[..]);
        let mut seen = Vec::new();
        while let Some(piece) = lines.next_piece().unwrap() {
            seen.push((piece.number, piece.bytes.to_vec()));
        }
        assert_eq!(seen, [(1, b"a".to_vec()), (2, b"".to_vec()), (3, b"b".to_vec())]);
    }

    #[test]
    fn a_long_line_comes_in_pieces_of_one_number() {
        let bytes = [vec![b'x'; 3 << 20], b"\nend\n".to_vec()].concat();
        let mut lines = Lines::new(&bytes[..]);
        let mut seen = Vec::new();
        while let Some(piece) = lines.next_piece().unwrap() {
            assert!(piece.bytes.len() <= 1 << 20);
            seen.push((piece.number, piece.goes_on));
        }
        assert_eq!(seen, [(1, false), (1, true), (1, true), (1, true), (2, false)]);
    }

    #[test]
    fn a_line_is_cut_at_a_character() {
        assert_eq!(display_text(b"hello", 5), ("hello".into(), false));
        assert_eq!(display_text(b"hello", 4), ("hell".into(), true));
        assert_eq!(display_text("aéé".as_bytes(), 4), ("aé".into(), true));
        assert_eq!(display_text(b"\xff\xff", 3), ("\u{fffd}".into(), true));
        assert_eq!(display_text(b"", 0), (String::new(), false));
    }
}
