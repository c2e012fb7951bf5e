//! The driver's files: each call is a script in the sandbox, so that the sandbox's user has exactly the
//! rights of the commands, and a file is replaced as a whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use eyot::{
    ByteRange, ByteStream, ConfinedPath, CreateDirOptions, DirEntry, Error, ErrorKind, FileStat, FileType,
    RemoveOptions, Result, SandboxOperationUnsupported, SandboxPath, WriteMode, WriteOptions,
};
use futures_util::StreamExt;
use uuid::Uuid;

/// A sandbox in which the scripts of `files.sh` run, as its user.
#[async_trait]
pub(crate) trait FileScripts: Send + Sync + 'static {
    /// Returns the provider's name.
    fn provider(&self) -> &'static str;

    /// Runs an operation, and returns what it printed.
    async fn answer(&self, operation: &str, arguments: &[&str]) -> Result<Vec<u8>>;

    /// Streams what an operation prints. Dropping the stream ends it.
    async fn streamed(self: Arc<Self>, operation: &str, arguments: &[&str]) -> Result<ByteStream>;

    /// Writes a new file, whose directory is there. One whose content fails may be left.
    async fn upload(&self, path: &str, content: ByteStream) -> Result<()>;
}

/// The type of a file in the bits of its mode.
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

/// Returns the path, which nothing confines: no vendor has a call that keeps it beneath a directory.
pub(super) fn free<'a>(
    scripts: &impl FileScripts,
    operation: &str,
    path: &'a ConfinedPath,
) -> Result<&'a SandboxPath> {
    match path.beneath {
        None => Ok(&path.path),
        Some(_) => Err(SandboxOperationUnsupported::new(operation, scripts.provider(), &["beneath"]).into()),
    }
}

pub(crate) async fn read<S: FileScripts>(
    scripts: &Arc<S>,
    file: &ConfinedPath,
    range: ByteRange,
) -> Result<ByteStream> {
    let path = free(&**scripts, "read", file)?;
    // A shell counts to 2^63, and no file is as long.
    let from = range.offset.min(i64::MAX as u64 - 1) + 1;
    let limit = range.limit.map_or("-".to_owned(), |limit| limit.min(i64::MAX as u64).to_string());
    Arc::clone(scripts).streamed("read", &[path.as_str(), &from.to_string(), &limit]).await
}

pub(crate) async fn stat(scripts: &impl FileScripts, file: &ConfinedPath) -> Result<FileStat> {
    let path = free(scripts, "stat", file)?;
    let told = scripts.answer("stat", &[path.as_str()]).await?;
    let text = String::from_utf8_lossy(&told);
    // It was removed just after it was found.
    let gone = || Error::new(ErrorKind::NotFound, "no such file or directory");
    let facts: Vec<&str> = text.split_whitespace().collect();
    let [link, mode, size, modified] = facts.as_slice() else { return Err(gone()) };
    let mode = u32::from_str_radix(mode, 16).map_err(|_| gone())?;
    Ok(FileStat {
        is_file: mode & TYPE == REGULAR,
        is_directory: mode & TYPE == DIRECTORY,
        is_symbolic_link: Some(*link == "l"),
        size: size.parse().ok(),
        modified_ms: milliseconds(modified),
        mode: Some(mode & 0o7777),
    })
}

/// Reads a time such as `1700000000.123`.
fn milliseconds(time: &str) -> Option<i64> {
    let (seconds, rest) = time.split_once('.')?;
    let sign = if seconds.starts_with('-') { -1 } else { 1 };
    Some(seconds.parse::<i64>().ok()? * 1000 + sign * rest.parse::<i64>().ok()?)
}

pub(crate) async fn list(scripts: &impl FileScripts, directory: &ConfinedPath) -> Result<Vec<DirEntry>> {
    let path = free(scripts, "list", directory)?;
    let told = scripts.answer("list", &[path.as_str()]).await?;
    told.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).map(entry).collect()
}

fn entry(told: &[u8]) -> Result<DirEntry> {
    let mut parts = told.splitn(3, |byte| *byte == b' ');
    let (Some(kind), Some(size), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Error::new(ErrorKind::Unavailable, "the sandbox's answer can't be read"));
    };
    let file_type = match kind {
        b"f" => Some(FileType::File),
        b"d" => Some(FileType::Directory),
        b"l" => Some(FileType::Symlink),
        b"p" | b"s" | b"b" | b"c" => Some(FileType::Other),
        _ => None,
    };
    let size = str::from_utf8(size).ok().and_then(|size| size.parse().ok());
    let text = String::from_utf8_lossy(name);
    let name_bytes = str::from_utf8(name).is_err().then(|| name.to_vec());
    let size = size.filter(|_| file_type == Some(FileType::File));
    Ok(DirEntry { name: text.into_owned(), name_bytes, file_type, size })
}

