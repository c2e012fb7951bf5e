//! What `ls` and `stat` know of a node.

use bashkit::{FileType, Metadata};

use super::mode::letters;
use super::run::{ProgramRun, reason};
use super::times::Moment;
use crate::memory::files::HeldFiles;
use crate::memory::node::{Device, NodeContent, NodeId, NodeOwner};
use crate::memory::walk::Last;

/// The bytes of a block of a disk, in which files take room.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// The longest target that a link keeps without a block.
const SHORT_TARGET: u64 = 59;

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownNodeKind {
    File,
    Directory,
    Link,
    Fifo,
    /// A device, with its two numbers.
    Device(u32, u32),
}

/// A node as it was at one look.
#[derive(Debug, Clone)]
pub(super) struct NodeFacts {
    pub kind: ShownNodeKind,
    /// The permission bits.
    pub mode: u32,
    pub links: u64,
    pub is_root: bool,
    pub size: u64,
    /// The bytes of the blocks that it takes.
    pub disk_bytes: u64,
    pub modified: Moment,
    pub inode: NodeId,
    /// The target of a link.
    pub target: Option<Vec<u8>>,
}

impl NodeFacts {
    pub(super) fn of(held: &HeldFiles<'_>, id: NodeId) -> Self {
        let node = held.tree.node(id);
        let kind = match &node.content {
            NodeContent::File(_) => ShownNodeKind::File,
            NodeContent::Directory(_) => ShownNodeKind::Directory,
            NodeContent::Link(_) => ShownNodeKind::Link,
            NodeContent::Fifo(_) => ShownNodeKind::Fifo,
            NodeContent::Device(device) => device_kind(*device),
        };
        let target = match &node.content {
            NodeContent::Link(target) => Some(target.clone()),
            _ => None,
        };
        let links = match &node.content {
            // Its own name, its `.`, and the `..` of each directory in it.
            NodeContent::Directory(entries) => {
                2 + entries.values().filter(|id| held.tree.node(**id).is_directory()).count() as u64
            }
            _ => node.names.into(),
        };
        let disk_bytes = match kind {
            ShownNodeKind::File => node.stored().div_ceil(BLOCK_BYTES) * BLOCK_BYTES,
            ShownNodeKind::Directory => BLOCK_BYTES,
            ShownNodeKind::Link if node.size() > SHORT_TARGET => BLOCK_BYTES,
            _ => 0,
        };
        Self {
            kind,
            mode: node.mode & 0o7777,
            links,
            is_root: node.owner == NodeOwner::Root,
            size: if kind == ShownNodeKind::Directory { BLOCK_BYTES } else { node.size() },
            disk_bytes,
            modified: node.modified.into(),
            inode: id,
            target,
        }
    }

    /// A file of the shell itself: `/proc`, or a substituted process.
    pub(super) fn beyond(found: &Metadata) -> Self {
        let kind = match found.file_type {
            FileType::Directory => ShownNodeKind::Directory,
            FileType::Symlink => ShownNodeKind::Link,
            FileType::Fifo => ShownNodeKind::Fifo,
            FileType::File => ShownNodeKind::File,
        };
        Self {
            kind,
            mode: found.mode & 0o7777,
            links: if kind == ShownNodeKind::Directory { 2 } else { 1 },
            is_root: true,
            size: found.size,
            disk_bytes: 0,
            modified: found.modified.into(),
            inode: 1,
            target: None,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        self.kind == ShownNodeKind::Directory
    }

    pub(super) fn is_program(&self) -> bool {
        self.kind == ShownNodeKind::File && self.mode & 0o111 != 0
    }

    pub(super) fn owner(&self) -> (u32, &'static str) {
        if self.is_root { (0, "root") } else { (1000, "user") }
    }

    /// The bits of `st_mode`.
    pub(super) fn raw_mode(&self) -> u32 {
        let kind = match self.kind {
            ShownNodeKind::File => 0o100_000,
            ShownNodeKind::Directory => 0o040_000,
            ShownNodeKind::Link => 0o120_000,
            ShownNodeKind::Fifo => 0o010_000,
            ShownNodeKind::Device(..) => 0o020_000,
        };
        kind | self.mode
    }

    /// The mode as `ls -l` shows it: `-rw-r--r--`.
    pub(super) fn mode_text(&self) -> String {
        let kind = match self.kind {
            ShownNodeKind::File => '-',
            ShownNodeKind::Directory => 'd',
            ShownNodeKind::Link => 'l',
            ShownNodeKind::Fifo => 'p',
            ShownNodeKind::Device(..) => 'c',
        };
        format!("{kind}{}", letters(self.mode))
    }
}

fn device_kind(device: Device) -> ShownNodeKind {
    match device {
        Device::Null => ShownNodeKind::Device(1, 3),
        Device::Zero => ShownNodeKind::Device(1, 5),
        Device::Full => ShownNodeKind::Device(1, 7),
        Device::Random => ShownNodeKind::Device(1, 8),
    }
}

/// Looks at what a name leads to.
///
/// # Errors
/// The words in which programs say why there is nothing.
pub(super) async fn look(run: &ProgramRun<'_>, name: &str, last: Last) -> Result<NodeFacts, &'static str> {
    let found = {
        let held = run.hold();
        run.find(&held, name, last)
            .and_then(|place| place.found())
            .map(|id| NodeFacts::of(&held, id))
            .map_err(|error| reason(&error))
    };
    match found {
        Ok(facts) if name.ends_with('/') && !facts.is_directory() => Err("Not a directory"),
        Err(why) if !name.is_empty() => match run.look_beyond(name).await {
            Some(found) => Ok(NodeFacts::beyond(&found)),
            None => Err(why),
        },
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_show_the_bits_that_stand_for_two() {
        let mut facts = NodeFacts {
            kind: ShownNodeKind::Directory,
            mode: 0o1777,
            links: 2,
            is_root: true,
            size: 0,
            disk_bytes: 0,
            modified: Moment { seconds: 0, nanos: 0 },
            inode: 1,
            target: None,
        };
        for (mode, text) in
            [(0o1777, "drwxrwxrwt"), (0o1776, "drwxrwxrwT"), (0o4755, "drwsr-xr-x"), (0o2644, "drw-r-Sr--")]
        {
            facts.mode = mode;
            assert_eq!(facts.mode_text(), text);
        }
        assert_eq!(facts.raw_mode(), 0o042_644);
    }
}
