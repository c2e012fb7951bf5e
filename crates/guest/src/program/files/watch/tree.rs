//! The directory of each of the kernel's watches: a tree of names that follows the events, so that
//! an event's path is the one that held when it happened.

use std::collections::{HashMap, HashSet};

use rustix::fs::Stat;

/// The identity of a directory, whatever its name.
pub type FileIdentity = (u64, u64);

/// The identity in a description.
pub fn identity(stat: &Stat) -> FileIdentity {
    (stat.st_dev, stat.st_ino)
}

/// The directories that are watched, by the numbers of their watches.
#[derive(Debug)]
pub struct Tree {
    root: i32,
    nodes: HashMap<i32, Node>,
    /// Directories whose name another one has taken: the second half of an exchange gives them a
    /// new one.
    displaced: HashMap<(i32, Vec<u8>), i32>,
}

#[derive(Debug)]
struct Node {
    parent: i32,
    name: Vec<u8>,
    identity: FileIdentity,
    children: HashMap<Vec<u8>, i32>,
    /// Names that a scan found and reported, though the kernel may report them, too.
    found: HashSet<Vec<u8>>,
}

impl Tree {
    /// A tree of its root alone.
    pub fn new(root: i32, identity: FileIdentity) -> Self {
        let node = Node::new(root, Vec::new(), identity);
        Self { root, nodes: HashMap::from([(root, node)]), displaced: HashMap::new() }
    }

    /// The root's watch.
    pub fn root(&self) -> i32 {
        self.root
    }

    /// Returns the number of directories.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Tells whether this watch is for one of its directories.
    pub fn contains(&self, watch: i32) -> bool {
        self.nodes.contains_key(&watch)
    }

    /// The watches of all its directories.
    pub fn watches(&self) -> impl Iterator<Item = i32> + '_ {
        self.nodes.keys().copied()
    }

    /// Returns the identity of a directory.
    pub fn identity(&self, watch: i32) -> Option<FileIdentity> {
        self.nodes.get(&watch).map(|node| node.identity)
    }

    /// A directory's path relative to the root; empty for the root.
    pub fn path(&self, watch: i32) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        let mut at = watch;
        while at != self.root {
            let node = self.nodes.get(&at)?;
            names.push(node.name.as_slice());
            at = node.parent;
        }
        names.reverse();
        Some(names.join(&b'/'))
    }

    /// The path of a name in a directory.
    pub fn path_of(&self, watch: i32, name: &[u8]) -> Option<Vec<u8>> {
        let directory = self.path(watch)?;
        let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
        Some([&directory, slash, name].concat())
    }

    /// Enters a directory. One that is known under another name moves, with what is below it.
    pub fn insert(&mut self, watch: i32, parent: i32, name: &[u8], identity: FileIdentity) {
        if self.nodes.contains_key(&watch) {
            self.move_to(watch, parent, name);
            return;
        }
        self.nodes.insert(watch, Node::new(parent, name.to_vec(), identity));
        self.attach(watch, parent, name);
    }

    /// A directory has another name now; whether it was known under the old one.
    pub fn rename(&mut self, from: (i32, &[u8]), to: (i32, &[u8])) -> bool {
        let displaced = self.displaced.remove(&(from.0, from.1.to_vec()));
        let Some(watch) = displaced.or_else(|| self.child(from.0, from.1)) else {
            return false;
        };
        self.move_to(watch, to.0, to.1);
        true
    }

    /// The directory with that name in another one.
    pub fn child(&self, parent: i32, name: &[u8]) -> Option<i32> {
        self.nodes.get(&parent)?.children.get(name).copied()
    }

    /// Takes a directory out, with all below it; the watches that they had.
    pub fn remove(&mut self, watch: i32) -> Vec<i32> {
        if watch == self.root {
            return Vec::new();
        }
        self.detach(watch);
        let mut removed = Vec::new();
        let mut left = vec![watch];
        while let Some(watch) = left.pop() {
            if let Some(node) = self.nodes.remove(&watch) {
                left.extend(node.children.into_values());
                removed.push(watch);
            }
        }
        self.displaced
            .retain(|(parent, _), watch| self.nodes.contains_key(parent) && self.nodes.contains_key(watch));
        removed
    }

    /// A name in a directory was found and reported before the kernel could say so.
    pub fn note_found(&mut self, watch: i32, name: &[u8]) {
        if let Some(node) = self.nodes.get_mut(&watch) {
            node.found.insert(name.to_vec());
        }
    }

    /// Tells whether a name was found and reported already. From now on it counts as not found.
    pub fn take_found(&mut self, watch: i32, name: &[u8]) -> bool {
        self.nodes.get_mut(&watch).is_some_and(|node| node.found.remove(name))
    }

    /// Everything that the kernel had to say about what was found has been said.
    pub fn forget_found(&mut self) {
        for node in self.nodes.values_mut().filter(|node| !node.found.is_empty()) {
            node.found = HashSet::new();
        }
    }

    fn move_to(&mut self, watch: i32, parent: i32, name: &[u8]) {
        // A directory can't be below itself: what the kernel says next will put it right.
        if watch == self.root || !self.nodes.contains_key(&parent) || self.is_below(parent, watch) {
            return;
        }
        self.detach(watch);
        if let Some(node) = self.nodes.get_mut(&watch) {
            (node.parent, node.name) = (parent, name.to_vec());
        }
        self.attach(watch, parent, name);
    }

    fn attach(&mut self, watch: i32, parent: i32, name: &[u8]) {
        let Some(node) = self.nodes.get_mut(&parent) else { return };
        match node.children.insert(name.to_vec(), watch) {
            Some(other) if other != watch => drop(self.displaced.insert((parent, name.to_vec()), other)),
            _ => {}
        }
    }

    fn detach(&mut self, watch: i32) {
        let Some((parent, name)) = self.nodes.get(&watch).map(|node| (node.parent, node.name.clone())) else {
            return;
        };
        if let Some(parent) = self.nodes.get_mut(&parent)
            && parent.children.get(&name) == Some(&watch)
        {
            parent.children.remove(&name);
        }
        let key = (parent, name);
        if self.displaced.get(&key) == Some(&watch) {
            self.displaced.remove(&key);
        }
    }

    fn is_below(&self, watch: i32, ancestor: i32) -> bool {
        let mut at = watch;
        loop {
            match self.nodes.get(&at) {
                _ if at == ancestor => return true,
                Some(node) if at != self.root => at = node.parent,
                _ => return false,
            }
        }
    }
}

