//! Tar streams, unpacked into files in memory. No link is followed on the way to an entry, and what
//! fails midway leaves the entries that were complete.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use eyot::{ByteStream, ConfinedPath, Error, ErrorKind, Result, TarInOptions, WatchEventKind};
use eyot_guest::tar_entry::{TarAction, TarPlan, plan};
use futures_util::TryStreamExt;
use tar::{Archive, Entry};
use tokio_util::io::{StreamReader, SyncIoBridge};

use super::content::FileContent;
use super::files::{HeldFiles, Inner, MemoryFiles};
use super::names::{FileName, shown};
use super::node::{FileNode, NodeContent, NodeId, no_space, not_directory, not_found};
use super::place::Place;
use super::walk::Last;
use crate::tar_limit::{MAX_BETWEEN_BYTES, TarLimitReader};

/// Unpacks a stream below a directory that exists, and returns how many entries were made.
pub(super) async fn unpack(
    files: &MemoryFiles,
    directory: &ConfinedPath,
    content: ByteStream,
    options: TarInOptions,
) -> Result<u64> {
    let root = {
        let inner = files.lock();
        let place = inner.find(directory, Last::Follow)?;
        inner.tree.entries(place.found()?)?;
        place
    };
    let unpacking = Unpacking {
        files: files.clone(),
        root,
        is_held: directory.beneath.is_some(),
        options,
        bytes: 0,
        entries: 0,
        directories: Vec::new(),
    };
    let bridge = SyncIoBridge::new(StreamReader::new(content.map_err(io::Error::other)));
    let done = tokio::task::spawn_blocking(move || unpacking.run(bridge)).await;
    done.unwrap_or_else(|error| Err(Error::new(ErrorKind::Internal, error.to_string())))
}

struct Unpacking {
    files: MemoryFiles,
    root: Place,
    /// No symbolic link may be made that leads out of the directory.
    is_held: bool,
    options: TarInOptions,
    bytes: u64,
    entries: u64,
    /// Directories with their modes and times: set at the end, because what is made inside changes
    /// them.
    directories: Vec<(NodeId, u32, SystemTime)>,
}

