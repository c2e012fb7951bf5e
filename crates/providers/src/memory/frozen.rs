//! Trees that do not change any more: what a snapshot keeps. The contents of files are shared with the tree that they come
//! from, so a snapshot copies names and modes alone.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use eyot::Result;

use super::content::FileContent;
use super::names::FileName;
use super::node::{FileNode, NodeContent, NodeId, no_space};
use super::tree::{FileTree, NODE_BYTES};

/// Files that do not change any more. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct FrozenFiles {
    nodes: Arc<HashMap<NodeId, FileNode>>,
    root: NodeId,
}

impl FrozenFiles {
    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&FileNode> {
        self.nodes.get(&id)
    }

    /// Returns the names of a directory; of anything else none.
    pub(super) fn entries(&self, id: NodeId) -> impl Iterator<Item = (&FileName, NodeId)> {
        let entries = match self.node(id).map(|node| &node.content) {
            Some(NodeContent::Directory(entries)) => Some(entries),
            _ => None,
        };
        entries.into_iter().flatten().map(|(name, id)| (name, *id))
    }

    /// Returns what a directory has under a name.
    pub(super) fn entry(&self, id: NodeId, name: &[u8]) -> Option<NodeId> {
        match &self.node(id)?.content {
            NodeContent::Directory(entries) => entries.get(name).copied(),
            _ => None,
        }
    }

    /// Returns the contents of the files.
    pub(super) fn contents(&self) -> impl Iterator<Item = &FileContent> {
        self.nodes.values().filter_map(|node| match &node.content {
            NodeContent::File(content) => Some(content),
            _ => None,
        })
    }

    /// The bytes that its names and nodes take, without the contents of files.
    pub(super) fn table_bytes(&self) -> u64 {
        let names = |node: &FileNode| match &node.content {
            NodeContent::Directory(entries) => entries.keys().map(|name| name.len() as u64).sum(),
            NodeContent::File(_) => 0,
            _ => node.stored(),
        };
        self.nodes.values().map(|node| NODE_BYTES + names(node)).sum()
    }

    /// The bytes that it takes of the quota of a sandbox, without its root.
    fn bytes(&self) -> u64 {
        let contents: u64 = self.contents().map(FileContent::stored).sum();
        (self.table_bytes() + contents).saturating_sub(NODE_BYTES)
    }
}

impl FileTree {
    /// Keeps everything below a directory as it is now, but for directories with an account of their own, such as persistent
    /// workspaces.
    pub(super) fn freeze(&self, root: NodeId) -> FrozenFiles {
        let mut nodes = HashMap::new();
        let mut left = vec![root];
        while let Some(id) = left.pop() {
            if nodes.contains_key(&id) {
                continue;
            }
            let mut node = self.node(id).clone();
            if let NodeContent::Directory(entries) = &mut node.content {
                entries.retain(|_, id| !self.is_apart(*id, root));
                left.extend(entries.values());
            }
            nodes.insert(id, node);
        }
        FrozenFiles { nodes: Arc::new(nodes), root }
    }

    /// Tells whether this is a directory with an account other than that of the files it is among.
    fn is_apart(&self, id: NodeId, root: NodeId) -> bool {
        let node = self.node(id);
        node.is_directory() && node.account != self.node(root).account
    }

    /// Finds a directory below that has an account of its own.
    pub(super) fn apart_below(&self, root: NodeId) -> Option<NodeId> {
        let mut all = self.everything_below(root).map(|(_, id)| id);
        all.find(|id| self.is_apart(*id, root))
    }

    /// Gives a directory with an account of its own the files of another tree, in place of those that it has. Nothing changes if
    /// there is no room for them.
    pub(super) fn thaw(&mut self, root: NodeId, frozen: &FrozenFiles) -> Result<()> {
        if frozen.bytes() > self.max_bytes(root).saturating_sub(NODE_BYTES) {
            return Err(no_space());
        }
        self.empty(root);
        let account = self.node(root).account;
        // New numbers: whoever holds one of what was there finds nothing.
        let ids: BTreeMap<NodeId, NodeId> = frozen
            .nodes
            .iter()
            .map(|(id, node)| {
                let is_root = *id == frozen.root;
                let copy = || FileNode { account, names: 0, ..node.clone() };
                (*id, if is_root { root } else { self.store(copy()) })
            })
            .collect();
        for (id, new) in &ids {
            self.name_children(*new, frozen.entries(*id).map(|(name, id)| (name.clone(), ids[&id])));
        }
        if let Some(before) = frozen.node(frozen.root) {
            let node = self.node_mut(root);
            (node.mode, node.modified, node.owner) = (before.mode, before.modified, before.owner);
        }
        self.take_room(account, frozen.bytes())
    }

