//! Trees of files in memory, with hard links, permission bits, times and a quota.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use eyot::{Error, ErrorKind, Result};

use super::content::FileContent;
use super::names::FileName;
use super::node::{
    AccountId, FileAccess, FileNode, NodeContent, NodeId, NodeOwner, is_a_directory, no_space, not_directory,
    not_empty, too_long,
};
use super::place::Place;

/// The cost of a name beside its bytes, so that a million empty files count as well.
pub(super) const NODE_BYTES: u64 = 128;
/// The longest name, in bytes, as in Linux.
const MAX_NAME_BYTES: usize = 255;

/// Trees of files, each below a root of its own. A directory may be in several of them.
#[derive(Debug, Default)]
pub(super) struct FileTree {
    nodes: HashMap<NodeId, FileNode>,
    /// No number is used twice: whoever holds one of something that has gone finds nothing.
    last: NodeId,
    accounts: Vec<ByteAccount>,
}

/// Bytes that belong together, and how many there may be.
#[derive(Debug, Clone, Copy)]
struct ByteAccount {
    used_bytes: u64,
    max_bytes: u64,
}

impl FileTree {
    /// Makes an empty directory with an account of its own, which no directory holds.
    pub(super) fn add_apart(&mut self, owner: NodeOwner, max_bytes: u64) -> NodeId {
        self.accounts.push(ByteAccount { used_bytes: NODE_BYTES, max_bytes });
        let account = self.accounts.len() - 1;
        self.store(FileNode { owner, account, ..FileNode::directory(0o755) })
    }

    /// Lets go of such a directory, with everything that nothing else holds.
    pub(super) fn release_apart(&mut self, id: NodeId) {
        if !self.has(id) {
            return;
        }
        let account = self.node(id).account;
        self.release(id, 0, account);
    }

    pub(super) fn store(&mut self, node: FileNode) -> NodeId {
        self.last += 1;
        self.nodes.insert(self.last, node);
        self.last
    }

    fn account_of(&self, id: NodeId) -> ByteAccount {
        self.accounts[self.node(id).account]
    }

    /// The bytes that a directory's account has used.
    pub(super) fn used_bytes(&self, id: NodeId) -> u64 {
        self.account_of(id).used_bytes
    }

    pub(super) fn max_bytes(&self, id: NodeId) -> u64 {
        self.account_of(id).max_bytes
    }

    /// The bytes that are still free for what is in a directory, or for a file.
    pub(super) fn room(&self, id: NodeId) -> u64 {
        let account = self.account_of(id);
        account.max_bytes.saturating_sub(account.used_bytes)
    }

    /// Tells whether a node is still there.
    pub(super) fn has(&self, id: NodeId) -> bool {
        self.nodes.contains_key(&id)
    }

