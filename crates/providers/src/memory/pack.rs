//! Trees of files in memory, packed as tar streams.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::SystemTime;

use bytes::Bytes;
use eyot::{ByteStream, ConfinedPath, Error, ErrorKind, Result};
use futures_util::StreamExt;
use tar::{Builder, EntryType, Header};
use tokio::sync::mpsc;

use super::files::MemoryFiles;
use super::names::joined;
use super::node::{FileAccess, FileNode, NodeContent, NodeId};
use super::walk::Last;

/// The bytes of one piece of the stream.
const PIECE_BYTES: usize = 64 << 10;
/// The account of everything in the archive.
const USER_ID: u64 = 1000;

/// Something to pack: its path in the archive, its place in the tree, and what it is.
pub(super) struct PackEntry {
    pub path: Vec<u8>,
    pub id: NodeId,
    pub node: FileNode,
}

/// Makes the header of a node, of a type and a size.
pub(super) type MakeHeader<'a> = &'a dyn Fn(&FileNode, EntryType, u64) -> Header;

/// Packs a file or a tree; names begin with the last segment of its path.
pub(super) fn pack(files: &MemoryFiles, root: &ConfinedPath) -> Result<ByteStream> {
    let all = snapshot(files, root)?;
    let (pieces, arrived) = mpsc::channel::<Result<Bytes>>(4);
    tokio::task::spawn_blocking(move || {
        let failed = pieces.clone();
        if let Err(error) = write_all(all, TarPieces { pieces, buffer: Vec::new() }) {
            let told = failed.blocking_send(Err(Error::new(ErrorKind::Internal, error.to_string())));
            // A reader that is gone does not want to know.
            tracing::debug!(%error, is_told = told.is_ok(), "a tree was not packed to its end");
        }
    });
    Ok(futures_util::stream::unfold(arrived, |mut arrived| async move {
        arrived.recv().await.map(|piece| (piece, arrived))
    })
    .boxed())
}

/// Lists what is to be packed with what is in it now. Nothing is copied.
fn snapshot(files: &MemoryFiles, root: &ConfinedPath) -> Result<Vec<PackEntry>> {
    let inner = files.lock();
    let id = inner.find(root, Last::Follow)?.found()?;
    let name = match root.path.file_name() {
        "" => b".".to_vec(),
        name => name.as_bytes().to_vec(),
    };
    let mut all = vec![PackEntry { path: name.clone(), id, node: inner.tree.node(id).clone() }];
    for (names, id) in inner.tree.below(id) {
        let path = [name.as_slice(), &joined(&names)].join(&b'/');
        all.push(PackEntry { path, id, node: inner.tree.node(id).clone() });
    }
    for packed in &all {
        if matches!(packed.node.content, NodeContent::File(_) | NodeContent::Directory(_)) {
            packed.node.check(FileAccess::Read)?;
        }
    }
    Ok(all)
}

fn write_all(all: Vec<PackEntry>, pieces: TarPieces) -> io::Result<()> {
    let mut builder = Builder::new(pieces);
    let mut first_names: BTreeMap<NodeId, Vec<u8>> = BTreeMap::new();
    for packed in all {
        let is_shared = packed.node.names > 1 && matches!(packed.node.content, NodeContent::File(_));
        match first_names.get(&packed.id).filter(|_| is_shared) {
            Some(first) => append_link(&mut builder, &packed, EntryType::Link, first, &header)?,
            None => {
                append(&mut builder, &packed, &header)?;
                first_names.insert(packed.id, packed.path);
            }
        }
    }
    builder.into_inner()?.flush()
}

pub(super) fn header(node: &FileNode, kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(node.mode);
    header.set_uid(USER_ID);
    header.set_gid(USER_ID);
    let since = node.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    header.set_mtime(since.as_secs());
    header.set_size(size);
    header
}

/// Writes an entry and what is in it.
pub(super) fn append(
    builder: &mut Builder<impl Write>,
    packed: &PackEntry,
    header: MakeHeader<'_>,
) -> io::Result<()> {
    let node = &packed.node;
    match &node.content {
        NodeContent::File(content) => {
            let mut header = header(node, EntryType::Regular, content.len());
            append_entry(builder, &mut header, &packed.path, content.reader())
        }
        NodeContent::Directory(_) => {
            let mut header = header(node, EntryType::Directory, 0);
            let path = [packed.path.as_slice(), b"/"].concat();
            append_entry(builder, &mut header, &path, io::empty())
        }
        NodeContent::Link(target) => append_link(builder, packed, EntryType::Symlink, target, header),
        NodeContent::Fifo(_) | NodeContent::Device(_) => Ok(()),
    }
}

/// Writes an entry that is a link.
pub(super) fn append_link(
    builder: &mut Builder<impl Write>,
    packed: &PackEntry,
    kind: EntryType,
    target: &[u8],
    header: MakeHeader<'_>,
) -> io::Result<()> {
    if header_takes(target) {
        let mut header = header(&packed.node, kind, 0);
        set_link_name(&mut header, target);
        append_entry(builder, &mut header, &packed.path, io::empty())
    } else {
        append_long(builder, b'K', target)?;
        let mut header = header(&packed.node, kind, 0);
        append_entry(builder, &mut header, &packed.path, io::empty())
    }
}

/// The bytes of a name in a header. A longer one stands in an entry before it, as GNU tar writes it.
const HEADER_NAME_BYTES: usize = 100;

fn header_takes(name: &[u8]) -> bool {
    name.len() <= HEADER_NAME_BYTES
}

fn set_link_name(header: &mut Header, target: &[u8]) {
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target);
}

/// Writes an entry. Names are bytes here, which the library's own methods do not take everywhere.
pub(super) fn append_entry(
    builder: &mut Builder<impl Write>,
    header: &mut Header,
    path: &[u8],
    content: impl io::Read,
) -> io::Result<()> {
    if header_takes(path) {
        header.as_old_mut().name[..path.len()].copy_from_slice(path);
    } else {
        append_long(builder, b'L', path)?;
        let most = HEADER_NAME_BYTES.min(path.len());
        header.as_old_mut().name[..most].copy_from_slice(&path[..most]);
    }
    header.set_cksum();
    builder.append(header, content)
}

fn append_long(builder: &mut Builder<impl Write>, kind: u8, name: &[u8]) -> io::Result<()> {
    let mut header = Header::new_gnu();
    let long = b"././@LongLink";
    header.as_old_mut().name[..long.len()].copy_from_slice(long);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(name.len() as u64 + 1);
    header.set_entry_type(EntryType::new(kind));
    header.set_cksum();
    builder.append(&header, &[name, b"\0"].concat()[..])
}

/// Collects what is written into pieces for a stream.
struct TarPieces {
    pieces: mpsc::Sender<Result<Bytes>>,
    buffer: Vec<u8>,
}

impl Write for TarPieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.buffer));
        self.pieces.blocking_send(Ok(piece)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
