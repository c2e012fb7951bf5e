//! Writing, with Flue's rule for parents: one write; if it fails, the parent directories, whose own failure does not
//! matter; and exactly one more write, whose failure does.

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::Sandbox;
use super::replay::Replay;
use crate::capabilities::Capability;
use crate::driver::ByteStream;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{CreateDirOptions, WriteMode, WriteOptions};
use crate::observer::FileWriteEvent;
use crate::path::ConfinedPath;

/// The content of a write: bytes that can be sent as often as needed, or a stream.
pub(crate) enum Content {
    Bytes(Bytes),
    Stream(ByteStream),
}

/// The setuid and the setgid bit.
const SET_ID: u32 = 0o6000;

/// Refuses setuid and setgid bits: a file that a sandbox leaves on its host must grant no rights.
fn check_permissions(options: &WriteOptions) -> Result<()> {
    if options.permissions.is_some_and(|bits| bits & SET_ID != 0) {
        return Err(Error::invalid("permissions", "must not have the setuid or the setgid bit"));
    }
    Ok(())
}

impl Sandbox {
    /// Replaces a file as a whole, making missing parent directories.
    #[doc(alias = "writeFile")]
    pub async fn write(&self, path: &str, content: impl Into<Bytes> + Send) -> Result<()> {
        self.write_with(path, content, WriteOptions::default()).await?;
        Ok(())
    }

    /// Writes a file, making missing parent directories, and says how large it is then. `too_large` beyond the spec's or
    /// the call's `max_file_bytes`, `already_exists` with [`WriteMode::CreateNew`], `is_directory`, `permission`.
    pub async fn write_with(
        &self,
        path: &str,
        content: impl Into<Bytes> + Send,
        options: WriteOptions,
    ) -> Result<u64> {
        let place = self.place(path)?;
        self.write_at(&place, place.path.as_str(), Content::Bytes(content.into()), options).await
    }

    /// The same from a stream, in bounded memory. If the stream fails, nothing is changed (an append keeps what came
    /// before) and its error is returned. Missing parents are made as long as the driver noticed them within the first
    /// MiB.
    pub async fn write_stream(&self, path: &str, content: ByteStream, options: WriteOptions) -> Result<u64> {
        let place = self.place(path)?;
        self.write_at(&place, place.path.as_str(), Content::Stream(content), options).await
    }

    /// Writes `content` to `place`, which the error and the observer call `shown`.
    pub(crate) async fn write_at(
        &self,
        place: &ConfinedPath,
        shown: &str,
        content: Content,
        options: WriteOptions,
    ) -> Result<u64> {
        if options.mode == WriteMode::Append {
            self.require(Capability::Append, "write", &["append"])?;
        }
        check_permissions(&options)?;
        let options = self.write_limits(options);
        let written = match content {
            Content::Bytes(bytes) => self.write_bytes(place, bytes, options).await,
            Content::Stream(stream) => self.write_replayable(place, &Replay::new(stream), options).await,
        };
        let WriteTotals { bytes, file_size } = written.map_err(self.failed("write file", shown))?;
        if let Some(observer) = self.observer() {
            let event = FileWriteEvent { sandbox: self.event().clone(), path: shown.to_owned(), size: bytes };
            observer.file_written(&event).await?;
        }
        Ok(file_size)
    }

    /// The stricter of the call's and the spec's limit.
    fn write_limits(&self, options: WriteOptions) -> WriteOptions {
        let limits = [options.max_file_bytes, self.max_file_bytes()];
        WriteOptions { max_file_bytes: limits.into_iter().flatten().min(), ..options }
    }

    async fn write_bytes(
        &self,
        place: &ConfinedPath,
        bytes: Bytes,
        options: WriteOptions,
    ) -> Result<WriteTotals> {
        let size = bytes.len() as u64;
        if let Some(limit) = options.max_file_bytes.filter(|limit| size > *limit) {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("{size} bytes exceed `max_file_bytes` ({limit})"),
            ));
        }
        let content = || stream::once(std::future::ready(Ok(bytes.clone()))).boxed();
        let file_size = match self.driver().write(place, content(), options).await {
            Err(error) if parent_may_be_missing(&error) => {
                let unmade = self.make_parent(place).await.err();
                let second = self.driver().write(place, content(), options).await;
                second.map_err(|error| with_parent(error, unmade))?
            }
            first => first?,
        };
        Ok(WriteTotals { bytes: size, file_size })
    }

    async fn write_replayable(
        &self,
        place: &ConfinedPath,
        replay: &Replay,
        options: WriteOptions,
    ) -> Result<WriteTotals> {
        let file_size = match self.driver().write(place, replay.reader(), options).await {
            Err(error) if parent_may_be_missing(&error) => {
                let Some(again) = replay.rewind() else {
                    return Err(error);
                };
                let unmade = self.make_parent(place).await.err();
                let second = self.driver().write(place, again, options).await;
                second.map_err(|error| with_parent(error, unmade))?
            }
            first => first?,
        };
        Ok(WriteTotals { bytes: replay.total(), file_size })
    }

    /// Makes the parent directories.
    async fn make_parent(&self, place: &ConfinedPath) -> Result<()> {
        self.driver().create_dir(&place.parent(), CreateDirOptions { recursive: true }).await
    }
}

/// Returns what was wrong with a second write. Where it found no parent, because none may be made, that is the reason.
fn with_parent(error: Error, unmade: Option<Error>) -> Error {
    match unmade {
        Some(unmade) if error.kind() == ErrorKind::NotFound && unmade.kind() == ErrorKind::Permission => {
            unmade
        }
        _ => error,
    }
}

/// The number of bytes that were sent, and the size of the file after that.
struct WriteTotals {
    bytes: u64,
    file_size: u64,
}

/// Tells whether a failure may come of a missing parent. Some kinds never do: they promise that
/// nothing was or will be changed, or the backend does not answer and is not asked twice more.
fn parent_may_be_missing(error: &Error) -> bool {
    let others = [
        ErrorKind::Destroyed,
        ErrorKind::Unsupported,
        ErrorKind::TooLarge,
        ErrorKind::Cancelled,
        ErrorKind::Unavailable,
    ];
    !others.contains(&error.kind())
}