pub(crate) async fn exists(scripts: &impl FileScripts, file: &ConfinedPath) -> Result<bool> {
    let path = free(scripts, "exists", file)?;
    match scripts.answer("exists", &[path.as_str()]).await {
        Ok(_) => Ok(true),
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotDirectory | ErrorKind::Invalid) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

pub(crate) async fn create_dir(
    scripts: &impl FileScripts,
    directory: &ConfinedPath,
    options: CreateDirOptions,
) -> Result<()> {
    let path = free(scripts, "create_dir", directory)?;
    scripts.answer("mkdir", &[path.as_str(), yes(options.recursive)]).await.map(drop)
}

pub(crate) async fn remove(
    scripts: &impl FileScripts,
    file: &ConfinedPath,
    options: RemoveOptions,
) -> Result<()> {
    let path = free(scripts, "remove", file)?;
    if path.is_root() {
        return Err(Error::new(ErrorKind::Invalid, "the root directory can't be removed"));
    }
    match scripts.answer("remove", &[path.as_str(), yes(options.recursive)]).await {
        Err(error) if options.force && error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map(drop),
    }
}

pub(crate) async fn rename(scripts: &impl FileScripts, from: &ConfinedPath, to: &ConfinedPath) -> Result<()> {
    let (from, to) = (free(scripts, "rename", from)?, free(scripts, "rename", to)?);
    scripts.answer("rename", &[from.as_str(), to.as_str()]).await.map(drop)
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

/// An uploaded file that is not in its place yet. It is removed when it is dropped.
pub(crate) struct StagedUpload<S: FileScripts> {
    scripts: Arc<S>,
    pub path: String,
}

impl<S: FileScripts> StagedUpload<S> {
    pub fn new(scripts: &Arc<S>) -> Self {
        Self { scripts: Arc::clone(scripts), path: format!("/tmp/.eyot-{}", Uuid::new_v4().simple()) }
    }

    /// Leaves the rest to the script that has taken it, and that has removed it.
    pub fn finish(mut self) {
        self.path.clear();
    }
}

impl<S: FileScripts> Drop for StagedUpload<S> {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.path);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if path.is_empty() {
            return;
        }
        let scripts = Arc::clone(&self.scripts);
        runtime.spawn(async move {
            if let Err(error) = scripts.answer("remove", &[&path, "no"]).await
                && error.kind() != ErrorKind::NotFound
            {
                tracing::debug!(%error, "an upload that is not needed could not be removed");
            }
        });
    }
}

pub(crate) async fn write<S: FileScripts>(
    scripts: &Arc<S>,
    file: &ConfinedPath,
    content: ByteStream,
    options: WriteOptions,
) -> Result<u64> {
    let path = free(&**scripts, "write", file)?;
    let upload = StagedUpload::new(scripts);
    let failure = Arc::new(std::sync::Mutex::new(None));
    let content = counted(content, options.max_file_bytes, Arc::clone(&failure));
    let uploaded = scripts.upload(&upload.path, content).await;
    let failed = failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    if let Some(failed) = failed {
        return Err(failed);
    }
    uploaded?;
    let mode = match options.mode {
        WriteMode::Replace => "replace",
        WriteMode::Append => "append",
        WriteMode::CreateNew => "create_new",
    };
    let permissions = options.permissions.map_or("-".to_owned(), |bits| format!("{bits:o}"));
    let most = options.max_file_bytes.map_or("-".to_owned(), |most| most.to_string());
    let told = scripts.answer("commit", &[path.as_str(), mode, &permissions, &most, &upload.path]).await?;
    upload.finish();
    let size = str::from_utf8(&told).ok().and_then(|size| size.trim().parse().ok());
    size.ok_or_else(|| Error::new(ErrorKind::Internal, "a script of Eyot's failed in the sandbox"))
}

/// Passes content on, up to the limit. A failure is kept in `failure`, since that of the request says less.
fn counted(
    content: ByteStream,
    most: Option<u64>,
    failure: Arc<std::sync::Mutex<Option<Error>>>,
) -> ByteStream {
    let count = AtomicU64::new(0);
    let passed = content.map(move |piece| {
        let piece = piece.and_then(|bytes: Bytes| {
            let length = bytes.len() as u64;
            let total = count.fetch_add(length, Ordering::Relaxed) + length;
            if most.is_some_and(|most| total > most) {
                return Err(Error::new(ErrorKind::TooLarge, "the file would be larger than the limit"));
            }
            Ok(bytes)
        });
        piece.map_err(|error| {
            let told = Error::new(ErrorKind::Cancelled, "the upload was given up");
            *failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
            told
        })
    });
    passed.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_name_may_have_spaces_and_bytes_that_are_no_text() {
        let odd = entry(b"f 5 a b\xff").unwrap();
        assert_eq!((odd.name.as_str(), odd.size), ("a b\u{fffd}", Some(5)));
        assert_eq!(odd.name_bytes.as_deref(), Some(&b"a b\xff"[..]));
        assert_eq!(entry(b"d 4096 x").unwrap().file_type, Some(FileType::Directory));
        assert!(entry(b"nothing").is_err());
    }

    #[test]
    fn a_time_has_milliseconds() {
        assert_eq!(milliseconds("1700000000.123"), Some(1_700_000_000_123));
        assert_eq!(milliseconds("soon"), None);
    }
}
