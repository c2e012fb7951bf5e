//! The files as the interpreter asks for them. It follows links itself, so nothing here follows the
//! last one.

use std::io::{Error as IoError, ErrorKind as IoErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use bashkit::{DirEntry, FileSystem, FileSystemExt, FileType, FsLimits, FsUsage, Metadata};
use eyot::{Error, ErrorKind, WatchEventKind};

use super::files::{HeldFiles, MemoryFiles};
use super::furniture::device_bytes;
use super::host_files;
use super::names::{FileName, bytes_of, os_string, shown};
use super::node::{
    Device, FileAccess, FileNode, NodeContent, NodeId, already_exists, is_a_directory, not_found, too_large,
};
use super::odd_names::{decoded, encoded};
use super::place::Place;
use super::proc::{ProcEntry, lookup};
use super::reasons::reason;
use super::same_file;
use super::tasks::Tasks;
use super::walk::{Last, find};

/// The largest file that is read at once. The interpreter takes a file whole.
pub(super) const MAX_READ_BYTES: u64 = 256 << 20;

/// The files that an interpreter sees: those of its sandbox, or none while it has no sandbox.
#[derive(Clone, Default)]
pub(super) struct ShellFiles(Arc<Mutex<Option<Arc<SandboxView>>>>);

/// The part of a sandbox that its interpreter sees.
pub(super) struct SandboxView {
    pub files: MemoryFiles,
    pub tasks: Arc<Tasks>,
    pub host_name: String,
    /// Set if names that the interpreter refuses are encoded.
    pub encodes_names: bool,
}

impl From<SandboxView> for ShellFiles {
    fn from(view: SandboxView) -> Self {
        Self(Arc::new(Mutex::new(Some(Arc::new(view)))))
    }
}

type Answer<T> = bashkit::Result<T>;

/// The error in the words that programs print.
fn told(error: Error) -> bashkit::Error {
    let kind = match error.kind() {
        ErrorKind::NotFound => IoErrorKind::NotFound,
        ErrorKind::AlreadyExists => IoErrorKind::AlreadyExists,
        ErrorKind::IsDirectory => IoErrorKind::IsADirectory,
        ErrorKind::NotDirectory => IoErrorKind::NotADirectory,
        ErrorKind::Permission => IoErrorKind::PermissionDenied,
        ErrorKind::Quota => IoErrorKind::StorageFull,
        ErrorKind::TooLarge => IoErrorKind::FileTooLarge,
        _ => IoErrorKind::InvalidInput,
    };
    IoError::new(kind, reason(&error)).into()
}

/// The same, where something that exists can only be a directory that is not empty.
fn told_of_rest(error: Error) -> bashkit::Error {
    match error.kind() {
        ErrorKind::AlreadyExists => {
            IoError::new(IoErrorKind::DirectoryNotEmpty, "Directory not empty").into()
        }
        _ => told(error),
    }
}

fn is_a_link() -> bashkit::Error {
    IoError::other("Too many levels of symbolic links").into()
}

fn read_only() -> bashkit::Error {
    IoError::new(IoErrorKind::PermissionDenied, "Permission denied").into()
}

fn metadata(node: &FileNode) -> Metadata {
    let file_type = match node.content {
        NodeContent::File(_) | NodeContent::Device(_) => FileType::File,
        NodeContent::Directory(_) => FileType::Directory,
        NodeContent::Link(_) => FileType::Symlink,
        NodeContent::Fifo(_) => FileType::Fifo,
    };
    let size = if node.is_directory() { 4096 } else { node.size() };
    Metadata { file_type, size, mode: node.mode, modified: node.modified, created: node.modified }
}

fn proc_metadata(entry: &ProcEntry) -> Metadata {
    let (file_type, mode) = match entry {
        ProcEntry::Directory(_) => (FileType::Directory, 0o555),
        ProcEntry::File(_) => (FileType::File, 0o444),
    };
    let now = SystemTime::now();
    Metadata { file_type, size: 0, mode, modified: now, created: now }
}

/// Returns the metadata of a file with the host's name.
fn host_metadata(bytes: &[u8]) -> Metadata {
    let now = SystemTime::now();
    Metadata { file_type: FileType::File, size: bytes.len() as u64, mode: 0o644, modified: now, created: now }
}

fn place(inner: &HeldFiles<'_>, path: &Path) -> Answer<Place> {
    find(&inner.tree, inner.root, &decoded(&bytes_of(path.as_os_str())), Last::Keep, None).map_err(told)
}

impl ShellFiles {
    /// Sets the sandbox.
    pub(super) fn show(&self, view: SandboxView) {
        *self.slot() = Some(Arc::new(view));
    }

    /// Shows no sandbox any more.
    pub(super) fn hide(&self) {
        *self.slot() = None;
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<SandboxView>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> Answer<Arc<SandboxView>> {
        self.slot().clone().ok_or_else(|| told(not_found()))
    }

    /// Looks a path up in `/proc` and among the files with the host's name. `None`: it is in neither.
    fn provided(&self, path: &Path) -> Option<Answer<ProcEntry>> {
        if let Some(bytes) = self.host_file(path) {
            return Some(Ok(ProcEntry::File(bytes)));
        }
        let rest = path.strip_prefix("/proc").ok()?;
        let found = self.view().map(|view| lookup(&view.tasks, rest));
        Some(found.and_then(|found| found.ok_or_else(|| told(not_found()))))
    }

    /// Returns a file with the host's name, unless the sandbox has its own file at that path.
    fn host_file(&self, path: &Path) -> Option<Vec<u8>> {
        let view = self.view().ok()?;
        let bytes = host_files::content(path, &view.host_name)?;
        let inner = view.files.lock();
        let is_there = place(&inner, path).is_ok_and(|found| found.node.is_some());
        (!is_there).then_some(bytes)
    }

    /// Refuses to change the files in `/proc` and those with the host's name.
    fn writable(&self, path: &Path) -> Answer<()> {
        let is_provided = path.starts_with("/proc") || self.host_file(path).is_some();
        if is_provided { Err(read_only()) } else { Ok(()) }
    }

    /// Writes a file, or adds to it.
    fn put(&self, path: &Path, content: &[u8], is_added: bool) -> Answer<()> {
        self.writable(path)?;
        let view = self.view()?;
        let mut inner = view.files.lock();
        let found = place(&inner, path)?;
        let id = match found.node {
            Some(id) => id,
            None => inner.add(&found, FileNode::file(Vec::new(), 0o644)).map_err(told)?,
        };
        let node = inner.tree.node(id);
        node.check(FileAccess::Write).map_err(told)?;
        match &node.content {
            NodeContent::File(before) => {
                let room = inner.tree.room(id) + if is_added { 0 } else { before.stored() };
                // A disk that is full takes what fits.
                let fits = usize::try_from(room).map_or(content.len(), |room| room.min(content.len()));
                let (fits, rest) = content.split_at(fits);
                let written = if is_added {
                    inner.tree.append(id, fits)
                } else {
                    inner.tree.set_content(id, fits.to_vec().into())
                };
                let full = if rest.is_empty() { Ok(()) } else { Err(super::node::no_space()) };
                written.and(full).map_err(told)?;
            }
            NodeContent::Fifo(_) => inner.tree.append(id, content).map_err(told)?,
            NodeContent::Device(Device::Full) => return Err(told(super::node::no_space())),
            NodeContent::Device(_) => return Ok(()),
            NodeContent::Directory(_) => return Err(told(is_a_directory())),
            NodeContent::Link(_) => return Err(is_a_link()),
        }
        inner.tell(&WatchEventKind::Modified, &found, false);
        Ok(())
    }

    /// Changes what is known of a node.
    fn change(&self, path: &Path, change: impl FnOnce(&mut FileNode)) -> Answer<()> {
        self.writable(path)?;
        let view = self.view()?;
        let mut inner = view.files.lock();
        let found = place(&inner, path)?;
        let id = found.found().map_err(told)?;
        if inner.tree.node(id).owner != super::node::NodeOwner::User {
            return Err(IoError::new(IoErrorKind::PermissionDenied, "Operation not permitted").into());
        }
        change(inner.tree.node_mut(id));
        inner.tell(&WatchEventKind::Modified, &found, false);
        Ok(())
    }

    /// Adds a node at a path that is free.
    fn make(&self, path: &Path, node: FileNode) -> Answer<()> {
        self.writable(path)?;
        let view = self.view()?;
        let mut inner = view.files.lock();
        let found = place(&inner, path)?;
        if found.node.is_some() {
            return Err(told(already_exists()));
        }
        inner.add(&found, node).map(drop).map_err(told)
    }
}

#[async_trait]
impl FileSystemExt for ShellFiles {
    fn usage(&self) -> FsUsage {
        FsUsage::new(self.view().map_or(0, |view| view.files.used_bytes()), 0, 0)
    }

    async fn mkfifo(&self, path: &Path, mode: u32) -> Answer<()> {
        self.make(path, FileNode::new(NodeContent::Fifo(Vec::new()), mode))
    }

    fn limits(&self) -> FsLimits {
        FsLimits::unlimited()
    }

    fn backend_kind(&self) -> &'static str {
        "eyot"
    }
}

#[async_trait]
impl FileSystem for ShellFiles {
    async fn read_file(&self, path: &Path) -> Answer<Vec<u8>> {
        if let Some(entry) = self.provided(path) {
            return match entry? {
                ProcEntry::File(bytes) => Ok(bytes),
                ProcEntry::Directory(_) => Err(told(is_a_directory())),
            };
        }
        let view = self.view()?;
        let mut inner = view.files.lock();
        let id = place(&inner, path)?.found().map_err(told)?;
        let node = inner.tree.node(id);
        node.check(FileAccess::Read).map_err(told)?;
        match &node.content {
            NodeContent::File(content) => {
                content.to_vec(MAX_READ_BYTES).ok_or_else(|| told(too_large(MAX_READ_BYTES)))
            }
            NodeContent::Fifo(_) => Ok(inner.tree.drain_fifo(id)),
            NodeContent::Device(device) => Ok(device_bytes(*device, usize::MAX)),
            NodeContent::Directory(_) => Err(told(is_a_directory())),
            NodeContent::Link(_) => Err(is_a_link()),
        }
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Answer<()> {
        self.put(path, content, false)
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Answer<()> {
        self.put(path, content, true)
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Answer<()> {
        self.writable(path)?;
        let text = path.to_str().ok_or_else(|| IoError::from(IoErrorKind::InvalidInput));
        if !recursive || text.is_err() {
            return self.make(path, FileNode::directory(0o755));
        }
        let path = eyot::SandboxPath::parse(text?).map_err(told)?;
        self.view()?.files.lock().create_all(&path.into()).map_err(told)
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Answer<()> {
        self.writable(path)?;
        let view = self.view()?;
        let mut inner = view.files.lock();
        let found = place(&inner, path)?;
        if found.names.is_empty() {
            return Err(read_only());
        }
        inner.remove_one(&found, recursive).map_err(told_of_rest)
    }

    async fn stat(&self, path: &Path) -> Answer<Metadata> {
        let view = self.view()?;
        if let Some(is_same) = same_file::answer(&view.files, path) {
            return if is_same { self.stat(Path::new("/")).await } else { Err(told(not_found())) };
        }
        if let Some(bytes) = self.host_file(path) {
            return Ok(host_metadata(&bytes));
        }
        if let Some(entry) = self.provided(path) {
            return Ok(proc_metadata(&entry?));
        }
        let view = self.view()?;
        let inner = view.files.lock();
        let id = place(&inner, path)?.found().map_err(told)?;
        Ok(metadata(inner.tree.node(id)))
    }

    async fn lstat(&self, path: &Path) -> Answer<Metadata> {
        self.stat(path).await
    }

    async fn read_dir(&self, path: &Path) -> Answer<Vec<DirEntry>> {
        if let Some(entry) = self.provided(path) {
            return match entry? {
                ProcEntry::File(_) => Err(told(super::node::not_directory())),
                ProcEntry::Directory(names) => Ok(names
                    .into_iter()
                    .map(|(name, entry)| DirEntry { name, metadata: proc_metadata(&entry) })
                    .collect()),
            };
        }
        let view = self.view()?;
        let inner = view.files.lock();
        let id = place(&inner, path)?.found().map_err(told)?;
        let entries = inner.tree.entries(id).map_err(told)?;
        inner.tree.node(id).check(FileAccess::Read).map_err(told)?;
        let entry = |(name, id): (&FileName, &NodeId)| DirEntry {
            name: if view.encodes_names { encoded(name) } else { shown(name) },
            metadata: metadata(inner.tree.node(*id)),
        };
        let mut entries: Vec<DirEntry> = entries.iter().map(entry).collect();
        drop(inner);
        if path == Path::new(host_files::FOLDER) {
            let provided = |name: &&str| {
                let bytes = self.host_file(&path.join(name))?;
                Some(DirEntry { name: (*name).to_owned(), metadata: host_metadata(&bytes) })
            };
            entries.extend(host_files::IN_FOLDER.iter().filter_map(provided));
        }
        Ok(entries)
    }

    async fn exists(&self, path: &Path) -> Answer<bool> {
        if let Some(entry) = self.provided(path) {
            return Ok(entry.is_ok());
        }
        let view = self.view()?;
        let inner = view.files.lock();
        Ok(place(&inner, path).is_ok_and(|found| found.node.is_some()))
    }

    async fn rename(&self, from: &Path, to: &Path) -> Answer<()> {
        self.writable(from)?;
        self.writable(to)?;
        let view = self.view()?;
        let mut inner = view.files.lock();
        let (from, to) = (place(&inner, from)?, place(&inner, to)?);
        from.found().map_err(told)?;
        inner.rename(&from, &to).map_err(told_of_rest)
    }

    async fn copy(&self, from: &Path, to: &Path) -> Answer<()> {
        let content = self.read_file(from).await?;
        let mode = self.stat(from).await?.mode;
        let is_new = !self.exists(to).await?;
        self.write_file(to, &content).await?;
        if is_new { self.chmod(to, mode).await } else { Ok(()) }
    }

    async fn symlink(&self, target: &Path, link: &Path) -> Answer<()> {
        let target = bytes_of(target.as_os_str()).into_owned();
        self.make(link, FileNode::new(NodeContent::Link(target), 0o777))
    }

    async fn read_link(&self, path: &Path) -> Answer<PathBuf> {
        let view = self.view()?;
        let inner = view.files.lock();
        let id = place(&inner, path)?.found().map_err(told)?;
        match &inner.tree.node(id).content {
            NodeContent::Link(target) => Ok(PathBuf::from(os_string(target))),
            _ => Err(IoError::new(IoErrorKind::InvalidInput, "Invalid argument").into()),
        }
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Answer<()> {
        self.change(path, |node| node.mode = mode & 0o7777)
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Answer<()> {
        self.change(path, |node| node.modified = time)
    }
}
