//! Streams that `gzip` packs and unpacks, member by member.

use std::io::{self, Read, Write};

use flate2::bufread::GzDecoder;
use flate2::{Compression, Crc, GzBuilder};

use super::file_bytes::FileBytes;

/// The bytes that are handled at once.
const PIECE_BYTES: usize = 64 << 10;

/// Bytes packed and unpacked.
pub(super) type Counts = (u64, u64);

#[derive(Default)]
pub(super) struct GzipTotals {
    pub counts: Counts,
    pub crc: u32,
    pub modified: u32,
    pub is_sound: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GzipError {
    NotGzip,
    Short,
    Crc,
    Format,
    Trailing,
    NoSpace,
}

impl GzipError {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::NotGzip => "not in gzip format",
            Self::Short => "unexpected end of file",
            Self::Crc => "invalid compressed data--crc error",
            Self::Format => "invalid compressed data--format violated",
            Self::Trailing => "decompression OK, trailing garbage ignored",
            Self::NoSpace => "No space left on device",
        }
    }
}

impl From<io::Error> for GzipError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Short,
            io::ErrorKind::StorageFull => Self::NoSpace,
            _ => Self::Format,
        }
    }
}

/// Packs a stream.
pub(super) fn compress(
    mut input: impl Read,
    output: impl Write,
    header: GzBuilder,
    level: u32,
) -> io::Result<Counts> {
    let counted = CountingStream { inner: io::BufWriter::with_capacity(PIECE_BYTES, output), len: 0 };
    let header = header.operating_system(3);
    let mut encoder = header.write(counted, Compression::new(level));
    let len = io::copy(&mut input, &mut encoder)?;
    let mut counted = encoder.finish()?;
    counted.inner.flush()?;
    Ok((counted.len, len))
}

/// Unpacks a stream of members, and notes what it learns of them.
pub(super) fn decompress(
    input: impl Read,
    output: impl Write,
    unpacked: &mut GzipTotals,
    copies: bool,
) -> Result<(), GzipError> {
    let mut output = io::BufWriter::with_capacity(PIECE_BYTES, output);
    let done = members(input, &mut output, unpacked, copies);
    output.flush()?;
    done
}

fn members(
    input: impl Read,
    output: &mut impl Write,
    unpacked: &mut GzipTotals,
    copies: bool,
) -> Result<(), GzipError> {
    let mut input = PeekReader::new(CountingStream { inner: input, len: 0 });
    let mut is_first = true;
    loop {
        match input.peek_two()? {
            [0x1f, 0x8b] => {}
            [] if !is_first => return Ok(()),
            [] | [0x1f] => return Err(GzipError::Short),
            _ if !is_first => {
                return if input.rest_is_zero()? { Ok(()) } else { Err(GzipError::Trailing) };
            }
            _ if copies => {
                io::copy(&mut input, output)?;
                return Ok(());
            }
            _ => return Err(GzipError::NotGzip),
        }
        let mut decoder = GzDecoder::new(&mut input);
        let mut crc = Crc::new();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let len = decoder.read(&mut piece).map_err(|error| {
                // Behind a sound head and sound data only the sum can be wrong.
                let is_data = error.get_ref().is_some_and(|inner| inner.is::<flate2::DecompressError>());
                let has_head = decoder.header().is_some();
                match GzipError::from(error) {
                    GzipError::Format if has_head && !is_data => GzipError::Crc,
                    other => other,
                }
            })?;
            if len == 0 {
                break;
            }
            crc.update(&piece[..len]);
            unpacked.counts.1 += len as u64;
            output.write_all(&piece[..len])?;
        }
        unpacked.modified = decoder.header().map_or(0, flate2::GzHeader::mtime);
        unpacked.crc = crc.sum();
        is_first = false;
        unpacked.counts.0 = input.consumed();
    }
}

/// Unpacks bytes as far as they are sound and no more than a limit. Others stay as they are.
pub(super) fn unpacked(bytes: &[u8], most: usize) -> Vec<u8> {
    let mut output = FileBytes { bytes: Vec::new(), room: most as u64 };
    let done = decompress(bytes, &mut output, &mut GzipTotals::default(), true);
    if let Err(error) = done {
        tracing::debug!(error = error.text(), "what is searched is not unpacked to its end");
    }
    output.bytes
}

/// A stream whose next bytes can be looked at.
struct PeekReader<R> {
    inner: io::BufReader<CountingStream<R>>,
    /// Bytes that were read ahead of the buffer.
    held: Vec<u8>,
}

impl<R: Read> PeekReader<R> {
    fn new(inner: CountingStream<R>) -> Self {
        Self { inner: io::BufReader::with_capacity(PIECE_BYTES, inner), held: Vec::new() }
    }

    fn consumed(&self) -> u64 {
        self.inner.get_ref().len - (self.inner.buffer().len() + self.held.len()) as u64
    }

    fn peek_two(&mut self) -> io::Result<&[u8]> {
        while self.held.len() < 2 {
            let mut byte = [0];
            if self.inner.read(&mut byte)? == 0 {
                break;
            }
            self.held.extend(byte);
        }
        Ok(&self.held)
    }

    fn rest_is_zero(&mut self) -> io::Result<bool> {
        let mut piece = [0; 4096];
        loop {
            let len = self.read(&mut piece)?;
            if len == 0 || piece[..len].iter().any(|byte| *byte != 0) {
                return Ok(len == 0);
            }
        }
    }
}

impl<R: Read> Read for PeekReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let held = io::BufRead::fill_buf(self)?;
        let len = held.len().min(buffer.len());
        buffer[..len].copy_from_slice(&held[..len]);
        io::BufRead::consume(self, len);
        Ok(len)
    }
}

impl<R: Read> io::BufRead for PeekReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.held.is_empty() { self.inner.fill_buf() } else { Ok(&self.held) }
    }

    fn consume(&mut self, len: usize) {
        if self.held.is_empty() {
            self.inner.consume(len);
        } else {
            self.held.drain(..len);
        }
    }
}

/// A stream whose bytes are counted.
struct CountingStream<T> {
    inner: T,
    len: u64,
}

impl<W: Write> Write for CountingStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.inner.write(bytes)?;
        self.len += len as u64;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for CountingStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.len += len as u64;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        compress(text, &mut bytes, GzBuilder::new(), 6).unwrap();
        bytes
    }

    fn unpack(bytes: &[u8]) -> (Vec<u8>, Result<(), GzipError>) {
        let mut output = Vec::new();
        let done = decompress(bytes, &mut output, &mut GzipTotals::default(), false);
        (output, done)
    }

    #[test]
    fn members_follow_each_other_and_zeros_may_follow_them() {
        let two = [packed(b"one"), packed(b"two"), vec![0; 9]].concat();
        assert_eq!(unpack(&two), (b"onetwo".to_vec(), Ok(())));
    }

    #[test]
    fn broken_streams_are_told_apart() {
        let sound = packed(&b"text that is packed ".repeat(9));
        let mut wrong_sum = sound.clone();
        let at = wrong_sum.len() - 8;
        wrong_sum[at] ^= 1;
        for (bytes, error) in [
            (b"junk".to_vec(), GzipError::NotGzip),
            (Vec::new(), GzipError::Short),
            (sound[..20].to_vec(), GzipError::Short),
            (wrong_sum, GzipError::Crc),
            ([sound, b"more".to_vec()].concat(), GzipError::Trailing),
        ] {
            assert_eq!(unpack(&bytes).1, Err(error));
        }
    }
}
