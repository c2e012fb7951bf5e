//! Copies from a sandbox to the host.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use eyot::{ByteRange, ByteStream, Error, ErrorKind, FileStat};
use futures_util::StreamExt;
use tempfile::NamedTempFile;

use super::tree::read_tree;
use super::unpack::TreeUnpacker;
use super::{ByteMeter, CopyResult, Inside, joined, means_content, not_a_directory, pipe, too_large};
use crate::errors::Failure;
use crate::partial::partial_file;
use crate::stdio::Sink;

/// Copies a file or a tree to `destination`.
pub async fn outward(
    from: &Inside<'_>,
    destination: &Path,
    max_bytes: u64,
    meter: &ByteMeter,
) -> Result<CopyResult, Failure> {
    let stat = from.sandbox.stat(from.path).await?;
    let resolved = from.resolved()?;
    let name = (!means_content(from.path)).then(|| resolved.file_name().to_owned());
    let target = target(destination, name.as_deref(), stat.is_directory)?;
    if stat.is_directory {
        tree(from, target, max_bytes, meter).await
    } else {
        file(from, &target, stat, max_bytes, meter).await
    }
}

/// Copies a file to our standard output.
pub async fn outward_stdout(
    from: &Inside<'_>,
    max_bytes: u64,
    meter: &ByteMeter,
) -> Result<CopyResult, Failure> {
    let stat = from.sandbox.stat(from.path).await?;
    if stat.is_directory {
        let error = Error::new(ErrorKind::IsDirectory, format!("`{}` is a directory", from.path));
        return Err(error.with_hint("copy it to a directory, or use `eyot exec NAME -- tar c PATH`").into());
    }
    let mut content = content(from, &stat, max_bytes, meter).await?;
    let mut stdout = Sink::stdout()?;
    while let Some(bytes) = content.next().await {
        let mut bytes = bytes?;
        check_size(meter, max_bytes)?;
        stdout.write(&mut bytes).await?;
    }
    Ok(CopyResult { bytes: meter.bytes(), files: 1, skipped: Vec::new() })
}

/// Returns the path of a copy to `destination`. `name` is the source's; `None`: the content of a
/// directory is copied.
fn target(destination: &Path, name: Option<&str>, source_is_directory: bool) -> Result<PathBuf, Failure> {
    let shown = destination.display();
    match fs::metadata(destination) {
        Ok(found) if found.is_dir() => Ok(name.map_or(destination.to_owned(), |name| destination.join(name))),
        Ok(_) if source_is_directory => Err(not_a_directory(&shown).into()),
        Ok(_) => Ok(destination.to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::host(format!("look at `{shown}`"), error))
        }
        Err(error) if !source_is_directory && destination.as_os_str().as_encoded_bytes().ends_with(b"/") => {
            Err(Failure::host(format!("write into `{shown}`"), error))
        }
        Err(_) => Ok(destination.to_owned()),
    }
}

async fn content(
    from: &Inside<'_>,
    stat: &FileStat,
    max_bytes: u64,
    meter: &ByteMeter,
) -> Result<ByteStream, Failure> {
    let size = stat.size.unwrap_or_default();
    if size > max_bytes {
        return Err(too_large(max_bytes).into());
    }
    meter.expect(size);
    Ok(meter.count(from.sandbox.read_stream(from.path, ByteRange::default()).await?))
}

/// Checks the number of bytes so far: the file may grow while it is read.
fn check_size(meter: &ByteMeter, max_bytes: u64) -> Result<(), Failure> {
    if meter.bytes() > max_bytes { Err(too_large(max_bytes).into()) } else { Ok(()) }
}

/// Copies into a new file beside the destination, which replaces it at the end: readers see the old
/// file or the new one.
async fn file(
    from: &Inside<'_>,
    target: &Path,
    stat: FileStat,
    max_bytes: u64,
    meter: &ByteMeter,
) -> Result<CopyResult, Failure> {
    let failed = |error: io::Error| {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let failure = Failure::host(format!("write `{}`", target.display()), error);
        if is_missing { failure.hint("the folder must be there: `mkdir -p` makes it") } else { failure }
    };
    let place = CopyTarget::find(target).map_err(failed)?;
    let mut content = content(from, &stat, max_bytes, meter).await?;
    let mut file = place.begin(stat.mode).map_err(failed)?;
    while let Some(bytes) = content.next().await {
        let bytes = bytes?;
        check_size(meter, max_bytes)?;
        file.write_all(&bytes).map_err(failed)?;
    }
    place.finish(file).map_err(failed)?;
    Ok(CopyResult { bytes: meter.bytes(), files: 1, skipped: Vec::new() })
}

