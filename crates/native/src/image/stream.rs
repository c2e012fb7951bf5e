//! A tarball's bytes as its reader gets them: decompressed, and bounded. A few bytes of gzip become gigabytes, and a tar
//! reader keeps an entry's whole header in memory, so both are counted here, where nothing gets past.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

/// The most bytes between one entry's content and the next one's: headers, long names, extensions.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// How much may still be read before an entry's content begins. Shared by the stream and by who reads entries from it.
#[derive(Debug, Clone)]
pub(super) struct Allowance(Rc<Cell<u64>>);

impl Allowance {
    /// What comes now is a header: 1 MiB at most.
    pub(super) fn header(&self) {
        self.0.set(MAX_HEADER_BYTES);
    }

    /// What comes now is content, bounded by the stream's total only.
    pub(super) fn content(&self) {
        self.0.set(u64::MAX);
    }
}

/// A decompressed tarball.
pub(super) struct Stream {
    input: Box<dyn Read>,
    allowance: Allowance,
    left: u64,
}

impl Stream {
    /// The tarball at `path`, gzip or plain, as at most `max_bytes` decompressed bytes.
    pub(super) fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        Ok(Self::new(decompressed(path)?, max_bytes))
    }

    fn new(input: Box<dyn Read>, max_bytes: u64) -> Self {
        Self { input, allowance: Allowance(Rc::new(Cell::new(MAX_HEADER_BYTES))), left: max_bytes }
    }

    /// What tells the stream whether a header or content comes.
    pub(super) fn allowance(&self) -> Allowance {
        self.allowance.clone()
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let allowed = self.allowance.0.get();
        if allowed == 0 {
            return Err(io::Error::other("it has an entry with more than a mebibyte of headers"));
        }
        if self.left == 0 {
            return Err(io::Error::other("it unpacks to too many bytes"));
        }
        let most = usize::try_from(allowed.min(self.left)).unwrap_or(usize::MAX).min(into.len());
        let count = self.input.read(&mut into[..most])?;
        self.left -= count as u64;
        self.allowance.0.set(allowed - count as u64);
        Ok(count)
    }
}

fn decompressed(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut magic = [0; 2];
    let read = File::open(path)?.read(&mut magic)?;
    let file = io::BufReader::with_capacity(1 << 16, File::open(path)?);
    match &magic[..read] {
        [0x1f, 0x8b] => Ok(Box::new(flate2::read::MultiGzDecoder::new(file))),
        _ => Ok(Box::new(file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_end_after_a_mebibyte_and_contents_after_the_total() {
        let mut stream = Stream::new(Box::new(io::repeat(0)), 3 << 20);
        let headers = io::copy(&mut stream, &mut io::sink()).unwrap_err();
        assert!(headers.to_string().contains("mebibyte of headers"), "{headers}");
        assert_eq!(stream.left, 2 << 20);
        stream.allowance().content();
        let total = io::copy(&mut stream, &mut io::sink()).unwrap_err();
        assert!(total.to_string().contains("too many bytes"), "{total}");
    }
}
