//! The files of sandboxes in memory. Several sandboxes may share them.

use std::collections::HashSet;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::{
    ByteRange, ByteStream, ConfinedPath, CreateDirOptions, DirEntry, Error, ErrorKind, FileStat,
    RemoveOptions, Result, WatchEventKind, WriteMode, WriteOptions,
};
use futures_util::{StreamExt, TryStreamExt};

use super::content::FileContent;
use super::frozen::FrozenFiles;
use super::furniture;
use super::names::{FileName, odd_bytes, shown};
use super::node::{
    Device, FileAccess, FileNode, NodeContent, NodeId, already_exists, is_a_directory, no_space,
    not_directory, not_empty, not_regular, too_large,
};
use super::place::Place;
use super::tree::FileTree;
use super::walk::{Last, find};
use super::watchers::Watchers;

/// The bytes that files in memory may take, unless their maker says otherwise: 256 MiB.
pub const DEFAULT_MAX_BYTES: u64 = 256 << 20;

/// Files in memory. Clones are the same files.
#[derive(Debug, Clone)]
#[doc(alias = "InMemoryFs")]
pub struct MemoryFiles {
    inner: Arc<Mutex<Inner>>,
    root: NodeId,
}

/// The files and those who watch them.
#[derive(Debug, Default)]
pub(super) struct Inner {
    pub tree: FileTree,
    pub watchers: Watchers,
}

/// The files, held for one look or one change.
pub(super) struct HeldFiles<'a> {
    inner: MutexGuard<'a, Inner>,
    pub root: NodeId,
}

impl Deref for HeldFiles<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for HeldFiles<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Default for MemoryFiles {
    /// Makes files that may take 256 MiB.
    fn default() -> Self {
        Self::with_max_bytes(DEFAULT_MAX_BYTES)
    }
}

impl MemoryFiles {
    /// Makes files that may take so many bytes, names included. The usual directories and devices
    /// are there from the beginning.
    pub fn with_max_bytes(max_bytes: u64) -> Self {
        Self::beside(Arc::default(), max_bytes)
    }

    /// Makes files beside others, so that both can have a directory.
    pub(super) fn beside(inner: Arc<Mutex<Inner>>, max_bytes: u64) -> Self {
        let mut held = inner.lock().unwrap_or_else(PoisonError::into_inner);
        let root = furniture::furnished(&mut held.tree, max_bytes);
        drop(held);
        Self { inner, root }
    }

    /// Returns the bytes that they take.
    pub fn used_bytes(&self) -> u64 {
        self.lock().tree.used_bytes(self.root)
    }

    /// Returns the most bytes that they may take.
    pub fn max_bytes(&self) -> u64 {
        self.lock().tree.max_bytes(self.root)
    }

    /// Takes these files in place of its own. Nothing changes if there is no room for them.
    pub(super) fn fill(&self, files: &FrozenFiles) -> Result<()> {
        let mut held = self.lock();
        let root = held.root;
        held.tree.thaw(root, files)
    }

    /// Lets go of all of them but the directories that others have too.
    pub(super) fn release(&self) {
        self.lock().tree.release_apart(self.root);
    }

