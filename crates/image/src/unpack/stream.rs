//! The bytes of a layer: decompressed, and bounded at a point that no byte gets around, because a
//! few bytes of gzip become gigabytes.

use std::io::{self, BufRead, BufReader, Read};

use crate::failure::refused;

/// A reader of a limited number of bytes.
pub(crate) struct BoundedReader<R> {
    input: R,
    left: u64,
}

impl<R: Read> BoundedReader<R> {
    pub(crate) fn new(input: R, max_bytes: u64) -> Self {
        Self { input, left: max_bytes }
    }
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            // A stream that ends exactly at the limit is not over it.
            return match self.input.read(&mut [0; 1])? {
                0 => Ok(0),
                _ => Err(refused("it unpacks to too many bytes")),
            };
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        let count = self.input.read(&mut into[..most])?;
        self.left -= count as u64;
        Ok(count)
    }
}

/// Removes the stream's compression. The first bytes tell which one it is: gzip, zstd, or none.
pub(crate) fn decompressed<'r>(input: impl Read + Send + 'r) -> io::Result<Box<dyn Read + Send + 'r>> {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let compression = Compression::of(input.fill_buf()?);
    Ok(match compression {
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(input)?),
        Compression::None => Box::new(input),
    })
}

/// The compression of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    /// Detects the compression by the first four bytes.
    pub(crate) fn of(first: &[u8]) -> Self {
        match first {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_at_its_limit_and_not_before() {
        let exact = io::copy(&mut BoundedReader::new(&[0; 10][..], 10), &mut io::sink());
        assert_eq!(exact.unwrap(), 10);
        let over = io::copy(&mut BoundedReader::new(io::repeat(0), 3 << 20), &mut io::sink()).unwrap_err();
        assert!(over.to_string().contains("too many bytes"), "{over}");
    }
}
