//! A reader of archives with a bound on what stands between two entries, since `tar` reads names whole, however long.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// The most that may stand between two entries: names and such.
pub(crate) const MAX_BETWEEN_BYTES: u64 = 64 << 20;

/// A reader that may be read so far.
pub(crate) struct TarLimitReader<R> {
    pub inner: R,
    pub left: Rc<Cell<u64>>,
}

impl<R: Read> Read for TarLimitReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::Error::other("too much between two entries"));
        }
        let len = self.inner.read(buffer)?;
        self.left.set(self.left.get().saturating_sub(len as u64));
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_as_the_limit_is_read_and_one_byte_more_is_refused() {
        let of = |left: u64| TarLimitReader { inner: &[0; 8][..], left: Rc::new(Cell::new(left)) };
        assert_eq!(of(8).read(&mut [0; 8]).unwrap(), 8);
        let mut reader = of(7);
        assert_eq!(reader.read(&mut [0; 7]).unwrap(), 7);
        assert!(reader.read(&mut [0; 1]).is_err());
        assert!(io::copy(&mut of(9), &mut io::sink()).is_ok());
    }
}