    pub(super) fn lock(&self) -> HeldFiles<'_> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        HeldFiles { inner, root: self.root }
    }

    pub(super) fn read(&self, file: &ConfinedPath, range: ByteRange) -> Result<ByteStream> {
        let content = self.lock().content(file)?;
        let end = range.limit.map_or(u64::MAX, |limit| range.offset.saturating_add(limit));
        let pieces = futures_util::stream::unfold((content, range.offset), move |(content, at)| async move {
            // A huge file holds up nobody else, and its reader can be stopped.
            tokio::task::coop::consume_budget().await;
            let piece = content.piece(&(at..end))?;
            let next = at + piece.len() as u64;
            Some((Ok(piece), (content, next)))
        });
        Ok(pieces.boxed())
    }

    pub(super) async fn write(
        &self,
        file: &ConfinedPath,
        content: ByteStream,
        options: WriteOptions,
    ) -> Result<u64> {
        let room = {
            let inner = self.lock();
            let place = inner.check_write(file, options)?;
            inner.tree.max_bytes(place.parent)
        };
        let bytes = collect(content, options.max_file_bytes.unwrap_or(u64::MAX), room).await?;
        self.lock().write(file, bytes, options)
    }

    pub(super) fn stat(&self, file: &ConfinedPath) -> Result<FileStat> {
        let inner = self.lock();
        let itself = inner.find(file, Last::Keep)?;
        let is_link = matches!(inner.tree.node(itself.found()?).content, NodeContent::Link(_));
        let place = inner.find(file, Last::Follow)?;
        Ok(inner.tree.node(place.found()?).stat(is_link))
    }

    pub(super) fn list(&self, directory: &ConfinedPath) -> Result<Vec<DirEntry>> {
        let inner = self.lock();
        let id = inner.find(directory, Last::Follow)?.found()?;
        let entries = inner.tree.entries(id)?;
        inner.tree.node(id).check(FileAccess::Read)?;
        let entry = |(name, id): (&FileName, &NodeId)| {
            let node = inner.tree.node(*id);
            DirEntry {
                name: shown(name),
                name_bytes: odd_bytes(name),
                file_type: Some(node.file_type()),
                size: Some(node.size()),
            }
        };
        Ok(entries.iter().map(entry).collect())
    }

    pub(super) fn exists(&self, file: &ConfinedPath) -> Result<bool> {
        use ErrorKind::{Invalid, NotDirectory, NotFound};
        match self.lock().find(file, Last::Follow) {
            Ok(place) => Ok(place.node.is_some()),
            Err(error) if matches!(error.kind(), NotFound | NotDirectory | Invalid) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn create_dir(&self, directory: &ConfinedPath, options: CreateDirOptions) -> Result<()> {
        let mut inner = self.lock();
        if options.recursive {
            return inner.create_all(directory);
        }
        let place = inner.find(directory, Last::Keep)?;
        if place.node.is_some() {
            return Err(already_exists());
        }
        inner.add(&place, FileNode::directory(0o755)).map(drop)
    }

    pub(super) fn remove(&self, file: &ConfinedPath, options: RemoveOptions) -> Result<()> {
        let mut inner = self.lock();
        match inner.remove_at(file, options.recursive) {
            Err(error) if options.force && error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    pub(super) fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> Result<()> {
        let mut inner = self.lock();
        let (from, to) = (inner.find(from, Last::Keep)?, inner.find(to, Last::Keep)?);
        from.found()?;
        inner.rename(&from, &to)
    }
}

/// Collects what is written to a file. It is refused once it is over a limit.
async fn collect(mut content: ByteStream, most: u64, room: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(piece) = content.try_next().await? {
        bytes.extend_from_slice(&piece);
        let len = bytes.len() as u64;
        if len > most {
            return Err(too_large(most));
        }
        if len > room {
            return Err(no_space());
        }
    }
    Ok(bytes)
}

impl HeldFiles<'_> {
    pub(super) fn find(&self, path: &ConfinedPath, last: Last) -> Result<Place> {
        let beneath = path.beneath.as_ref().map(|beneath| beneath.as_str().as_bytes());
        find(&self.tree, self.root, path.path.as_str().as_bytes(), last, beneath)
    }

    /// Returns the content of a file as it is now.
    pub(super) fn content(&self, file: &ConfinedPath) -> Result<FileContent> {
        let id = self.find(file, Last::Follow)?.found()?;
        self.content_of(id)
    }

    /// Refuses a write for what is known before its content has come.
    fn check_write(&self, file: &ConfinedPath, options: WriteOptions) -> Result<Place> {
        let last = if options.mode == WriteMode::CreateNew { Last::Keep } else { Last::Follow };
        let place = self.find(file, last)?;
        let Some(id) = place.node else {
            self.tree.node(place.parent).check(FileAccess::Write)?;
            return Ok(place);
        };
        let node = self.tree.node(id);
        match &node.content {
            _ if options.mode == WriteMode::CreateNew => Err(already_exists()),
            NodeContent::File(_) => node.check(FileAccess::Write).map(|()| place),
            NodeContent::Directory(_) => Err(is_a_directory()),
            _ => Err(not_regular()),
        }
    }

    fn write(&mut self, file: &ConfinedPath, bytes: Vec<u8>, options: WriteOptions) -> Result<u64> {
        let place = self.check_write(file, options)?;
        let Some(id) = place.node else {
            let size = bytes.len() as u64;
            self.add(&place, FileNode::file(bytes, options.permissions.unwrap_or(0o644)))?;
            return Ok(size);
        };
        if options.mode == WriteMode::Append {
            let most = options.max_file_bytes.unwrap_or(u64::MAX);
            if self.tree.node(id).size().saturating_add(bytes.len() as u64) > most {
                return Err(too_large(most));
            }
            self.tree.append(id, &bytes)?;
        } else {
            self.tree.set_content(id, bytes.into())?;
        }
        if let Some(mode) = options.permissions {
            self.tree.node_mut(id).mode = mode;
        }
        self.tell(&WatchEventKind::Modified, &place, false);
        Ok(self.tree.node(id).size())
    }

    /// Removes with the semantics of FileNode's `fs.rm`: a link goes itself, never its target.
    fn remove_at(&mut self, file: &ConfinedPath, recursive: bool) -> Result<()> {
        let is_held = file.beneath.as_ref().is_some_and(|beneath| *beneath == file.path);
        if file.path.is_root() || is_held {
            return Err(Error::new(ErrorKind::Invalid, "can't be removed"));
        }
        let place = self.find(file, Last::Keep)?;
        if place.names.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "can't be removed"));
        }
        if self.tree.node(place.found()?).is_directory() && !recursive {
            return Err(is_a_directory());
        }
        self.remove(&place)
    }

    /// Makes a directory and those above it that are missing.
    pub(super) fn create_all(&mut self, directory: &ConfinedPath) -> Result<()> {
        let mut missing = vec![directory.clone()];
        let mut place = loop {
            let Some(next) = missing.last() else { return Ok(()) };
            match self.find(next, Last::Follow) {
                Ok(place) => break place,
                Err(error) if error.kind() == ErrorKind::NotFound && !next.path.is_root() => {
                    let parent = next.parent();
                    missing.push(parent);
                }
                Err(error) => return Err(error),
            }
        };
        loop {
            missing.pop();
            match place.node {
                Some(id) if self.tree.node(id).is_directory() => {}
                Some(_) if missing.is_empty() => return Err(already_exists()),
                Some(_) => return Err(not_directory()),
                None => {
                    self.add(&place, FileNode::directory(0o755))?;
                }
            }
            let Some(deeper) = missing.last() else { return Ok(()) };
            place = self.find(deeper, Last::Follow)?;
        }
    }
}

