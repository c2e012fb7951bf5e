//! Copies from one sandbox to another (or within one), without touching the host's disk. Names are
//! rewritten on the way, and the stream of one sandbox is checked before the other one gets it.

use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;

use eyot::{ByteRange, Error, ErrorKind, FileStat, SandboxPath, TarInOptions, WriteOptions};
use tar::{Builder, EntryType, Header};

use super::pipe::{self, StreamReader, StreamWriter};
use super::tree::{Kind, TreeEntry, read_tree};
use super::{ByteMeter, CopyResult, Inside, MAX_ENTRIES, joined, means_content, too_large};
use crate::errors::Failure;

const BUFFER: usize = 64 * 1024;

/// Copies a file or a tree.
pub async fn across(
    from: &Inside<'_>,
    to: &Inside<'_>,
    max_bytes: u64,
    meter: &ByteMeter,
) -> Result<CopyResult, Failure> {
    let stat = from.sandbox.stat(from.path).await?;
    let resolved = from.resolved()?;
    let name = (!means_content(from.path)).then(|| resolved.file_name().to_owned());
    let target = to.target(name.as_deref(), stat.is_directory).await?;
    if stat.is_directory {
        let same = from.sandbox.id() == to.sandbox.id();
        if same && target.strip_prefix(&resolved).is_some() {
            let message = format!("`{resolved}` can't be copied into itself");
            return Err(Error::new(ErrorKind::Invalid, message).into());
        }
        tree(from, to, &resolved, &target, max_bytes, meter).await
    } else {
        file(from, to, &target, stat, max_bytes, meter).await
    }
}

async fn file(
    from: &Inside<'_>,
    to: &Inside<'_>,
    target: &SandboxPath,
    stat: FileStat,
    max_bytes: u64,
    meter: &ByteMeter,
) -> Result<CopyResult, Failure> {
    let size = stat.size.unwrap_or_default();
    if size > max_bytes {
        return Err(too_large(max_bytes).into());
    }
    meter.expect(size);
    let content = meter.count(from.sandbox.read_stream(from.path, ByteRange::default()).await?);
    let permissions = stat.mode.map(|mode| mode & 0o777);
    let options = WriteOptions { permissions, max_file_bytes: Some(max_bytes), ..WriteOptions::default() };
    to.sandbox.write_stream(target.as_str(), content, options).await?;
    Ok(CopyResult { bytes: meter.bytes(), files: 1, skipped: Vec::new() })
}

async fn tree(
    from: &Inside<'_>,
    to: &Inside<'_>,
    source: &SandboxPath,
    target: &SandboxPath,
    max_bytes: u64,
    meter: &ByteMeter,
) -> Result<CopyResult, Failure> {
    to.make_tree(target).await?;
    let tar = meter.count(from.sandbox.tar_out(source.as_str()).await?);
    let (feeder, reader) = pipe::reader();
    let (writer, rewritten) = pipe::writer();
    let root = source.file_name().to_owned();
    let rewriting = tokio::task::spawn_blocking(move || rewrite(reader, writer, &root, max_bytes));
    let options = TarInOptions { max_total_bytes: max_bytes, max_entries: MAX_ENTRIES };
    let unpacking = to.sandbox.tar_in(target.as_str(), rewritten, options);
    let (fed, rewritten, unpacked) = tokio::join!(feeder.feed(tar), joined(rewriting), unpacking);
    fed?;
    match (rewritten, unpacked) {
        (Ok(copied), Ok(_)) => Ok(copied),
        (Err(Failure::OutputClosed) | Ok(_), Err(error)) => Err(error.into()),
        (Err(failure), _) => Err(failure),
    }
}

fn rewrite(
    reader: StreamReader,
    writer: StreamWriter,
    root: &str,
    max_bytes: u64,
) -> Result<CopyResult, Failure> {
    let mut tar = Builder::new(BufWriter::with_capacity(BUFFER, writer));
    let mut copied = CopyResult::default();
    read_tree(reader, root, max_bytes, |entry, content| {
        if entry.path.is_empty() {
            return Ok(());
        }
        match entry.left_out() {
            Some(left_out) => copied.skipped.push(left_out),
            None => {
                append(&mut tar, &entry, content)?;
                count(&mut copied, &entry);
            }
        }
        Ok(())
    })?;
    match tar.into_inner()?.into_inner() {
        Ok(writer) => writer.finish(),
        Err(error) => return Err(error.into_error().into()),
    }
    Ok(copied)
}

fn count(copied: &mut CopyResult, entry: &TreeEntry) {
    match entry.kind {
        Kind::File(size) => {
            copied.bytes += size;
            copied.files += 1;
        }
        Kind::Symlink(_) | Kind::HardLink(_) => copied.files += 1,
        Kind::Directory | Kind::Special => {}
    }
}

fn append(tar: &mut Builder<impl Write>, entry: &TreeEntry, content: &mut dyn Read) -> io::Result<()> {
    let path: PathBuf = entry.path.iter().collect();
    let mut header = Header::new_gnu();
    header.set_mode(entry.mode);
    header.set_size(0);
    match &entry.kind {
        Kind::Directory => {
            header.set_entry_type(EntryType::Directory);
            tar.append_data(&mut header, path, io::empty())
        }
        Kind::File(size) => {
            header.set_entry_type(EntryType::Regular);
            header.set_size(*size);
            tar.append_data(&mut header, path, content)
        }
        Kind::Symlink(target) => {
            header.set_entry_type(EntryType::Symlink);
            tar.append_link(&mut header, path, target)
        }
        Kind::HardLink(target) => {
            header.set_entry_type(EntryType::Link);
            tar.append_link(&mut header, path, target.iter().collect::<PathBuf>())
        }
        Kind::Special => Ok(()),
    }
}
