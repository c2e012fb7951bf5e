//! Trees as tar streams: the sandbox's own `tar` packs and unpacks them. What comes in is checked here first, entry by entry,
//! and written anew, so that the sandbox's `tar` meets nothing that its rules and ours judge differently.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use eyot::{ByteStream, ConfinedPath, Error, ErrorKind, Result, TarInOptions};
use eyot_guest::tar_entry::{TarAction, TarPlan, plan};
use futures_util::{StreamExt, TryStreamExt};
use tar::{Archive, Builder, Entry, EntryType, Header};
use tokio::io::DuplexStream;
use tokio_util::io::{ReaderStream, StreamReader, SyncIoBridge};

use super::files::{FileScripts, StagedUpload, free};
use crate::tar_limit::{MAX_BETWEEN_BYTES, TarLimitReader};

/// The bytes of an archive that may wait to be uploaded.
const WAITING_BYTES: usize = 64 << 10;
/// The most bytes of the names of directories and links that are kept during a check.
const MAX_KEPT_BYTES: usize = 64 << 20;
/// The bytes that a kept name takes beside its own.
const PER_NAME_BYTES: usize = 64;

/// Packs a tree.
pub(crate) async fn tar_out<S: FileScripts>(scripts: &Arc<S>, root: &ConfinedPath) -> Result<ByteStream> {
    let path = free(&**scripts, "tar_out", root)?;
    Arc::clone(scripts).streamed("pack", &[path.as_str()]).await
}

/// Unpacks a tree. Nothing is made unless all of it is fine.
pub(crate) async fn tar_in<S: FileScripts>(
    scripts: &Arc<S>,
    directory: &ConfinedPath,
    tar: ByteStream,
    options: TarInOptions,
) -> Result<u64> {
    let path = free(&**scripts, "tar_in", directory)?;
    let (archive, list) = (StagedUpload::new(scripts), StagedUpload::new(scripts));
    let (written, read) = tokio::io::duplex(WAITING_BYTES);
    let tar = SyncIoBridge::new(StreamReader::new(tar.map_err(io::Error::other)));
    let written = SyncIoBridge::new(written);
    let checking = tokio::task::spawn_blocking(move || Checked::write(tar, written, options));
    let content = ReaderStream::new(read).map_err(|error| Error::host("read an archive", error)).boxed();
    // An archive that is refused ends the upload as if it were whole, so a failed upload has another reason.
    scripts.upload(&archive.path, content).await?;
    let checked = checking
        .await
        .map_err(|error| Error::new(ErrorKind::Internal, "check an archive").with_source(error))??;
    let names = futures_util::stream::iter([Ok(checked.list().into())]).boxed();
    scripts.upload(&list.path, names).await?;
    scripts.answer("unpack", &[path.as_str(), &archive.path, &list.path]).await?;
    // The script has removed both.
    archive.finish();
    list.finish();
    Ok(checked.entries)
}

/// The result of a check.
#[derive(Default)]
struct Checked {
    entries: u64,
    bytes: u64,
    /// The symbolic links of the archive.
    links: BTreeSet<Vec<u8>>,
    /// The directories on the way to its entries. None of them may be a link.
    ways: BTreeSet<Vec<u8>>,
    /// The bytes of both.
    kept: usize,
}

impl Checked {
    /// Checks an archive, and writes it anew.
    fn write(tar: impl Read, to: SyncIoBridge<DuplexStream>, options: TarInOptions) -> Result<Self> {
        let mut checked = Self::default();
        let left = Rc::new(Cell::new(MAX_BETWEEN_BYTES));
        let mut archive = Archive::new(TarLimitReader { inner: tar, left: Rc::clone(&left) });
        let mut builder = Builder::new(to);
        for entry in archive.entries().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            left.set(u64::MAX);
            let plan = plan(&mut entry, false)
                .map_err(|refused| at(&refused.path, Error::new(ErrorKind::Invalid, refused.reason)))?;
            if plan.make != TarAction::Nothing && !plan.path.is_empty() {
                checked.take(&plan, entry.size(), options).map_err(|error| at(&plan.path, error))?;
                append(&mut builder, &plan, &mut entry).map_err(|error| at(&plan.path, error))?;
            }
            io::copy(&mut entry, &mut io::sink()).map_err(broken)?;
            left.set(MAX_BETWEEN_BYTES);
        }
        left.set(u64::MAX);
        builder.into_inner().map_err(broken)?;
        // The sender may go on after the archive's end mark, because blocks are padded.
        io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(broken)?;
        Ok(checked)
    }

    fn take(&mut self, plan: &TarPlan, size: u64, options: TarInOptions) -> Result<()> {
        let too_large = |most: u64, what: &str| {
            Error::new(ErrorKind::TooLarge, format!("more than the limit of {most} {what}"))
        };
        self.entries += 1;
        if self.entries > options.max_entries {
            return Err(too_large(options.max_entries, "entries"));
        }
        if plan.make == TarAction::File {
            self.bytes = self.bytes.saturating_add(size);
            if self.bytes > options.max_total_bytes {
                return Err(too_large(options.max_total_bytes, "bytes in all"));
            }
        }
        self.go(&plan.path)?;
        if let TarAction::HardLink(source) = &plan.make {
            self.go(source)?;
        }
        match plan.make {
            TarAction::Symlink(_) if !self.links.contains(&plan.path) => {
                self.keep(&plan.path)?;
                self.links.insert(plan.path.clone());
            }
            TarAction::Symlink(_) => {}
            _ if self.links.remove(&plan.path) => self.kept -= plan.path.len() + PER_NAME_BYTES,
            _ => {}
        }
        Ok(())
    }

    /// Counts a name that is kept.
    fn keep(&mut self, name: &[u8]) -> Result<()> {
        self.kept += name.len() + PER_NAME_BYTES;
        if self.kept <= MAX_KEPT_BYTES {
            return Ok(());
        }
        let message = format!("the names of directories and links take more than {MAX_KEPT_BYTES} bytes");
        Err(Error::new(ErrorKind::TooLarge, message))
    }

    /// Notes the way to a path, which must not lead through a link of the archive.
    fn go(&mut self, path: &[u8]) -> Result<()> {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for way in slashes.map(|(at, _)| &path[..at]) {
            if self.links.contains(way) {
                return Err(Error::new(ErrorKind::Invalid, "lies behind a symbolic link of the archive"));
            }
            if !self.ways.contains(way) {
                self.keep(way)?;
                self.ways.insert(way.to_vec());
            }
        }
        Ok(())
    }

    /// Returns the ways, each ended by a NUL.
    fn list(&self) -> Vec<u8> {
        self.ways.iter().flat_map(|way| way.iter().copied().chain([0])).collect()
    }
}

