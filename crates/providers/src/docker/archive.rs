//! The files of a container as the Engine's archive has them, read one after another.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::time::Duration;

use bollard::query_parameters::DownloadFromContainerOptionsBuilder;
use eyot::{Error, ErrorKind, Result, SandboxPath};
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::time::timeout;
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::engine::is_absent;
use super::host::Host;

/// The longest wait for the next piece of an archive.
const PATIENCE: Duration = Duration::from_secs(120);
/// The most names that one archive may have.
const MAX_NAMES: usize = 1_000_000;
/// The most bytes that the paths of one archive may have together: 128 MiB.
const MAX_PATH_BYTES: usize = 128 << 20;

/// An entry of an archive.
pub(crate) struct ArchiveEntry<'a> {
    /// The absolute path in the container, without a slash at its end. That of the root is empty.
    pub path: Vec<u8>,
    pub header: &'a tar::Header,
    /// The target of a symbolic link as it is, or the absolute path of the file that a hard link leads to.
    pub target: Vec<u8>,
    pub content: &'a mut dyn Read,
}

/// Reads what a container has at a path and below: links, and not what they lead to. `step` sees one entry after another, on a
/// thread where it may block, and changes `state`, which is returned. Without anything at the path there are no entries.
pub(crate) async fn fold_archive<T: Send + 'static>(
    host: &Host,
    container: &str,
    path: &SandboxPath,
    state: T,
    step: fn(&mut T, ArchiveEntry<'_>) -> io::Result<()>,
) -> Result<T> {
    let docker = host.engine.client().await?.clone().with_timeout(PATIENCE);
    let options = DownloadFromContainerOptionsBuilder::default().path(path.as_str()).build();
    let mut pieces = Box::pin(docker.download_from_container(container, Some(options)));
    let first = match pieces.try_next().await {
        Err(error) if is_absent(&error) || is_below_a_file(&error) => return Ok(state),
        first => first.map_err(|error| host.engine.failed("read the files of a container", error))?,
    };
    let rest = stream::unfold(pieces, |mut pieces| async {
        let piece = match timeout(PATIENCE, pieces.try_next()).await {
            Ok(piece) => piece.map_err(io::Error::other).transpose()?,
            Err(late) => Err(io::Error::other(late)),
        };
        Some((piece, pieces))
    });
    let pieces = stream::iter(first.map(Ok)).chain(rest);
    let reader = SyncIoBridge::new(StreamReader::new(Box::pin(pieces)));
    let parent = path.parent().as_str().trim_end_matches('/').as_bytes().to_vec();
    let read = tokio::task::spawn_blocking(move || fold(reader, &parent, state, step)).await;
    let ended = |error| Error::new(ErrorKind::Internal, "read the files of a container").with_source(error);
    read.map_err(ended)?.map_err(|error| {
        let message = format!("read the files of a container: {error}");
        match error.kind() {
            io::ErrorKind::FileTooLarge => {
                Error::new(ErrorKind::TooLarge, error.to_string()).with_hint("compare less: --path")
            }
            _ => Error::new(ErrorKind::Unavailable, message)
                .with_hint("try again; a file may have changed while it was read")
                .with_source(error),
        }
    })
}

/// Tells whether an answer says that something above the path is no directory.
fn is_below_a_file(error: &bollard::errors::Error) -> bool {
    matches!(error, bollard::errors::Error::DockerResponseServerError { message, .. } if message.contains("not a directory"))
}

fn fold<T>(
    reader: impl Read,
    parent: &[u8],
    mut state: T,
    step: fn(&mut T, ArchiveEntry<'_>) -> io::Result<()>,
) -> io::Result<T> {
    let mut archive = tar::Archive::new(reader);
    let mut path_bytes = 0;
    for (count, entry) in archive.entries()?.enumerate() {
        if count >= MAX_NAMES {
            return Err(too_many(format!("there are more than {MAX_NAMES} names")));
        }
        let mut entry = entry?;
        let path = absolute(parent, &entry.path_bytes());
        path_bytes += path.len();
        if path_bytes > MAX_PATH_BYTES {
            return Err(too_many(format!("the paths have more than {MAX_PATH_BYTES} bytes")));
        }
        let link = entry.link_name_bytes().map(|target| target.into_owned()).unwrap_or_default();
        let header = entry.header().clone();
        let is_hard = header.entry_type() == tar::EntryType::Link;
        let target = if is_hard { absolute(parent, &link) } else { link };
        step(&mut state, ArchiveEntry { path, header: &header, target, content: &mut entry })?;
    }
    Ok(state)
}

fn too_many(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("compare files: {reason}"))
}

/// Returns the path in the container of a name in an archive.
fn absolute(parent: &[u8], name: &[u8]) -> Vec<u8> {
    let parts = name.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
    parts.fold(parent.to_vec(), |mut path, part| {
        path.push(b'/');
        path.extend_from_slice(part);
        path
    })
}

/// Lists the paths that a container has at a path and below.
pub(crate) async fn names_below(
    host: &Host,
    container: &str,
    path: &SandboxPath,
) -> Result<BTreeSet<Vec<u8>>> {
    let add = |names: &mut BTreeSet<Vec<u8>>, entry: ArchiveEntry<'_>| {
        names.insert(entry.path);
        Ok(())
    };
    fold_archive(host, container, path, BTreeSet::new(), add).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_an_archive_is_below_the_parent_of_what_was_asked_for() {
        for (parent, name, path) in [
            ("", "/", ""),
            ("", "/etc/passwd", "/etc/passwd"),
            ("", "workspace/", "/workspace"),
            ("/home/user", "./work/a", "/home/user/work/a"),
        ] {
            assert_eq!(absolute(parent.as_bytes(), name.as_bytes()), path.as_bytes(), "{name}");
        }
    }

    #[test]
    fn entries_are_read_one_after_another_and_hard_links_lead_to_whole_paths() {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(3);
        archive.append_data(&mut header, "w/a", &b"abc"[..]).unwrap();
        header.set_entry_type(tar::EntryType::Link);
        header.set_size(0);
        archive.append_link(&mut header, "w/b", "w/a").unwrap();
        let bytes = archive.into_inner().unwrap();
        let seen = fold(&bytes[..], b"/x", Vec::new(), |seen: &mut Vec<(String, String, String)>, entry| {
            let mut content = String::new();
            entry.content.read_to_string(&mut content)?;
            let text = |bytes| String::from_utf8(bytes).map_err(io::Error::other);
            seen.push((text(entry.path)?, text(entry.target)?, content));
            Ok(())
        });
        let expected = [("/x/w/a", "", "abc"), ("/x/w/b", "/x/w/a", "")];
        assert_eq!(seen.unwrap(), expected.map(|(one, two, three)| (one.into(), two.into(), three.into())));
    }
}