    pub(super) fn node(&self, id: NodeId) -> &FileNode {
        self.nodes.get(&id).unwrap_or_else(|| unreachable!("a name leads to node {id}"))
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut FileNode {
        self.nodes.get_mut(&id).unwrap_or_else(|| unreachable!("a name leads to node {id}"))
    }

    pub(super) fn entries(&self, id: NodeId) -> Result<&BTreeMap<FileName, NodeId>> {
        match &self.node(id).content {
            NodeContent::Directory(entries) => Ok(entries),
            _ => Err(not_directory()),
        }
    }

    fn entries_mut(&mut self, id: NodeId) -> Result<&mut BTreeMap<FileName, NodeId>> {
        match &mut self.node_mut(id).content {
            NodeContent::Directory(entries) => Ok(entries),
            _ => Err(not_directory()),
        }
    }

    /// Refuses to change the names of a directory that the user may not write to.
    fn check_names_of(&self, directory: NodeId) -> Result<()> {
        self.entries(directory)?;
        let node = self.node(directory);
        node.check(FileAccess::Write).and_then(|()| node.check(FileAccess::Search))
    }

    /// Adds a node under a name that is free.
    pub(super) fn add(&mut self, place: &Place, node: FileNode) -> Result<NodeId> {
        self.check_names_of(place.parent)?;
        self.add_unchecked(place, node)
    }

    /// Adds a node wherever it is.
    pub(super) fn add_unchecked(&mut self, place: &Place, node: FileNode) -> Result<NodeId> {
        check_name(place.name())?;
        let account = self.node(place.parent).account;
        self.take_room(account, NODE_BYTES + place.name().len() as u64 + node.stored())?;
        let id = self.store(FileNode { account, ..node });
        self.entries_mut(place.parent)?.insert(place.name().to_vec(), id);
        self.touch(place.parent);
        Ok(id)
    }

    /// Gives a file another name.
    pub(super) fn link(&mut self, id: NodeId, place: &Place) -> Result<()> {
        self.check_names_of(place.parent)?;
        self.link_unchecked(id, place)
    }

    /// Gives a node another name, wherever that is.
    pub(super) fn link_unchecked(&mut self, id: NodeId, place: &Place) -> Result<()> {
        check_name(place.name())?;
        let account = self.node(place.parent).account;
        self.take_room(account, place.name().len() as u64)?;
        self.node_mut(id).names += 1;
        self.entries_mut(place.parent)?.insert(place.name().to_vec(), id);
        self.touch(place.parent);
        Ok(())
    }

    /// Replaces what a file holds.
    pub(super) fn set_content(&mut self, id: NodeId, content: FileContent) -> Result<()> {
        let (before, after) = (self.node(id).stored(), content.stored());
        if after > before {
            self.take_room(self.node(id).account, after - before)?;
        } else {
            self.give_room(self.node(id).account, before - after);
        }
        self.node_mut(id).content = NodeContent::File(content);
        self.touch(id);
        Ok(())
    }

    /// Adds bytes at the end of a file or a fifo.
    pub(super) fn append(&mut self, id: NodeId, more: &[u8]) -> Result<()> {
        let account = self.node(id).account;
        self.take_room(account, more.len() as u64)?;
        match &mut self.node_mut(id).content {
            NodeContent::File(content) => content.append(more),
            NodeContent::Fifo(bytes) => bytes.extend_from_slice(more),
            _ => self.give_room(account, more.len() as u64),
        }
        self.touch(id);
        Ok(())
    }

    /// Takes what waits in a fifo.
    pub(super) fn drain_fifo(&mut self, id: NodeId) -> Vec<u8> {
        let NodeContent::Fifo(bytes) = &mut self.node_mut(id).content else { return Vec::new() };
        let bytes = std::mem::take(bytes);
        self.give_room(self.node(id).account, bytes.len() as u64);
        bytes
    }

    /// Takes a name away, and what it names with its last name. A directory goes with all below it.
    pub(super) fn remove(&mut self, place: &Place) -> Result<()> {
        let id = place.found()?;
        self.check_names_of(place.parent)?;
        let mut inside = vec![id];
        while let Some(id) = inside.pop() {
            if let Ok(entries) = self.entries(id)
                && !entries.is_empty()
            {
                self.check_names_of(id)?;
                inside.extend(entries.values());
            }
        }
        self.remove_unchecked(place)
    }

    /// The same, whatever the permission bits say.
    pub(super) fn remove_unchecked(&mut self, place: &Place) -> Result<()> {
        let id = place.found()?;
        self.entries_mut(place.parent)?.remove(place.name());
        self.touch(place.parent);
        self.release(id, place.name().len(), self.node(place.parent).account);
        Ok(())
    }

    /// Gives back what a name took that no directory has any more.
    pub(super) fn release(&mut self, id: NodeId, name_bytes: usize, account: AccountId) {
        let mut gone = vec![(id, name_bytes, account)];
        while let Some((id, name_bytes, account)) = gone.pop() {
            self.give_room(account, name_bytes as u64);
            let node = self.node_mut(id);
            node.names -= 1;
            if node.names > 0 {
                continue;
            }
            let (account, stored) = (node.account, node.stored());
            self.give_room(account, NODE_BYTES + stored);
            if let Some(FileNode { content: NodeContent::Directory(entries), .. }) = self.nodes.remove(&id) {
                gone.extend(entries.into_iter().map(|(name, id)| (id, name.len(), account)));
            }
        }
    }

    /// Moves a name; whatever has the new one is replaced, if Linux would.
    pub(super) fn rename(&mut self, from: &Place, to: &Place) -> Result<()> {
        let id = from.found()?;
        if to.node == Some(id) {
            return Ok(());
        }
        let is_directory = self.node(id).is_directory();
        if is_directory && to.names.starts_with(&from.names) {
            return Err(Error::new(ErrorKind::Invalid, "can't be moved into itself"));
        }
        check_name(to.name())?;
        self.check_names_of(from.parent)?;
        self.check_names_of(to.parent)?;
        if let Some(there) = to.node {
            match (&self.node(there).content, is_directory) {
                (NodeContent::Directory(entries), true) if entries.is_empty() => {}
                (NodeContent::Directory(_), true) => return Err(not_empty()),
                (NodeContent::Directory(_), false) => return Err(is_a_directory()),
                (_, true) => return Err(not_directory()),
                (_, false) => {}
            }
            self.remove(to)?;
        }
        self.charge_move(id, from, to)?;
        self.entries_mut(from.parent)?.remove(from.name());
        self.entries_mut(to.parent)?.insert(to.name().to_vec(), id);
        self.touch(from.parent);
        self.touch(to.parent);
        Ok(())
    }

    /// Charges a move from one directory to another: their accounts may differ.
    fn charge_move(&mut self, id: NodeId, from: &Place, to: &Place) -> Result<()> {
        let (before, after) = (self.node(from.parent).account, self.node(to.parent).account);
        let (old_name, new_name) = (from.name().len() as u64, to.name().len() as u64);
        let mut moved = Vec::new();
        let mut bytes = 0;
        if before != after && self.node(id).account == before {
            moved = std::iter::once(id).chain(self.everything_below(id).map(|(_, id)| id)).collect();
            moved.retain(|id| self.node(*id).account == before);
            bytes = moved.iter().map(|id| NODE_BYTES + self.node(*id).stored()).sum();
        }
        self.give_room(before, old_name);
        if let Err(error) = self.take_room(after, bytes + new_name) {
            self.take_room(before, old_name)?;
            return Err(error);
        }
        self.give_room(before, bytes);
        for id in moved {
            self.node_mut(id).account = after;
        }
        Ok(())
    }

    /// Every node below one, depth first and by name, with its names from there. Links are not
    /// followed, and a directory that can't be read is passed over.
    pub(super) fn below(&self, id: NodeId) -> Below<'_> {
        Below { tree: self, left: self.children(id, &[], true), is_checked: true }
    }

