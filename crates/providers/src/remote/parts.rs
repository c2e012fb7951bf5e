//! Reading a file beyond `limits.max_file_bytes` in parts. The server limits each answer; the limit
//! for the whole file is checked by the handle on this side.

use eyot::{ByteRange, ByteStream, ConfinedPath, Result};
use futures_util::StreamExt;
use futures_util::stream::try_unfold;

use super::driver::RemoteDriver;

/// The progress of a read.
struct Parts {
    driver: RemoteDriver,
    file: ConfinedPath,
    /// The range that is not requested yet.
    rest: ByteRange,
    part: ByteStream,
    /// The bytes of the current part that have not arrived. If the part ends before, the file has
    /// ended.
    left: u64,
}

/// Reads a range of a file. Each request asks for at most `most` bytes.
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

/// Returns the size of the next part, in bytes.
fn size(range: ByteRange, most: u64) -> u64 {
    range.limit.unwrap_or(most).min(most)
}

/// Returns the rest of a range, after its first `bytes`.
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
