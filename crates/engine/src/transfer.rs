//! Copying a file or a tree from one sandbox to another, whatever their providers: streamed end to end, so that nothing is
//! held whole in memory or on the host, and put in place at the end, so that a failure halfway leaves the target as it
//! was.

mod count;
mod staged;
mod staging_name;

use std::sync::Arc;

use eyot::{
    ByteRange, ByteStream, Error, ErrorKind, FileStat, Limits, Result, Sandbox, SandboxPath, TarInOptions,
    WriteOptions,
};
use futures_util::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};

use count::TarCounter;
use staged::StagingDirectory;

/// A copy between two sandboxes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// A file or a directory in the one sandbox.
    pub from_path: String,
    /// The path in the other sandbox; not a directory to put it in. Parents are made.
    pub to_path: String,
    /// Directories are copied with everything below them; without it a directory is refused with `is_directory`.
    #[serde(default)]
    pub recursive: bool,
}

/// The amount that was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Transferred {
    /// Regular files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Hears the number of bytes of each piece that comes out of the source of a copy.
pub type TransferObserver = Arc<dyn Fn(u64) + Send + Sync>;

/// Copies a file or a tree. A file replaces a file; its permission bits come along. A tree needs a target that is not
/// there, or an empty directory: `already_exists` otherwise. In a tree permission bits and symbolic links are kept as they
/// are; a link that is named itself is followed. `not_found`, `is_directory`, `not_directory`, `permission`, `quota`; an
/// error says which side it comes from.
pub async fn transfer(from: &Sandbox, to: &Sandbox, what: &Transfer) -> Result<Transferred> {
    transfer_observed(from, to, what, nobody_watches()).await
}

/// Copies as [`transfer()`] does, and tells an observer how far it is.
pub async fn transfer_observed(
    from: &Sandbox,
    to: &Sandbox,
    what: &Transfer,
    observer: TransferObserver,
) -> Result<Transferred> {
    let (source, stat) = find(from, what).await?;
    let target = to.resolve_path(&what.to_path)?;
    if stat.is_directory {
        copy_tree((from, &source), &stat, (to, &target), observer).await
    } else {
        copy_file((from, &source), &stat, (to, &target), observer).await
    }
}

/// Returns the observer of a copy that nobody watches.
pub(crate) fn nobody_watches() -> TransferObserver {
    Arc::new(|_| ())
}

/// Looks whether what is to be copied is there and may be, before anything is done for its target, such as a wake.
/// The errors are those of [`transfer()`].
pub async fn check_source(from: &Sandbox, what: &Transfer) -> Result<()> {
    find(from, what).await.map(drop)
}

/// Finds what is to be copied, if it is there and may be.
async fn find(from: &Sandbox, what: &Transfer) -> Result<(SandboxPath, FileStat)> {
    let source = from.resolve_path(&what.from_path)?;
    let stat = from.stat(source.as_str()).await?;
    if stat.is_directory && !what.recursive {
        Err(is_directory(from, &what.from_path))
    } else {
        Ok((source, stat))
    }
}

/// A path in a sandbox.
type SandboxLocation<'a> = (&'a Sandbox, &'a SandboxPath);

fn is_directory(sandbox: &Sandbox, path: &str) -> Error {
    let message = format!("`{path}` in sandbox `{}` is a directory", sandbox.name());
    Error::new(ErrorKind::IsDirectory, message)
        .with_hint("say `recursive` to copy it with everything below it")
}

async fn copy_file(
    (from, source): SandboxLocation<'_>,
    stat: &FileStat,
    (to, target): SandboxLocation<'_>,
    observer: TransferObserver,
) -> Result<Transferred> {
    let content = from.read_stream(source.as_str(), ByteRange::default()).await?;
    let content = content.inspect_ok(move |bytes| observer(bytes.len() as u64)).boxed();
    let options = WriteOptions { permissions: stat.mode.map(|mode| mode & 0o777), ..WriteOptions::default() };
    let bytes = to.write_stream(target.as_str(), content, options).await?;
    Ok(Transferred { files: 1, bytes })
}

/// Unpacks the tree near its target and moves it there once it is complete.
async fn copy_tree(
    (from, source): SandboxLocation<'_>,
    stat: &FileStat,
    (to, target): SandboxLocation<'_>,
    observer: TransferObserver,
) -> Result<Transferred> {
    check_tree((from, source), (to, target))?;
    check_target(to, target).await?;
    let staged = StagingDirectory::make(to, target).await?;
    let copied = unpack((from, source), to, &staged, observer).await;
    let placed = match copied {
        Ok(copied) => staged.put(source.file_name(), stat, target).await.map(|()| copied),
        Err(error) => Err(error),
    };
    let removed = staged.remove().await;
    let copied = placed?;
    removed.map(|()| copied)
}

fn check_tree((from, source): SandboxLocation<'_>, (to, target): SandboxLocation<'_>) -> Result<()> {
    if source.is_root() || target.is_root() {
        return Err(Error::invalid("path", "must not be a sandbox's whole root, on either side"));
    }
    let is_inside = from.id() == to.id() && target.strip_prefix(source).is_some();
    if is_inside { Err(into_itself()) } else { Ok(()) }
}

fn into_itself() -> Error {
    Error::invalid("to_path", "must not lie inside of the directory that is copied")
}

/// Nothing, or an empty directory.
async fn check_target(to: &Sandbox, target: &SandboxPath) -> Result<()> {
    let taken = match to.stat(target.as_str()).await {
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(error),
        Ok(stat) => !stat.is_directory || !to.list(target.as_str()).await?.is_empty(),
    };
    if taken {
        let message = format!("`{target}` in sandbox `{}` is there already, and not empty", to.name());
        Err(Error::new(ErrorKind::AlreadyExists, message)
            .with_hint("a tree is copied to a path that is free: name another one, or remove what is there"))
    } else {
        Ok(())
    }
}

async fn unpack(
    (from, source): SandboxLocation<'_>,
    to: &Sandbox,
    staged: &StagingDirectory,
    observer: TransferObserver,
) -> Result<Transferred> {
    // Links and shared folders can lead a target inside of its source, where it would be packed while it grows.
    let counter = TarCounter::watching_for(staged.name());
    let counted = counter.clone();
    let tar: ByteStream = from
        .tar_out(source.as_str())
        .await?
        .inspect_ok(move |bytes| observer(bytes.len() as u64))
        .map(move |piece| {
            piece.and_then(|bytes| if counted.see(&bytes) { Ok(bytes) } else { Err(into_itself()) })
        })
        .boxed();
    // The tree is as large as its sandbox let it become; what the target can hold is the target's to say.
    let options = TarInOptions { max_total_bytes: Limits::MAX, max_entries: Limits::MAX };
    match to.tar_in(staged.path().as_str(), tar, options).await {
        Err(_) if counter.has_met() => Err(into_itself()),
        unpacked => unpacked.map(|_| counter.seen()),
    }
}
