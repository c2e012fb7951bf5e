//! Changing a file from what it holds: read, change and write, with no other change in between.
//!
//! That holds among all who change files this way in this process. Commands inside, and other processes that have the
//! sandbox open, are not held up; what they read is the old or the new file, never a mixture.

use bytes::{Bytes, BytesMut};
use eyot::internal::SandboxInternals;
use eyot::{ByteRange, Error, ErrorKind, Result, Sandbox, WriteOptions};
use futures_util::StreamExt;

use super::locks::lock_changes;

/// Replaces a file's content by what `change` makes of it, and says how large it is then. Nothing is written if
/// `change` fails. `too_large` if the file has, or would get, more than `max_bytes`.
pub(super) async fn change_file(
    sandbox: &Sandbox,
    path: &str,
    max_bytes: u64,
    change: impl FnOnce(Bytes) -> Result<Bytes> + Send,
) -> Result<u64> {
    let _guard = lock_changes(sandbox).await;
    let changed = change(read_at_most(sandbox, path, max_bytes).await?)?;
    let options = WriteOptions { max_file_bytes: Some(max_bytes), ..WriteOptions::default() };
    sandbox.write_with(path, changed, options).await
}

/// Reads a whole file that has no more than `max_bytes`; a larger one is `too_large` before it is all here.
pub(super) async fn read_at_most(sandbox: &Sandbox, path: &str, max_bytes: u64) -> Result<Bytes> {
    let mut stream = sandbox.read_stream(path, ByteRange::default()).await?;
    let mut whole = BytesMut::new();
    while let Some(piece) = stream.next().await {
        whole.extend_from_slice(&piece?);
        if whole.len() as u64 > max_bytes {
            let why = format!("it has more than {max_bytes} bytes, the limit");
            return Err(sandbox.failed("read file", path)(Error::new(ErrorKind::TooLarge, why)));
        }
    }
    Ok(whole.freeze())
}
