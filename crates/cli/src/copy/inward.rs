//! Copies from the host into a sandbox.

use std::fs::{File, Metadata};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use eyot::{Error, ErrorKind, SandboxPath, TarInOptions, WriteOptions};

use super::pipe::{self, StreamWriter};
use super::{ByteMeter, CopyResult, Inside, MAX_ENTRIES, joined, means_content, pack, too_large};
use crate::errors::Failure;
use crate::stdio::stdin_stream;

const BUFFER: usize = 64 * 1024;

/// Copies a file or a tree. If the source itself is a symbolic link, it is followed.
pub async fn inward(
    source: &Path,
    to: &Inside<'_>,
    max_bytes: u64,
    meter: &ByteMeter,
) -> Result<CopyResult, Failure> {
    let metadata = std::fs::metadata(source)
        .map_err(|error| Failure::host(format!("read `{}`", source.display()), error))?;
    let target = to.target(name(source)?, metadata.is_dir()).await?;
    if metadata.is_dir() {
        tree(source, to, &target, max_bytes, meter).await
    } else {
        file(source, to, &target, &metadata, max_bytes, meter).await
    }
}

/// Copies our standard input into a file.
pub async fn inward_stdin(to: &Inside<'_>, max_bytes: u64, meter: &ByteMeter) -> Result<CopyResult, Failure> {
    if to.sandbox.stat(to.path).await.is_ok_and(|stat| stat.is_directory) {
        let message = format!("`{}` is a directory", to.path);
        return Err(Error::new(ErrorKind::IsDirectory, message).with_hint("name a file in it").into());
    }
    let content = meter.count(stdin_stream()?);
    let options = WriteOptions { max_file_bytes: Some(max_bytes), ..WriteOptions::default() };
    to.sandbox.write_stream(to.path, content, options).await?;
    Ok(CopyResult { bytes: meter.bytes(), files: 1, skipped: Vec::new() })
}

/// Returns the source's name; `None` if its content is meant.
fn name(source: &Path) -> Result<Option<&str>, Error> {
    let text = source.as_os_str().to_str();
    if text.is_some_and(means_content) {
        return Ok(None);
    }
    let name = source.file_name().and_then(|name| name.to_str());
    let unnamed =
        || Error::new(ErrorKind::Invalid, format!("the name of `{}` is not UTF-8", source.display()));
    name.map(Some).ok_or_else(unnamed)
}

async fn file(
    source: &Path,
    to: &Inside<'_>,
    target: &SandboxPath,
    metadata: &Metadata,
    max_bytes: u64,
    meter: &ByteMeter,
) -> Result<CopyResult, Failure> {
    // A FIFO or a device has no size and no bits of its own worth keeping.
    let permissions = metadata.is_file().then_some(metadata.mode() & 0o777);
    if metadata.is_file() {
        meter.expect(metadata.len());
        if metadata.len() > max_bytes {
            return Err(too_large(max_bytes).into());
        }
    }
    let (writer, content) = pipe::writer();
    let source = source.to_owned();
    let reading = tokio::task::spawn_blocking(move || read_file(&source, writer));
    let options = WriteOptions { permissions, max_file_bytes: Some(max_bytes), ..WriteOptions::default() };
    let written = to.sandbox.write_stream(target.as_str(), meter.count(content), options).await;
    settle(reading, written).await?;
    Ok(CopyResult { bytes: meter.bytes(), files: 1, skipped: Vec::new() })
}

fn read_file(source: &Path, mut writer: StreamWriter) -> Result<(), Failure> {
    let failed = |error| Failure::host(format!("read `{}`", source.display()), error);
    let mut file = File::open(source).map_err(failed)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = file.read(&mut buffer).map_err(failed)?;
        if count == 0 {
            writer.finish();
            return Ok(());
        }
        writer.write_all(&buffer[..count])?;
    }
}

async fn tree(
    source: &Path,
    to: &Inside<'_>,
    target: &SandboxPath,
    max_bytes: u64,
    meter: &ByteMeter,
) -> Result<CopyResult, Failure> {
    to.make_tree(target).await?;
    let (writer, tar) = pipe::writer();
    let (source, meter) = (source.to_owned(), meter.clone());
    let packing = tokio::task::spawn_blocking(move || pack_into(source, writer, &meter));
    let options = TarInOptions { max_total_bytes: max_bytes, max_entries: MAX_ENTRIES };
    let unpacked = to.sandbox.tar_in(target.as_str(), tar, options).await;
    settle(packing, unpacked).await
}

fn pack_into(source: PathBuf, writer: StreamWriter, meter: &ByteMeter) -> Result<CopyResult, Failure> {
    let mut buffered = BufWriter::with_capacity(BUFFER, writer);
    let copied = pack::pack(&source, &mut buffered, meter)?;
    match buffered.into_inner() {
        Ok(writer) => writer.finish(),
        Err(error) => return Err(error.into_error().into()),
    }
    Ok(copied)
}

/// Joins the results of both sides. The host's own error is the reason; without one it is the
/// sandbox's, since the host's side then only lost its reader.
async fn settle<T, U>(
    host: tokio::task::JoinHandle<Result<T, Failure>>,
    sandbox: Result<U, Error>,
) -> Result<T, Failure> {
    match (joined(host).await, sandbox) {
        (Ok(done), Ok(_)) => Ok(done),
        (Err(Failure::OutputClosed) | Ok(_), Err(error)) => Err(error.into()),
        (Err(failure), _) => Err(failure),
    }
}
