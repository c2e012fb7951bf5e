//! Workspaces that outlive their sandboxes. Several sandboxes may have one at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::{Result, SandboxPath};

use super::files::{DEFAULT_MAX_BYTES, Inner, MemoryFiles};
use super::frozen::FrozenFiles;
use super::furniture;
use super::node::{NodeId, NodeOwner};
use super::walk::{Last, find};

/// Every persistent workspace of a provider. They do not count in the quota of a sandbox: each has
/// its own of 256 MiB.
#[derive(Default)]
pub(super) struct Workspaces {
    /// The files of all sandboxes that have one.
    files: Arc<Mutex<Inner>>,
    all: Mutex<BTreeMap<String, NodeId>>,
}

impl Workspaces {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, NodeId>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    /// Makes the files of a sandbox with this workspace at its working directory.
    pub(super) fn files_with(
        &self,
        id: &str,
        workdir: &SandboxPath,
        max_bytes: u64,
        begin: Option<&FrozenFiles>,
    ) -> Result<MemoryFiles> {
        let files = MemoryFiles::beside(self.files.clone(), max_bytes);
        let filled = begin.map_or(Ok(()), |begin| files.fill(begin));
        let made = filled.and_then(|()| self.place(id, workdir, &files));
        if made.is_err() {
            files.release();
        }
        made.map(|()| files)
    }

    /// Puts a workspace at the working directory of a sandbox. It is made if there is none.
    pub(super) fn place(&self, id: &str, workdir: &SandboxPath, files: &MemoryFiles) -> Result<()> {
        let mut all = self.lock();
        let mut held = files.lock();
        let root = held.root;
        furniture::make_directory(&mut held.tree, root, workdir.parent().as_str())?;
        let place = find(&held.tree, root, workdir.as_str().as_bytes(), Last::Keep, None)?;
        if place.node.is_some() {
            held.remove_unchecked(&place)?;
        }
        let node = match all.get(id) {
            Some(node) => *node,
            None => held.tree.add_apart(NodeOwner::User, DEFAULT_MAX_BYTES),
        };
        let place = find(&held.tree, root, workdir.as_str().as_bytes(), Last::Keep, None)?;
        held.tree.link_unchecked(node, &place)?;
        all.insert(id.to_owned(), node);
        Ok(())
    }

    /// Lets go of a workspace. Sandboxes that have it keep it.
    pub(super) fn remove(&self, id: &str) {
        let mut all = self.lock();
        if let Some(node) = all.remove(id) {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            files.tree.release_apart(node);
        }
    }
}
