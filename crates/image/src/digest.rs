//! Content digests: the names of blobs and of layers, and a reader and writer that computes them
//! while bytes pass.

use std::fmt;
use std::io::{self, Read, Write};

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest. Text form: `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(String);

impl Digest {
    /// Parses the text form; `None` for anything else, other algorithms included.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (hex.len() == 64 && hex.bytes().all(is_digit)).then(|| Self(hex.to_owned()))
    }

    /// Computes the digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_hash(&Sha256::digest(bytes))
    }

    fn from_hash(hash: &[u8]) -> Self {
        Self(hex::encode(hash))
    }

    /// Returns the digits alone: the name of the blob's file.
    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// Passes bytes on, and counts and hashes them.
#[derive(Debug)]
pub(crate) struct DigestStream<T> {
    inner: T,
    hasher: Sha256,
    bytes: u64,
}

impl<T> DigestStream<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, hasher: Sha256::new(), bytes: 0 }
    }

    /// Returns the digest and the number of the bytes that have passed.
    pub(crate) fn finish(self) -> (Digest, u64) {
        (Digest::from_hash(&self.hasher.finalize()), self.bytes)
    }

    /// Returns the digest and the number of the bytes that have passed, and the inner reader or writer.
    pub(crate) fn into_parts(self) -> (Digest, u64, T) {
        (Digest::from_hash(&self.hasher.finalize()), self.bytes, self.inner)
    }

    /// Returns the inner reader or writer.
    #[cfg(feature = "pull")]
    pub(crate) fn into_inner(self) -> T {
        self.inner
    }

    fn note(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<R: Read> Read for DigestStream<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        self.note(&into[..count]);
        Ok(count)
    }
}

impl<W: Write> Write for DigestStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.note(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_64_lower_case_digits_of_sha256_and_nothing_else() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
        assert_eq!(Digest::parse(empty), Some(Digest::of(b"")));
        let wrong = [&empty[7..], "sha256:../../x", &empty.to_uppercase(), "sha512:00", &empty[..70]];
        assert!(wrong.iter().all(|text| Digest::parse(text).is_none()));
    }

    #[test]
    fn what_passes_is_hashed_and_counted() {
        let mut passed = DigestStream::new(&b"abc"[..]);
        io::copy(&mut passed, &mut io::sink()).unwrap();
        assert_eq!(passed.finish(), (Digest::of(b"abc"), 3));
    }
}
