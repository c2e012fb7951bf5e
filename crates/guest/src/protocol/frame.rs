//! Frames: twelve bytes of header, then at most 65,524 bytes of payload.
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | payload length, little-endian |
//! | 4 | kind |
//! | 5 | channel |
//! | 6 | flags: bit 0 = the message goes on in the next frame of this call and kind |
//! | 7 | zero |
//! | 8–11 | call, little-endian; 0 for the connection itself |

use std::fmt;

/// The header's size.
pub const HEADER_BYTES: usize = 12;
/// The largest frame, header included.
pub const MAX_FRAME_BYTES: usize = 64 * 1024;
/// The largest payload.
pub const MAX_PAYLOAD_BYTES: usize = MAX_FRAME_BYTES - HEADER_BYTES;

const FLAG_MORE: u8 = 1;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Client to guest, first: version and nonce (`Hello`).
    Hello = 1,
    /// Guest to client, first: version and nonce (`Welcome`).
    Welcome = 2,
    /// Client to guest: begins a call (`Request`).
    Request = 3,
    /// Guest to client: ends a call (`Reply`).
    Reply = 4,
    /// Guest to client: ends a call, or the connection when the call is 0 (`Failure`).
    Failure = 5,
    /// Either way: bytes of a channel of a call.
    Data = 6,
    /// Either way: no more bytes on that channel.
    End = 7,
    /// Either way: the receiver of a channel grants this many bytes more (four bytes,
    /// little-endian).
    Credit = 8,
    /// Guest to client: something happened to a call (`Event`).
    Event = 9,
    /// Client to guest: do something to a call (`Control`).
    Control = 10,
    /// Client to guest: the caller is gone. The call still ends with a `Reply` or a `Failure`.
    Cancel = 11,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Hello,
            2 => Self::Welcome,
            3 => Self::Request,
            4 => Self::Reply,
            5 => Self::Failure,
            6 => Self::Data,
            7 => Self::End,
            8 => Self::Credit,
            9 => Self::Event,
            10 => Self::Control,
            11 => Self::Cancel,
            _ => return None,
        })
    }
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The kind.
    pub kind: Kind,
    /// The stream of the call; 0 if that means nothing.
    pub channel: u8,
    /// The message goes on in the next frame of this call and kind.
    pub more: bool,
    /// The call; 0 for the connection itself.
    pub call: u32,
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The header.
    pub header: Header,
    /// The payload.
    pub payload: Vec<u8>,
}

/// Bytes that are no frame. The connection can't be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameError {
    /// The length is larger than any payload may be.
    TooLong(u32),
    /// There is no such kind.
    UnknownKind(u8),
    /// Flags or the zero byte hold what they must not.
    Reserved,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(length) => write!(f, "a frame of {length} bytes; the limit is {MAX_PAYLOAD_BYTES}"),
            Self::UnknownKind(kind) => write!(f, "a frame of unknown kind {kind}"),
            Self::Reserved => f.write_str("a frame with reserved bits set"),
        }
    }
}

impl std::error::Error for FrameError {}

impl Header {
    /// The header's bytes for a payload of `length` bytes.
    ///
    /// # Panics
    /// When `length` exceeds [`MAX_PAYLOAD_BYTES`]: a defect of the sender.
    pub fn to_bytes(self, length: usize) -> [u8; HEADER_BYTES] {
        assert!(length <= MAX_PAYLOAD_BYTES, "a frame's payload of {length} bytes");
        let [a, b, c, d] = (length as u32).to_le_bytes();
        let [w, x, y, z] = self.call.to_le_bytes();
        let flags = if self.more { FLAG_MORE } else { 0 };
        [a, b, c, d, self.kind as u8, self.channel, flags, 0, w, x, y, z]
    }

    /// The header in these bytes, and the payload's length.
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Result<(Self, usize), FrameError> {
        let [a, b, c, d, kind, channel, flags, zero, w, x, y, z] = *bytes;
        let length = u32::from_le_bytes([a, b, c, d]);
        if length as usize > MAX_PAYLOAD_BYTES {
            return Err(FrameError::TooLong(length));
        }
        let kind = Kind::from_byte(kind).ok_or(FrameError::UnknownKind(kind))?;
        if flags & !FLAG_MORE != 0 || zero != 0 {
            return Err(FrameError::Reserved);
        }
        let header =
            Self { kind, channel, more: flags & FLAG_MORE != 0, call: u32::from_le_bytes([w, x, y, z]) };
        Ok((header, length as usize))
    }
}

/// Turns bytes, in pieces of any size, into frames. It never holds more than one frame and what was
/// pushed last.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
}

impl Decoder {
    /// A decoder that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one. After an error the decoder must not be used any more.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let pending = &self.buffer[self.start..];
        let Some((header, rest)) = pending.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let (header, length) = Header::from_bytes(header)?;
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let payload = payload.to_vec();
        self.start += HEADER_BYTES + length;
        Ok(Some(Frame { header, payload }))
    }

    /// Tells whether a frame has begun and not ended.
    pub fn is_midway(&self) -> bool {
        self.start < self.buffer.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(header: Header, payload: &[u8]) -> Vec<u8> {
        [&header.to_bytes(payload.len())[..], payload].concat()
    }

    const DATA: Header = Header { kind: Kind::Data, channel: 2, more: false, call: 7 };

    #[test]
    fn a_frame_survives_being_cut_anywhere() {
        let bytes = [bytes_of(DATA, b"hello"), bytes_of(Header { more: true, ..DATA }, b"")].concat();
        for cut in 0..bytes.len() {
            let mut decoder = Decoder::new();
            let mut frames = Vec::new();
            for piece in [&bytes[..cut], &bytes[cut..]] {
                decoder.push(piece);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    frames.push(frame);
                }
            }
            assert_eq!(frames[0], Frame { header: DATA, payload: b"hello".to_vec() });
            assert!(frames.len() == 2 && frames[1].header.more && !decoder.is_midway());
        }
    }

    #[test]
    fn the_largest_payload_is_accepted_and_one_byte_more_is_refused() {
        let mut header = DATA.to_bytes(MAX_PAYLOAD_BYTES);
        assert!(Header::from_bytes(&header).is_ok());
        header[..4].copy_from_slice(&(MAX_PAYLOAD_BYTES as u32 + 1).to_le_bytes());
        assert_eq!(Header::from_bytes(&header), Err(FrameError::TooLong(MAX_PAYLOAD_BYTES as u32 + 1)));
    }

    #[test]
    fn unknown_kinds_and_reserved_bits_are_refused() {
        for (index, value) in [(4, 0), (4, 12), (6, 2), (7, 1)] {
            let mut header = DATA.to_bytes(0);
            header[index] = value;
            assert!(Header::from_bytes(&header).is_err(), "byte {index} = {value}");
        }
    }
}