impl Node {
    fn new(parent: i32, name: Vec<u8>, identity: FileIdentity) -> Self {
        Self { parent, name, identity, children: HashMap::new(), found: HashSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The root 1 with `a` (2), `a/b` (3) and `c` (4).
    fn tree() -> Tree {
        let mut tree = Tree::new(1, (0, 1));
        for (watch, parent, name) in [(2, 1, b"a"), (3, 2, b"b"), (4, 1, b"c")] {
            tree.insert(watch, parent, name, (0, watch as u64));
        }
        tree
    }

    fn path(tree: &Tree, watch: i32) -> String {
        String::from_utf8(tree.path(watch).unwrap()).unwrap()
    }

    #[test]
    fn what_is_below_a_directory_moves_with_it() {
        let mut tree = tree();
        assert_eq!((path(&tree, 1).as_str(), path(&tree, 3).as_str()), ("", "a/b"));
        assert!(tree.rename((1, b"a"), (4, b"d")));
        assert_eq!(path(&tree, 3), "c/d/b");
        assert_eq!(tree.path_of(1, b"f").unwrap(), b"f");
        assert!(!tree.rename((1, b"a"), (1, b"e")));
    }

    #[test]
    fn two_directories_exchange_their_names() {
        let mut tree = tree();
        assert!(tree.rename((1, b"a"), (1, b"c")));
        assert!(tree.rename((1, b"c"), (1, b"a")));
        assert_eq!((path(&tree, 2).as_str(), path(&tree, 4).as_str()), ("c", "a"));
        assert!(path(&tree, 3) == "c/b" && tree.displaced.is_empty());
    }

    #[test]
    fn a_directory_that_is_replaced_goes_by_its_own_watch() {
        let mut tree = tree();
        assert!(tree.rename((2, b"b"), (1, b"c")));
        assert_eq!(tree.remove(4), [4]);
        assert!(path(&tree, 3) == "c" && tree.child(1, b"c") == Some(3) && tree.displaced.is_empty());
    }

    #[test]
    fn a_directory_is_removed_with_what_is_below_it_and_never_put_below_itself() {
        let mut tree = tree();
        tree.insert(2, 3, b"x", (0, 2));
        assert_eq!(path(&tree, 3), "a/b");
        let mut removed = tree.remove(2);
        removed.sort_unstable();
        assert_eq!((removed, tree.len(), tree.path(3)), (vec![2, 3], 2, None));
        assert!(tree.remove(1).is_empty());
    }
}
