//! A node of the tree: a file, a directory, a link, a fifo or a device.

use std::collections::BTreeMap;
use std::time::SystemTime;

use eyot::{Error, ErrorKind, FileStat, FileType, Result};

use super::content::FileContent;
use super::names::FileName;

/// The place of a node in the tree.
pub(super) type NodeId = usize;

/// The place of an account in the tree.
pub(super) type AccountId = usize;

/// The device files that programs expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Device {
    Null,
    Zero,
    Full,
    Random,
}

/// The kind of a node, with what it holds.
#[derive(Debug, Clone)]
pub(super) enum NodeContent {
    File(FileContent),
    Directory(BTreeMap<FileName, NodeId>),
    Link(Vec<u8>),
    Fifo(Vec<u8>),
    Device(Device),
}

/// The kind of a node, without what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    File,
    Directory,
    Link,
    Fifo,
    Device,
}

impl NodeKind {
    pub(super) fn is_directory(self) -> bool {
        self == Self::Directory
    }
}

/// The one whose permission bits count. There is one user, who owns what is made in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeOwner {
    Root,
    User,
}

/// A way to use a node, which permission bits allow or forbid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAccess {
    Read,
    /// Of a directory: to change its names.
    Write,
    /// Of a directory: to look up a name in it.
    Search,
}

/// A file, a directory or another thing, under one name or several.
#[derive(Debug, Clone)]
pub(super) struct FileNode {
    pub content: NodeContent,
    pub mode: u32,
    pub owner: NodeOwner,
    pub modified: SystemTime,
    /// The number of its names.
    pub names: u32,
    /// The account that its bytes are charged to: its directory's.
    pub account: AccountId,
}

impl FileNode {
    /// Makes a node of the user's.
    pub(super) fn new(content: NodeContent, mode: u32) -> Self {
        Self { content, mode, owner: NodeOwner::User, modified: SystemTime::now(), names: 1, account: 0 }
    }

    /// Makes an empty directory.
    pub(super) fn directory(mode: u32) -> Self {
        Self::new(NodeContent::Directory(BTreeMap::new()), mode)
    }

    /// Makes a file.
    pub(super) fn file(bytes: Vec<u8>, mode: u32) -> Self {
        Self::new(NodeContent::File(bytes.into()), mode)
    }

    pub(super) fn kind(&self) -> NodeKind {
        match self.content {
            NodeContent::File(_) => NodeKind::File,
            NodeContent::Directory(_) => NodeKind::Directory,
            NodeContent::Link(_) => NodeKind::Link,
            NodeContent::Fifo(_) => NodeKind::Fifo,
            NodeContent::Device(_) => NodeKind::Device,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        self.kind().is_directory()
    }

    pub(super) fn file_type(&self) -> FileType {
        match self.content {
            NodeContent::File(_) => FileType::File,
            NodeContent::Directory(_) => FileType::Directory,
            NodeContent::Link(_) => FileType::Symlink,
            NodeContent::Fifo(_) | NodeContent::Device(_) => FileType::Other,
        }
    }

    pub(super) fn size(&self) -> u64 {
        match &self.content {
            NodeContent::File(content) => content.len(),
            NodeContent::Link(target) => target.len() as u64,
            NodeContent::Directory(_) | NodeContent::Fifo(_) | NodeContent::Device(_) => 0,
        }
    }

    /// The bytes that it takes of the quota.
    pub(super) fn stored(&self) -> u64 {
        match &self.content {
            NodeContent::File(content) => content.stored(),
            NodeContent::Fifo(bytes) => bytes.len() as u64,
            _ => self.size(),
        }
    }

    pub(super) fn stat(&self, is_symbolic_link: bool) -> FileStat {
        let since = self.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        FileStat {
            is_file: matches!(self.content, NodeContent::File(_)),
            is_directory: self.is_directory(),
            is_symbolic_link: Some(is_symbolic_link),
            size: Some(self.size()),
            modified_ms: i64::try_from(since.as_millis()).ok(),
            mode: Some(self.mode),
        }
    }

    /// Refuses what the permission bits forbid.
    pub(super) fn check(&self, access: FileAccess) -> Result<()> {
        let bit = match access {
            FileAccess::Read => 4,
            FileAccess::Write => 2,
            FileAccess::Search => 1,
        };
        let shift = if self.owner == NodeOwner::User { 6 } else { 0 };
        if self.mode >> shift & bit == 0 { Err(not_permitted()) } else { Ok(()) }
    }
}

pub(super) fn not_found() -> Error {
    Error::new(ErrorKind::NotFound, "does not exist")
}

pub(super) fn already_exists() -> Error {
    Error::new(ErrorKind::AlreadyExists, "already exists")
}

pub(super) fn not_empty() -> Error {
    Error::new(ErrorKind::AlreadyExists, "is a directory that is not empty")
}

pub(super) fn is_a_directory() -> Error {
    Error::new(ErrorKind::IsDirectory, "is a directory")
}

pub(super) fn not_directory() -> Error {
    Error::new(ErrorKind::NotDirectory, "is not a directory, or a part of its path is not")
}

pub(super) fn not_regular() -> Error {
    Error::new(ErrorKind::Invalid, "is a socket, a fifo or a device, not a regular file")
}

pub(super) fn not_permitted() -> Error {
    Error::new(ErrorKind::Permission, "permission is denied")
}

pub(super) fn no_space() -> Error {
    Error::new(ErrorKind::Quota, "no space is left")
        .with_hint("the files of a sandbox in memory may take 256 MiB together, or --disk; `eyot inspect NAME` shows both")
}

pub(super) fn leaves() -> Error {
    Error::new(ErrorKind::Permission, "leads out of the directory that it is held beneath")
}

pub(super) fn too_long() -> Error {
    Error::new(ErrorKind::Invalid, "its name or path is too long")
}

pub(super) fn too_many_links() -> Error {
    Error::new(ErrorKind::Invalid, "its path has too many symbolic links, or one that may not be followed")
}

pub(super) fn too_large(limit: u64) -> Error {
    Error::new(ErrorKind::TooLarge, format!("is larger than the limit of {limit} bytes"))
}
