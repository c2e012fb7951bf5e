//! A buffer for the content of an output file.

use std::io::{self, Write};

/// A buffer for the content of a file, with a limit.
pub(super) struct FileBytes {
    pub bytes: Vec<u8>,
    pub room: u64,
}

impl Write for FileBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.bytes.len() + bytes.len()) as u64 > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