/// The prefix of the file's name until it is complete. A random part follows.
const PARTIAL: &str = ".eyot-cp-";

/// The path of a copy, and the metadata of the file that is there.
struct CopyTarget {
    path: PathBuf,
    permissions: Option<Permissions>,
}

impl CopyTarget {
    fn find(target: &Path) -> io::Result<Self> {
        match fs::symlink_metadata(target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(Self { path: target.to_owned(), permissions: None })
            }
            Err(error) => Err(error),
            Ok(found) if found.is_symlink() => Self::of(target.canonicalize()?),
            Ok(_) => Self::of(target.to_owned()),
        }
    }

    fn of(path: PathBuf) -> io::Result<Self> {
        let found = fs::metadata(&path)?;
        if found.is_file() {
            Ok(Self { path, permissions: Some(found.permissions()) })
        } else if found.is_dir() {
            Err(io::ErrorKind::IsADirectory.into())
        } else {
            Err(io::Error::other("it is not a regular file; copy to `-` and redirect that"))
        }
    }

    fn begin(&self, mode: Option<u32>) -> io::Result<NamedTempFile> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let permissions = Permissions::from_mode(mode.unwrap_or(0o644) & 0o777);
        let file = partial_file(folder.unwrap_or(Path::new(".")), PARTIAL)?;
        file.as_file().set_permissions(permissions)?;
        Ok(file)
    }

    fn finish(self, file: NamedTempFile) -> io::Result<()> {
        if let Some(permissions) = self.permissions {
            file.as_file().set_permissions(permissions)?;
        }
        file.persist(&self.path)?;
        Ok(())
    }
}

async fn tree(
    from: &Inside<'_>,
    target: PathBuf,
    max_bytes: u64,
    meter: &ByteMeter,
) -> Result<CopyResult, Failure> {
    let root = from.resolved()?.file_name().to_owned();
    if root.is_empty() {
        let error = Error::new(ErrorKind::Invalid, "a whole sandbox can't be copied");
        return Err(error.with_hint("name a directory in it").into());
    }
    let tar = from.sandbox.tar_out(from.path).await?;
    let (feeder, reader) = pipe::reader();
    let unpacking = tokio::task::spawn_blocking(move || {
        let mut unpacker = TreeUnpacker::new(&target)?;
        let read = read_tree(reader, &root, max_bytes, |entry, content| unpacker.write(&entry, content));
        read.map(|()| unpacker.finish())
    });
    let (fed, unpacked) = tokio::join!(feeder.feed(meter.count(tar)), joined(unpacking));
    fed?;
    unpacked
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn into_a_directory_the_name_is_kept_and_elsewhere_the_destination_is_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("new");
        assert_eq!(target(folder.path(), Some("a"), false).unwrap(), folder.path().join("a"));
        assert_eq!(target(folder.path(), None, true).unwrap(), folder.path());
        assert_eq!(target(&missing, Some("a"), true).unwrap(), missing);
        assert!(target(&folder.path().join("new/"), Some("a"), false).is_err());
    }

    #[test]
    fn a_directory_does_not_replace_a_file() {
        let file = NamedTempFile::new().unwrap();
        assert!(target(file.path(), Some("a"), true).is_err());
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_behind_a_link_and_keeps_its_bits() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o600)).unwrap();
        symlink(&real, &link).unwrap();
        let place = CopyTarget::find(&link).unwrap();
        let mut file = place.begin(Some(0o4777)).unwrap();
        file.write_all(b"new").unwrap();
        place.finish(file).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o7777, 0o600);
    }

    #[test]
    fn what_is_given_up_halfway_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let place = CopyTarget::find(&folder.path().join("f")).unwrap();
        drop(place.begin(None).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
