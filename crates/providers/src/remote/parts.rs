//! A file beyond `limits.max_file_bytes`, read in parts that the server gives: its limit is one of each answer. Whether the
//! whole may be read is for the handle on this side to say.

use eyot::{ByteRange, ByteStream, ConfinedPath, Result};
use futures_util::StreamExt;
use futures_util::stream::try_unfold;

use super::driver::RemoteDriver;

/// How far a read has come.
struct Parts {
    driver: RemoteDriver,
    file: ConfinedPath,
    /// What is yet to be asked for.
    rest: ByteRange,
    part: ByteStream,
    /// How much of the part is yet to come, in bytes; if the part ends before, so does the file.
    left: u64,
}

/// Reads a range of a file, at most `most` bytes of it with each request.
pub(super) async fn read(
    driver: RemoteDriver,
    file: ConfinedPath,
    range: ByteRange,
    most: u64,
) -> Result<ByteStream> {
    // A server that gives nothing says so to whoever asks for a byte.
    let most = most.max(1);
    let first = ByteRange { offset: range.offset, limit: Some(size(range, most)) };
    let part = driver.read_part(&file, first).await?;
    let left = size(range, most);
    let parts = Parts { driver, file, rest: behind(range, left), part, left };
    Ok(try_unfold(parts, move |parts| parts.next(most)).boxed())
}

/// How much of a range is asked for at once.
fn size(range: ByteRange, most: u64) -> u64 {
    range.limit.unwrap_or(most).min(most)
}

/// What follows the first bytes of a range.
fn behind(range: ByteRange, bytes: u64) -> ByteRange {
    ByteRange { offset: range.offset.saturating_add(bytes), limit: range.limit.map(|limit| limit - bytes) }
}

impl Parts {
    async fn next(mut self, most: u64) -> Result<Option<(bytes::Bytes, Self)>> {
        loop {
            if let Some(piece) = self.part.next().await {
                let piece = piece?;
                self.left = self.left.saturating_sub(piece.len() as u64);
                return Ok(Some((piece, self)));
            }
            let size = size(self.rest, most);
            if self.left > 0 || size == 0 {
                return Ok(None);
            }
            let range = ByteRange { offset: self.rest.offset, limit: Some(size) };
            self.part = self.driver.read_part(&self.file, range).await?;
            (self.left, self.rest) = (size, behind(self.rest, size));
        }
    }
}
