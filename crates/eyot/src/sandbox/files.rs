//! Files but for writing: read, describe, list, make, remove, move. Each resolves its path, asks the driver once, and
//! says in an error what was being done where.

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;

use super::Sandbox;
use crate::driver::ByteStream;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{ByteRange, CreateDirOptions, DirEntry, FileStat, RemoveOptions};
use crate::path::ConfinedPath;

/// The most that [`Sandbox::read`] holds in memory, 1 GiB: a sparse file claims to be any size.
pub const MAX_BUFFERED_READ_BYTES: u64 = 1 << 30;

impl Sandbox {
    /// Reads a whole regular file, following symbolic links. `not_found`, `is_directory`; `invalid` for a FIFO, a socket
    /// or a device; `too_large` beyond the spec's `limits.max_file_bytes` or [`MAX_BUFFERED_READ_BYTES`].
    #[doc(alias = "readFileBuffer")]
    pub async fn read(&self, path: &str) -> Result<Bytes> {
        let place = self.place(path)?;
        self.read_at(&place, path).await
    }

    /// The same as text. Invalid UTF-8 becomes U+FFFD.
    #[doc(alias = "readFile")]
    pub async fn read_text(&self, path: &str) -> Result<String> {
        let bytes = self.read(path).await?;
        Ok(match String::from_utf8(bytes.into()) {
            Ok(text) => text,
            Err(invalid) => String::from_utf8_lossy(invalid.as_bytes()).into_owned(),
        })
    }

    /// Reads a part of a file piece by piece, in bounded memory. The stream fails with `too_large` where it would pass
    /// the spec's `limits.max_file_bytes`.
    pub async fn read_stream(&self, path: &str, range: ByteRange) -> Result<ByteStream> {
        let place = self.place(path)?;
        let limit = self.max_file_bytes().unwrap_or(u64::MAX);
        self.read_stream_at(&place, path, range, limit).await
    }

    /// Says what is known of a file; `not_found` if it is missing or a dangling link. See [`FileStat`].
    pub async fn stat(&self, path: &str) -> Result<FileStat> {
        let place = self.place(path)?;
        self.driver().stat(&place).await.map_err(self.failed("stat", path))
    }

    /// Lists a directory, sorted by name, dot files included, not what is below its directories. `not_found`,
    /// `not_directory`.
    #[doc(alias = "readdir")]
    pub async fn list(&self, path: &str) -> Result<Vec<DirEntry>> {
        Ok(DirEntry::sorted(self.list_unsorted(path).await?))
    }

    /// The same in the directory's own order, which is no order that anybody promises.
    pub async fn list_unsorted(&self, path: &str) -> Result<Vec<DirEntry>> {
        let place = self.place(path)?;
        self.driver().list(&place).await.map_err(self.failed("list directory", path))
    }

    /// Returns whether something is there. Missing, dangling and beneath a file are all `false`.
    pub async fn exists(&self, path: &str) -> Result<bool> {
        let place = self.place(path)?;
        self.driver().exists(&place).await.map_err(self.failed("look for", path))
    }

    /// Makes a directory. Without `recursive`: `already_exists`, or `not_found` for a missing parent.
    #[doc(alias = "mkdir")]
    pub async fn create_dir(&self, path: &str, options: CreateDirOptions) -> Result<()> {
        let place = self.place(path)?;
        self.driver().create_dir(&place, options).await.map_err(self.failed("create directory", path))
    }

    /// Removes a file, a symbolic link (not its target), or with `recursive` a directory. `not_found` unless `force`.
    #[doc(alias = "rm")]
    pub async fn remove(&self, path: &str, options: RemoveOptions) -> Result<()> {
        let place = self.place(path)?;
        self.driver().remove(&place, options).await.map_err(self.failed("remove", path))
    }

    /// Moves a file or a directory, replacing a file (or an empty directory) that is in the way.
    pub async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (source, target) = (self.place(from)?, self.place(to)?);
        let renamed = self.driver().rename(&source, &target).await;
        renamed.map_err(self.failed("rename", format_args!("{from}` to `{to}")))
    }

    pub(crate) async fn read_at(&self, place: &ConfinedPath, shown: &str) -> Result<Bytes> {
        let limit = self.max_file_bytes().unwrap_or(u64::MAX).min(MAX_BUFFERED_READ_BYTES);
        let mut stream = self.read_stream_at(place, shown, ByteRange::default(), limit).await?;
        let Some(first) = stream.next().await else {
            return Ok(Bytes::new());
        };
        let first = first?;
        let Some(second) = stream.next().await else {
            return Ok(first);
        };
        let mut pieces = vec![first, second?];
        while let Some(bytes) = stream.next().await {
            pieces.push(bytes?);
        }
        // Put together once: a buffer that grows copies everything again and again.
        let mut whole = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
        pieces.into_iter().for_each(|piece| whole.extend_from_slice(&piece));
        Ok(whole.freeze())
    }

    /// A file's bytes, failing where more than `limit` of them would come.
    pub(crate) async fn read_stream_at(
        &self,
        place: &ConfinedPath,
        shown: &str,
        range: ByteRange,
        limit: u64,
    ) -> Result<ByteStream> {
        let stream = self.driver().read(place, range).await.map_err(self.failed("read file", shown))?;
        let (sandbox, shown, mut total) = (self.clone(), shown.to_owned(), 0_u64);
        let checked = stream.map(move |bytes| {
            let bytes = bytes.map_err(sandbox.failed("read file", &shown))?;
            total += bytes.len() as u64;
            if total > limit { Err(sandbox.failed("read file", &shown)(too_large(limit))) } else { Ok(bytes) }
        });
        Ok(fused_at_error(checked.boxed()))
    }
}

/// The same stream, over (and its source dropped) after its first error.
fn fused_at_error(stream: ByteStream) -> ByteStream {
    futures_util::stream::unfold(Some(stream), async |stream| {
        let mut stream = stream?;
        let item = stream.next().await?;
        let rest = item.is_ok().then_some(stream);
        Some((item, rest))
    })
    // A reader may poll once more after the end.
    .fuse()
    .boxed()
}

fn too_large(limit: u64) -> Error {
    Error::new(ErrorKind::TooLarge, format!("it has more than {limit} bytes, the limit"))
}