    /// Gives a directory these names.
    fn name_children(&mut self, id: NodeId, children: impl Iterator<Item = (FileName, NodeId)>) {
        if !self.node(id).is_directory() {
            return;
        }
        let children: BTreeMap<FileName, NodeId> = children.collect();
        for child in children.values() {
            self.node_mut(*child).names += 1;
        }
        self.node_mut(id).content = NodeContent::Directory(children);
    }

    /// Takes everything out of a directory.
    fn empty(&mut self, root: NodeId) {
        let account = self.node(root).account;
        let NodeContent::Directory(entries) = &mut self.node_mut(root).content else { return };
        for (name, id) in std::mem::take(entries) {
            self.release(id, name.len(), account);
        }
    }
}

/// The contents of files that several trees hold, each counted once.
#[derive(Debug, Default)]
pub(super) struct SharedContents {
    held: HashMap<usize, (usize, u64)>,
    bytes: u64,
}

impl SharedContents {
    /// The bytes of all contents.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts the contents of a tree.
    pub(super) fn add(&mut self, files: &FrozenFiles) {
        for (address, bytes) in parts_of(files) {
            let (count, _) = self.held.entry(address).or_insert((0, bytes));
            *count += 1;
            if *count == 1 {
                self.bytes += bytes;
            }
        }
    }

    /// Counts them no more.
    pub(super) fn remove(&mut self, files: &FrozenFiles) {
        for (address, bytes) in parts_of(files) {
            let Some((count, _)) = self.held.get_mut(&address) else { continue };
            *count -= 1;
            if *count == 0 {
                self.held.remove(&address);
                self.bytes -= bytes;
            }
        }
    }
}

/// Returns the address and the size of everything that the files of a tree hold, each once.
fn parts_of(files: &FrozenFiles) -> impl Iterator<Item = (usize, u64)> {
    let parts: HashSet<_> = files.contents().flat_map(FileContent::parts).collect();
    parts.into_iter().filter(|(_, bytes)| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::super::files::MemoryFiles;
    use super::super::furniture;
    use super::super::walk::{Last, find};
    use super::*;

    fn with_file(max_bytes: u64, bytes: &[u8]) -> MemoryFiles {
        let files = MemoryFiles::with_max_bytes(max_bytes);
        let mut held = files.lock();
        let root = held.root;
        furniture::make_directory(&mut held.tree, root, "/workspace").unwrap();
        let place = find(&held.tree, root, b"/workspace/a", Last::Keep, None).unwrap();
        held.tree.add(&place, FileNode::file(bytes.to_vec(), 0o600)).unwrap();
        drop(held);
        files
    }

    #[test]
    fn what_is_frozen_shares_its_contents_and_takes_the_same_room_when_it_is_thawed() {
        let files = with_file(1 << 20, &[7; 5000]);
        let root = files.lock().root;
        let frozen = files.lock().tree.freeze(root);
        let used = files.used_bytes();
        let other = with_file(1 << 20, &[8; 90_000]);
        let root = other.lock().root;
        other.lock().tree.thaw(root, &frozen).unwrap();
        assert_eq!(other.used_bytes(), used);
        let again = other.lock().tree.freeze(root);
        let mut shared = SharedContents::default();
        shared.add(&frozen);
        let bytes = shared.bytes();
        assert!(bytes >= 5000);
        shared.add(&again);
        assert_eq!(shared.bytes(), bytes, "the contents are no copies");
        shared.remove(&frozen);
        assert_eq!(shared.bytes(), bytes);
        shared.remove(&again);
        assert_eq!(shared.bytes(), 0);
    }

    #[test]
    fn what_has_no_room_changes_nothing() {
        let frozen = {
            let files = with_file(1 << 20, &[7; 500_000]);
            let root = files.lock().root;
            files.lock().tree.freeze(root)
        };
        let small = with_file(100_000, b"x");
        let root = small.lock().root;
        let used = small.used_bytes();
        assert!(small.lock().tree.thaw(root, &frozen).is_err());
        assert_eq!(small.used_bytes(), used);
    }
}
