//! The way along a path, with its symbolic links, by Linux's rules.

use std::collections::VecDeque;
use std::path::Path;

use eyot::Result;

use super::names::{FileName, bytes_of};
use super::node::{FileAccess, NodeContent, NodeId, leaves, not_found, too_long, too_many_links};
use super::odd_names::decoded;
use super::place::Place;
use super::tree::FileTree;

/// Symbolic links that one look-up follows, as in Linux.
const MAX_LINKS: u32 = 40;
/// The longest path, in bytes, as in Linux.
const MAX_PATH_BYTES: usize = 4096;

/// The treatment of a link that a path ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Follow,
    Keep,
}

/// Follows a path from the root. With `beneath` it must stay below that directory, whatever its
/// links say.
pub(super) fn find(
    tree: &FileTree,
    root: NodeId,
    path: &[u8],
    last: Last,
    beneath: Option<&[u8]>,
) -> Result<Place> {
    if path.len() >= MAX_PATH_BYTES {
        return Err(too_long());
    }
    if !tree.has(root) {
        return Err(not_found());
    }
    let Some(beneath) = beneath else { return PathWalk::from_root(tree, root).go(path, last) };
    let base = find(tree, root, beneath, Last::Follow, None)?;
    tree.entries(base.found()?)?;
    let beneath = beneath.strip_suffix(b"/").unwrap_or(beneath);
    let rest = path.strip_prefix(beneath).filter(|rest| rest.is_empty() || rest.starts_with(b"/"));
    let mut walk = PathWalk::from_root(tree, root);
    walk.floor = Some(base.names.len());
    walk.enter(&base)?;
    walk.go(rest.ok_or_else(leaves)?, last)
}

/// Finds what a name on a command line leads to, from a directory. An empty name leads nowhere.
pub(super) fn find_from(
    tree: &FileTree,
    root: NodeId,
    directory: &Path,
    name: &[u8],
    last: Last,
) -> Result<Place> {
    if name.is_empty() {
        return Err(not_found());
    }
    let (directory, name) = (bytes_of(directory.as_os_str()), decoded(name));
    let path = if name.starts_with(b"/") { name.into_owned() } else { [&*directory, b"/", &name].concat() };
    find(tree, root, &path, last, None)
}

/// One way through the tree.
struct PathWalk<'a> {
    tree: &'a FileTree,
    root: NodeId,
    /// The directories on the way, the root first.
    directories: Vec<NodeId>,
    names: Vec<FileName>,
    /// The number of names that may not be left.
    floor: Option<usize>,
    links: u32,
}

impl<'a> PathWalk<'a> {
    fn from_root(tree: &'a FileTree, root: NodeId) -> Self {
        Self { tree, root, directories: vec![root], names: Vec::new(), floor: None, links: 0 }
    }

    fn enter(&mut self, base: &Place) -> Result<()> {
        let mut at = self.root;
        for name in &base.names {
            at = *self.tree.entries(at)?.get(name).ok_or_else(not_found)?;
            self.directories.push(at);
            self.names.push(name.clone());
        }
        Ok(())
    }

    fn here(&self) -> NodeId {
        self.directories.last().copied().unwrap_or(self.root)
    }

    fn go(mut self, path: &[u8], last: Last) -> Result<Place> {
        let mut left: VecDeque<FileName> = path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect();
        while let Some(name) = left.pop_front() {
            match name.as_slice() {
                b"" | b"." => continue,
                b".." => {
                    self.up()?;
                    continue;
                }
                _ => {}
            }
            let here = self.here();
            let entries = self.tree.entries(here)?;
            self.tree.node(here).check(FileAccess::Search)?;
            let is_last = left.iter().all(Vec::is_empty);
            let Some(id) = entries.get(&name).copied() else {
                if !is_last {
                    return Err(not_found());
                }
                self.names.push(name);
                return Ok(Place { names: self.names, chain: self.directories, parent: here, node: None });
            };
            if let NodeContent::Link(target) = &self.tree.node(id).content
                && (!is_last || last == Last::Follow || path.ends_with(b"/"))
            {
                self.follow(target)?;
                for name in target.rsplit(|byte| *byte == b'/') {
                    left.push_front(name.to_vec());
                }
                continue;
            }
            self.names.push(name);
            if is_last {
                return Ok(Place {
                    names: self.names,
                    chain: self.directories,
                    parent: here,
                    node: Some(id),
                });
            }
            self.directories.push(id);
        }
        let node = self.here();
        if self.directories.len() > 1 {
            self.directories.pop();
        }
        Ok(Place { parent: self.here(), node: Some(node), names: self.names, chain: self.directories })
    }

    fn up(&mut self) -> Result<()> {
        self.tree.entries(self.here())?;
        if self.floor.is_some_and(|floor| self.names.len() <= floor) {
            return Err(leaves());
        }
        if self.directories.len() > 1 {
            self.directories.pop();
            self.names.pop();
        }
        Ok(())
    }

    /// Follows a link: its target is gone through next.
    fn follow(&mut self, target: &[u8]) -> Result<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(too_many_links());
        }
        if target.starts_with(b"/") {
            if self.floor.is_some() {
                return Err(leaves());
            }
            self.directories.truncate(1);
            self.names.clear();
        }
        Ok(())
    }
}
