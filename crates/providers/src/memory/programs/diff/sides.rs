//! One side of a comparison: a name and what is there.

use std::time::SystemTime;

use super::DiffJob;
use crate::memory::names::shown;
use crate::memory::node::{FileAccess, NodeContent};
use crate::memory::programs::run::reason;
use crate::memory::walk::Last;

/// The node at a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SideKind {
    Missing(&'static str),
    /// The file is missing, and counts as empty.
    Empty,
    Directory,
    File {
        is_empty: bool,
    },
    /// A link that is compared itself, with its target.
    Link(Vec<u8>),
    Fifo,
    Device,
    /// The standard input, or what the shell alone knows.
    Stream,
}

impl SideKind {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File { is_empty: true } => "regular empty file",
            Self::Link(_) => "symbolic link",
            Self::Fifo => "fifo",
            Self::Device => "character special file",
            _ => "regular file",
        }
    }
}

/// A name and what is there.
#[derive(Debug, Clone)]
pub(super) struct DiffSide {
    pub name: String,
    pub kind: SideKind,
    pub modified: SystemTime,
}

impl DiffSide {
    pub(super) fn is_directory(&self) -> bool {
        self.kind == SideKind::Directory
    }

    pub(super) fn is_missing(&self) -> bool {
        matches!(self.kind, SideKind::Missing(_))
    }

    /// Tells whether its bytes can be compared.
    pub(super) fn is_readable(&self) -> bool {
        matches!(self.kind, SideKind::File { .. } | SideKind::Stream | SideKind::Empty)
    }
}

impl DiffJob<'_, '_> {
    /// Looks at what a name leads to.
    pub(super) fn side(&self, name: &str) -> DiffSide {
        let side = |kind, modified| DiffSide { name: name.to_owned(), kind, modified };
        if name == "-" {
            return side(SideKind::Stream, SystemTime::now());
        }
        let last = if self.options.keeps_links { Last::Keep } else { Last::Follow };
        match self.run.look(name, last) {
            Ok(node) => {
                let kind = match node.content {
                    NodeContent::Directory(_) => match node.check(FileAccess::Read) {
                        Ok(()) => SideKind::Directory,
                        Err(error) => SideKind::Missing(reason(&error)),
                    },
                    NodeContent::File(ref content) => SideKind::File { is_empty: content.len() == 0 },
                    NodeContent::Link(ref target) => SideKind::Link(target.clone()),
                    NodeContent::Fifo(_) => SideKind::Fifo,
                    NodeContent::Device(_) => SideKind::Device,
                };
                side(kind, node.modified)
            }
            Err(_) if name.starts_with("/dev/") || name.starts_with("/proc/") => {
                side(SideKind::Stream, SystemTime::now())
            }
            Err(error) => side(SideKind::Missing(reason(&error)), SystemTime::UNIX_EPOCH),
        }
    }

    /// Lists the names in a directory, in the order of their bytes.
    pub(super) fn names_in(&self, side: &DiffSide) -> Vec<String> {
        if !side.is_directory() {
            return Vec::new();
        }
        match self.run.look(&side.name, Last::Follow).map(|node| node.content) {
            Ok(NodeContent::Directory(entries)) => entries.keys().map(|name| shown(name)).collect(),
            _ => Vec::new(),
        }
    }
}

/// The path of a name in a directory.
pub(super) fn joined(directory: &str, name: &str) -> String {
    let slash = if directory.ends_with('/') { "" } else { "/" };
    format!("{directory}{slash}{name}")
}

/// The last name of a path.
pub(super) fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}