    /// The same, whatever the permission bits say.
    pub(super) fn everything_below(&self, id: NodeId) -> Below<'_> {
        Below { tree: self, left: self.children(id, &[], false), is_checked: false }
    }

    fn children(&self, id: NodeId, at: &[FileName], is_checked: bool) -> Vec<(Vec<FileName>, NodeId)> {
        let node = self.node(id);
        let NodeContent::Directory(entries) = &node.content else { return Vec::new() };
        let is_closed = node.check(FileAccess::Read).is_err() || node.check(FileAccess::Search).is_err();
        if is_checked && is_closed {
            return Vec::new();
        }
        let child = |(name, id): (&FileName, &NodeId)| {
            let names = at.iter().chain([name]).cloned().collect();
            (names, *id)
        };
        entries.iter().rev().map(child).collect()
    }

    pub(super) fn take_room(&mut self, account: AccountId, bytes: u64) -> Result<()> {
        let account = &mut self.accounts[account];
        if bytes > account.max_bytes.saturating_sub(account.used_bytes) {
            return Err(no_space());
        }
        account.used_bytes += bytes;
        Ok(())
    }

    fn give_room(&mut self, account: AccountId, bytes: u64) {
        self.accounts[account].used_bytes -= bytes;
    }

    fn touch(&mut self, id: NodeId) {
        self.node_mut(id).modified = SystemTime::now();
    }
}

/// A way through everything below a directory.
pub(super) struct Below<'a> {
    tree: &'a FileTree,
    left: Vec<(Vec<FileName>, NodeId)>,
    is_checked: bool,
}

impl Iterator for Below<'_> {
    type Item = (Vec<FileName>, NodeId);

    fn next(&mut self) -> Option<Self::Item> {
        let (names, id) = self.left.pop()?;
        self.left.extend(self.tree.children(id, &names, self.is_checked));
        Some((names, id))
    }
}

fn check_name(name: &[u8]) -> Result<()> {
    if name.len() > MAX_NAME_BYTES { Err(too_long()) } else { Ok(()) }
}