impl Inner {
    pub(super) fn content_of(&self, id: NodeId) -> Result<FileContent> {
        let node = self.tree.node(id);
        match &node.content {
            NodeContent::File(content) => node.check(FileAccess::Read).map(|()| content.clone()),
            NodeContent::Directory(_) => Err(is_a_directory()),
            _ => Err(not_regular()),
        }
    }

    /// Adds a node and tells those who watch.
    pub(super) fn add(&mut self, place: &Place, node: FileNode) -> Result<NodeId> {
        let is_directory = node.is_directory();
        let id = self.tree.add(place, node)?;
        self.tell(&WatchEventKind::Created, place, is_directory);
        Ok(id)
    }

    /// Replaces what a file holds. A device takes everything, a fifo takes it in turn.
    pub(super) fn overwrite(&mut self, place: &Place, id: NodeId, content: FileContent) -> Result<()> {
        let node = self.tree.node(id);
        node.check(FileAccess::Write)?;
        match &node.content {
            NodeContent::File(_) => self.tree.set_content(id, content)?,
            NodeContent::Fifo(_) => {
                let bytes = content.to_vec(u64::MAX).unwrap_or_default();
                self.tree.append(id, &bytes)?;
            }
            NodeContent::Device(Device::Full) => return Err(no_space()),
            NodeContent::Device(_) => return Ok(()),
            NodeContent::Directory(_) => return Err(is_a_directory()),
            NodeContent::Link(_) => return Err(not_regular()),
        }
        self.tell(&WatchEventKind::Modified, place, false);
        Ok(())
    }

    /// Removes what is at a place, with everything below it.
    pub(super) fn remove(&mut self, place: &Place) -> Result<()> {
        let below = self.places_below(place)?;
        let is_directory = self.tree.node(place.found()?).is_directory();
        self.tree.remove(place)?;
        for (below, is_directory) in below.into_iter().rev() {
            self.tell(&WatchEventKind::Removed, &below, is_directory);
        }
        self.tell(&WatchEventKind::Removed, place, is_directory);
        Ok(())
    }

    /// Lists the places below one, with what they are, if anybody watches.
    fn places_below(&self, place: &Place) -> Result<Vec<(Place, bool)>> {
        let id = place.found()?;
        if self.watchers.are_none() {
            return Ok(Vec::new());
        }
        let mut chain = [place.chain.as_slice(), &[id]].concat();
        let mut all = Vec::new();
        for (names, id) in self.tree.everything_below(id) {
            // Depth first: the directories on the way are those that came before, as deep as this one.
            chain.truncate(place.chain.len() + names.len());
            let parent = chain.last().copied().unwrap_or(id);
            let names = [place.names.as_slice(), &names].concat();
            let is_directory = self.tree.node(id).is_directory();
            all.push((Place { names, chain: chain.clone(), parent, node: Some(id) }, is_directory));
            chain.push(id);
        }
        Ok(all)
    }

    /// Removes what is at a place, whatever the permission bits say. Nobody is told.
    pub(super) fn remove_unchecked(&mut self, place: &Place) -> Result<()> {
        self.tree.remove_unchecked(place)
    }

    /// Removes an empty directory or anything else, as `rm` and `rmdir` do.
    pub(super) fn remove_one(&mut self, place: &Place, recursive: bool) -> Result<()> {
        match self.tree.entries(place.found()?) {
            Ok(entries) if !entries.is_empty() && !recursive => Err(not_empty()),
            _ => self.remove(place),
        }
    }

    pub(super) fn rename(&mut self, from: &Place, to: &Place) -> Result<()> {
        let id = from.found()?;
        let is_directory = self.tree.node(id).is_directory();
        self.tree.rename(from, to)?;
        if !self.watchers.are_none() {
            let inside: HashSet<NodeId> = self.tree.everything_below(id).map(|(_, id)| id).collect();
            self.watchers.renamed(id, &inside, (from, to), is_directory);
        }
        Ok(())
    }

    /// Tells those who watch what has happened at a place.
    pub(super) fn tell(&mut self, kind: &WatchEventKind, place: &Place, is_directory: bool) {
        self.watchers.tell(kind, place, is_directory);
    }
}