impl Unpacking {
    fn run(mut self, reader: impl Read) -> Result<u64> {
        let left = Rc::new(Cell::new(MAX_BETWEEN_BYTES));
        let mut archive = Archive::new(TarLimitReader { inner: reader, left: Rc::clone(&left) });
        for entry in archive.entries().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            left.set(u64::MAX);
            let refused = |refused: eyot_guest::tar_entry::EntryError| {
                at(&refused.path, Error::new(ErrorKind::Invalid, refused.reason))
            };
            let plan = plan(&mut entry, self.is_held).map_err(refused)?;
            if plan.make != TarAction::Nothing && !plan.path.is_empty() {
                self.entry(&plan, &mut entry).map_err(|error| at(&plan.path, error))?;
            }
            io::copy(&mut entry, &mut io::sink()).map_err(broken)?;
            left.set(MAX_BETWEEN_BYTES);
        }
        left.set(u64::MAX);
        let mut inner = self.files.lock();
        for (id, mode, modified) in self.directories.into_iter().rev() {
            if inner.tree.has(id) {
                let node = inner.tree.node_mut(id);
                (node.mode, node.modified) = (mode, modified);
            }
        }
        drop(inner);
        // The sender may go on after the archive's end mark, because blocks are padded.
        io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(broken)?;
        Ok(self.entries)
    }

    /// The files, in which the directory is still there.
    fn held(&self) -> Result<HeldFiles<'_>> {
        let inner = self.files.lock();
        let is_there =
            self.root.node.is_some_and(|id| inner.tree.has(id)) && inner.tree.has(self.root.parent);
        if is_there { Ok(inner) } else { Err(not_found()) }
    }

    fn entry(&mut self, plan: &TarPlan, entry: &mut Entry<'_, impl Read>) -> Result<()> {
        self.entries += 1;
        if self.entries > self.options.max_entries {
            let reason = format!("more than the limit of {} entries", self.options.max_entries);
            return Err(Error::new(ErrorKind::TooLarge, reason));
        }
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(plan.modified.max(0).unsigned_abs());
        match &plan.make {
            TarAction::File => {
                let content = self.content(entry)?;
                let node = FileNode { modified, ..FileNode::new(NodeContent::File(content), plan.mode) };
                self.put(plan, node)
            }
            TarAction::Directory => self.directory(plan, modified),
            TarAction::Symlink(target) => {
                self.put(plan, FileNode::new(NodeContent::Link(target.clone()), 0o777))
            }
            TarAction::HardLink(source) => self.link(plan, source),
            TarAction::Nothing => Ok(()),
        }
    }

    fn content(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<FileContent> {
        self.bytes = self.bytes.saturating_add(entry.size());
        if self.bytes > self.options.max_total_bytes {
            let reason = format!("more than the limit of {} bytes in all", self.options.max_total_bytes);
            return Err(Error::new(ErrorKind::TooLarge, reason));
        }
        if entry.size() > self.held()?.tree.room(self.root.parent) {
            return Err(no_space());
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(broken)?;
        if (bytes.len() as u64) < entry.size() {
            return Err(broken(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(bytes.into())
    }

    fn put(&self, plan: &TarPlan, node: FileNode) -> Result<()> {
        let mut inner = self.held()?;
        let place = place(&mut inner, &self.root, &plan.path)?;
        let place = cleared(&mut inner, place)?;
        inner.add(&place, node).map(drop)
    }

    fn directory(&mut self, plan: &TarPlan, modified: SystemTime) -> Result<()> {
        let mut inner = self.held()?;
        let place = place(&mut inner, &self.root, &plan.path)?;
        let id = match place.node.filter(|id| inner.tree.node(*id).is_directory()) {
            Some(id) => id,
            None => {
                let place = cleared(&mut inner, place)?;
                inner.add(&place, FileNode::directory(0o755))?
            }
        };
        drop(inner);
        self.directories.push((id, plan.mode, modified));
        Ok(())
    }

    fn link(&self, plan: &TarPlan, source: &[u8]) -> Result<()> {
        if source == plan.path {
            return Ok(());
        }
        let mut inner = self.held()?;
        let id = existing(&inner, &self.root, source).and_then(|place| place.found());
        let id = id.map_err(|error| at(source, error))?;
        if !matches!(inner.tree.node(id).content, NodeContent::File(_)) {
            let reason = "is a hard link to what is no regular file in the directory";
            return Err(Error::new(ErrorKind::Invalid, reason));
        }
        let place = place(&mut inner, &self.root, &plan.path)?;
        if place.node == Some(id) {
            return Ok(());
        }
        let place = cleared(&mut inner, place)?;
        inner.tree.link(id, &place)?;
        inner.tell(&WatchEventKind::Created, &place, false);
        Ok(())
    }
}

/// The place at a path below the root, its directories made where they are missing.
pub(super) fn place(inner: &mut Inner, root: &Place, path: &[u8]) -> Result<Place> {
    let names: Vec<FileName> = path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
    let mut at = root.clone();
    for (index, name) in names.iter().enumerate() {
        if index > 0 && at.node.is_none() {
            at.node = Some(inner.add(&at, FileNode::directory(0o755))?);
        }
        at = step(inner, &at, name)?;
    }
    Ok(at)
}

/// The place at a path below the root, if its directories are there.
pub(super) fn existing(inner: &Inner, root: &Place, path: &[u8]) -> Result<Place> {
    let mut at = root.clone();
    for name in path.split(|byte| *byte == b'/') {
        at = step(inner, &at, name)?;
    }
    Ok(at)
}

/// Goes into a directory, through no link.
fn step(inner: &Inner, at: &Place, name: &[u8]) -> Result<Place> {
    let parent = at.node.ok_or_else(not_found)?;
    let entries = match &inner.tree.node(parent).content {
        NodeContent::Directory(entries) => entries,
        NodeContent::Link(_) => {
            return Err(Error::new(ErrorKind::Invalid, "its path leads through a symbolic link"));
        }
        _ => return Err(not_directory()),
    };
    let mut names = at.names.clone();
    names.push(name.to_vec());
    let mut chain = at.chain.clone();
    // A root is in its own chain already.
    if chain.len() < names.len() {
        chain.push(parent);
    }
    Ok(Place { names, chain, parent, node: entries.get(name).copied() })
}

/// Takes away what has the name. A directory must be empty.
pub(super) fn cleared(inner: &mut Inner, place: Place) -> Result<Place> {
    if let Some(id) = place.node {
        if inner.tree.entries(id).is_ok_and(|entries| !entries.is_empty()) {
            return Err(Error::new(ErrorKind::IsDirectory, "a directory that is not empty is in the way"));
        }
        inner.remove(&place)?;
    }
    Ok(Place { node: None, ..place })
}

fn at(name: &[u8], error: Error) -> Error {
    Error::new(error.kind(), format!("`{}`: {}", shown(name), error.reason()))
}

/// Says what is wrong with the stream. A refusal of its sender is told as it was.
fn broken(error: io::Error) -> Error {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(inner) = source {
        let inner = match inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => wrapped as &(dyn std::error::Error + 'static),
            None => inner,
        };
        if let Some(refused) = inner.downcast_ref::<Error>() {
            return Error::new(refused.kind(), refused.reason().to_owned());
        }
        source = inner.source();
    }
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::new(ErrorKind::Invalid, "the tar stream ends early"),
        _ => Error::new(ErrorKind::Invalid, format!("the tar stream can't be read: {error}")),
    }
}
