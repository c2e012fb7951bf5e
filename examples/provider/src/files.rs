//! The files of a sandbox, as plain calls of the host's file system. They block, so they run on threads that may.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use eyot::{
    ByteStream, CreateDirOptions, DirEntry, Error, FileStat, FileType, RemoveOptions, Result, WriteMode,
    WriteOptions,
};
use futures_util::{StreamExt, TryStreamExt};
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::io::ReaderStream;

/// Runs work that blocks. It is carried to its end even if nobody waits for it any more.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// Opens a regular file at an offset.
pub(crate) fn open(path: &Path, offset: u64) -> io::Result<File> {
    // Opening a FIFO would wait for a writer, and a device might never end.
    regular(&fs::metadata(path)?)?;
    let mut file = File::open(path)?;
    // Past the end there is nothing to read, however far past it.
    file.seek(SeekFrom::Start(offset.min(file.metadata()?.len())))?;
    Ok(file)
}

fn regular(metadata: &Metadata) -> io::Result<()> {
    match metadata {
        _ if metadata.is_dir() => Err(ErrorKind::IsADirectory.into()),
        _ if metadata.is_file() => Ok(()),
        _ => Err(ErrorKind::InvalidInput.into()),
    }
}

/// Fails unless this is a directory.
pub(crate) fn require_directory(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_dir() { Ok(()) } else { Err(ErrorKind::NotADirectory.into()) }
}

/// Streams a file piece by piece.
pub(crate) fn stream(file: File, limit: Option<u64>) -> ByteStream {
    let rest = tokio::fs::File::from_std(file).take(limit.unwrap_or(u64::MAX));
    ReaderStream::with_capacity(rest, 64 << 10).map_err(Error::file).boxed()
}

/// Collects the content of a write in a file of its own. Dropped, it is gone: what fails or is given up changes nothing.
pub(crate) async fn draft(
    folder: PathBuf,
    mut content: ByteStream,
    max_bytes: Option<u64>,
) -> Result<NamedTempFile> {
    let draft = blocking(|| NamedTempFile::new_in(folder)).await.map_err(Error::file)?;
    let file = draft.reopen().map_err(Error::file)?;
    let (mut file, mut size) = (tokio::fs::File::from_std(file), 0);
    while let Some(piece) = content.next().await {
        let piece = piece?;
        size += piece.len() as u64;
        refuse_more_than(max_bytes, size)?;
        file.write_all(&piece).await.map_err(Error::file)?;
    }
    file.flush().await.map_err(Error::file)?;
    Ok(draft)
}

fn refuse_more_than(max_bytes: Option<u64>, size: u64) -> Result<()> {
    match max_bytes {
        Some(most) if size > most => {
            let message = format!("{size} bytes exceed `max_file_bytes` ({most})");
            Err(Error::new(eyot::ErrorKind::TooLarge, message))
        }
        _ => Ok(()),
    }
}

/// Puts a draft into its place, and says how large the file is then.
pub(crate) fn place(draft: NamedTempFile, path: &Path, options: WriteOptions) -> Result<u64> {
    let size = draft.as_file().metadata().map_err(Error::file)?.len();
    let old = match fs::metadata(path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(Error::file(error)),
    };
    match (&old, options.mode) {
        (Some(_), WriteMode::CreateNew) => return Err(Error::file(ErrorKind::AlreadyExists.into())),
        (Some(old), _) => regular(old).map_err(Error::file)?,
        (None, _) => {}
    }
    let placed = match (&old, options.mode) {
        (Some(old), WriteMode::Append) => {
            refuse_more_than(options.max_file_bytes, old.len() + size)?;
            append(draft, path, old.len()).map(|()| old.len() + size)
        }
        _ => {
            let kept = old.map(|old| old.mode() & 0o777);
            let bits = options.permissions.or(kept).unwrap_or(0o644);
            replace(draft, path, bits, options.mode).map(|()| size)
        }
    };
    placed.map_err(Error::file)
}

fn append(mut draft: NamedTempFile, path: &Path, old_size: u64) -> io::Result<()> {
    let mut file = File::options().append(true).open(path)?;
    if let Err(error) = io::copy(draft.as_file_mut(), &mut file) {
        // A part of it would be worse than nothing.
        file.set_len(old_size)?;
        return Err(error);
    }
    Ok(())
}

fn replace(draft: NamedTempFile, path: &Path, bits: u32, mode: WriteMode) -> io::Result<()> {
    draft.as_file().set_permissions(fs::Permissions::from_mode(bits))?;
    let placed = match mode {
        WriteMode::CreateNew => draft.persist_noclobber(path),
        WriteMode::Replace | WriteMode::Append => draft.persist(path),
    };
    placed.map(drop).map_err(|refused| refused.error)
}

pub(crate) fn stat(path: &Path) -> io::Result<FileStat> {
    let (target, itself) = (fs::metadata(path)?, fs::symlink_metadata(path)?);
    Ok(FileStat {
        is_file: target.is_file(),
        is_directory: target.is_dir(),
        is_symbolic_link: Some(itself.is_symlink()),
        size: Some(target.len()),
        modified_ms: Some(target.mtime() * 1000 + target.mtime_nsec() / 1_000_000),
        mode: Some(target.mode() & 0o7777),
    })
}

pub(crate) fn list(path: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let file_type = match entry.file_type()? {
            found if found.is_file() => FileType::File,
            found if found.is_dir() => FileType::Directory,
            found if found.is_symlink() => FileType::Symlink,
            _ => FileType::Other,
        };
        entries.push(DirEntry {
            name: name.to_string_lossy().into_owned(),
            name_bytes: name.to_str().is_none().then(|| name.as_bytes().to_vec()),
            file_type: Some(file_type),
            size: None,
        });
    }
    Ok(entries)
}

pub(crate) fn exists(path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(_) => Ok(true),
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(false),
            _ => Err(error),
        },
    }
}

pub(crate) fn create_dir(path: &Path, options: CreateDirOptions) -> io::Result<()> {
    if options.recursive { fs::create_dir_all(path) } else { fs::create_dir(path) }
}

pub(crate) fn remove(path: &Path, options: RemoveOptions) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() && options.recursive => fs::remove_dir_all(path),
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if options.force && error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes a tree that may be gone already.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    remove(path, RemoveOptions { recursive: true, force: true })
}