fn broken(error: io::Error) -> Error {
    Error::new(ErrorKind::Invalid, "the archive can't be read").with_source(error)
}

/// Names the entry in an error.
fn at(path: &[u8], error: Error) -> Error {
    error.context(format!("`{}`", String::from_utf8_lossy(path).escape_debug()))
}

fn append(
    builder: &mut Builder<SyncIoBridge<DuplexStream>>,
    plan: &TarPlan,
    entry: &mut Entry<'_, impl Read>,
) -> Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(plan.mode);
    header.set_mtime(plan.modified.max(0).unsigned_abs());
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    let path = named(&plan.path);
    let appended = match &plan.make {
        TarAction::File => {
            let size = entry.size();
            header.set_entry_type(EntryType::Regular);
            header.set_size(size);
            let mut content = Whole { entry, left: size };
            builder.append_data(&mut header, path, &mut content)
        }
        TarAction::Directory => {
            header.set_entry_type(EntryType::Directory);
            builder.append_data(&mut header, path, io::empty())
        }
        TarAction::Symlink(target) => {
            header.set_entry_type(EntryType::Symlink);
            builder.append_link(&mut header, path, named(target))
        }
        TarAction::HardLink(source) => {
            header.set_entry_type(EntryType::Link);
            builder.append_link(&mut header, path, named(source))
        }
        TarAction::Nothing => Ok(()),
    };
    appended.map_err(broken)
}

fn named(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// The content of an entry. It fails where the archive ends before the content does.
struct Whole<'a, R> {
    entry: &'a mut R,
    left: u64,
}

impl<R: Read> Read for Whole<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.entry.read(buffer)?;
        self.left = self.left.saturating_sub(read as u64);
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &[u8]) -> TarPlan {
        TarPlan { path: path.to_vec(), make: TarAction::File, mode: 0o644, modified: 0 }
    }

    #[test]
    fn the_ways_to_entries_are_noted_and_a_link_among_them_is_refused() {
        let mut checked = Checked::default();
        let options = TarInOptions::default();
        checked.take(&file(b"a/b/c"), 1, options).unwrap();
        assert_eq!(checked.list(), b"a\0a/b\0");
        let link = TarPlan { make: TarAction::Symlink(b"..".to_vec()), ..file(b"l") };
        checked.take(&link, 0, options).unwrap();
        assert_eq!(checked.take(&file(b"l/f"), 1, options).unwrap_err().kind(), ErrorKind::Invalid);
        checked.take(&file(b"l"), 1, options).unwrap();
    }

    #[test]
    fn as_many_names_as_allowed_are_kept_and_one_byte_more_is_refused() {
        let name = vec![b'x'; MAX_KEPT_BYTES - 2 * PER_NAME_BYTES - 1];
        let mut checked = Checked::default();
        checked.keep(&name).unwrap();
        checked.keep(b"x").unwrap();
        assert_eq!(checked.keep(b"").unwrap_err().kind(), ErrorKind::TooLarge);
        let link = TarPlan { make: TarAction::Symlink(b"..".to_vec()), ..file(b"l") };
        let mut checked = Checked::default();
        for _ in 0..2 {
            checked.take(&link, 0, TarInOptions::default()).unwrap();
        }
        checked.take(&file(b"l"), 0, TarInOptions::default()).unwrap();
        assert_eq!(checked.kept, 0);
    }

    #[test]
    fn as_many_entries_and_bytes_as_allowed_are_taken_and_one_more_is_refused() {
        let mut checked = Checked::default();
        let options = TarInOptions { max_total_bytes: 10, max_entries: 2 };
        checked.take(&file(b"a"), 10, options).unwrap();
        checked.take(&file(b"b"), 0, options).unwrap();
        assert_eq!(checked.take(&file(b"c"), 0, options).unwrap_err().kind(), ErrorKind::TooLarge);
        let mut checked = Checked::default();
        assert_eq!(checked.take(&file(b"a"), 11, options).unwrap_err().kind(), ErrorKind::TooLarge);
    }
}
