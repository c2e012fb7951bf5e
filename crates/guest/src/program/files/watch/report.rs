//! The events for a client, gathered into pieces that are each a whole message.

use super::super::failure::FileError;
use crate::program::call_io::CallIo;
use crate::protocol::{WatchKind, WatchRecord, encode};

/// The largest encoded piece.
const MAX_PIECE_BYTES: usize = 60_000;
/// More than what a record's encoding takes besides its paths.
const OVERHEAD_BYTES: usize = 24;

/// The events that are to be sent.
#[derive(Debug, Default)]
pub struct WatchReport {
    records: Vec<WatchRecord>,
    bytes: usize,
}

impl WatchReport {
    /// Adds something that happened. A file that is written in many small writes is modified once.
    pub fn add(&mut self, record: WatchRecord, io: &mut dyn CallIo) -> Result<(), FileError> {
        if record.kind == WatchKind::Modified && self.records.last() == Some(&record) {
            return Ok(());
        }
        let bytes = OVERHEAD_BYTES + record.path.len() + record.from.as_ref().map_or(0, Vec::len);
        if self.bytes + bytes > MAX_PIECE_BYTES {
            self.send(io)?;
        }
        self.bytes += bytes;
        self.records.push(record);
        Ok(())
    }

    /// Tells what was added, and waits while the client takes nothing.
    pub fn send(&mut self, io: &mut dyn CallIo) -> Result<(), FileError> {
        if self.records.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        Ok(io.send(&encode(&std::mem::take(&mut self.records)))?)
    }

    /// Throws away what was not told yet.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}
