//! The sandboxes of a provider, and what they have in common.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::{Error, ErrorKind, Result, SandboxPath, WorkspaceSpec};

use super::clock::DeadlineClock;
use super::files::MemoryFiles;
use super::frozen::FrozenFiles;
use super::furniture;
use super::image_table::ImageTable;
use super::known_programs::KnownPrograms;
use super::life::LifeEnd;
use super::node::NodeId;
use super::prepared::PreparedShells;
use super::sandbox::{ForgetSandbox, MemorySandbox};
use super::shell_factory::ShellFactory;
use super::snapshot_table::SnapshotTable;
use super::tree::FileTree;
use super::walk::{Last, find};
use super::workspaces::Workspaces;

/// The sandboxes of a provider, and what they have in common.
pub(super) struct MemoryWorld {
    pub factory: ShellFactory,
    pub files: Option<MemoryFiles>,
    pub live: Mutex<BTreeMap<String, Arc<MemorySandbox>>>,
    pub snapshots: Mutex<SnapshotTable>,
    pub images: Mutex<ImageTable>,
    pub workspaces: Workspaces,
    pub clock: DeadlineClock,
    pub programs: Arc<KnownPrograms>,
    pub prepared: Arc<PreparedShells>,
}

impl MemoryWorld {
    pub fn live(&self) -> MutexGuard<'_, BTreeMap<String, Arc<MemorySandbox>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The snapshots.
    pub(super) fn snapshots(&self) -> MutexGuard<'_, SnapshotTable> {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The images.
    pub(super) fn images(&self) -> MutexGuard<'_, ImageTable> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a sandbox, by id or name.
    pub(super) fn find(&self, id_or_name: &str) -> Result<Arc<MemorySandbox>> {
        let live = self.live();
        let is_it = |sandbox: &&Arc<MemorySandbox>| {
            sandbox.info.id.as_str() == id_or_name || sandbox.info.name.as_str() == id_or_name
        };
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no sandbox `{id_or_name}`"));
        live.values().find(is_it).cloned().ok_or_else(missing)
    }

    /// Gives a sandbox that sleeps other files. Its persistent workspace stays.
    pub(super) fn give_files(&self, sandbox: &MemorySandbox, files: &FrozenFiles) -> Result<()> {
        let workdir = &sandbox.info.workdir;
        let WorkspaceSpec::Persistent { id, .. } = &sandbox.info.spec.workspace else {
            sandbox.files.fill(files)?;
            return with_directory(&sandbox.files, workdir);
        };
        let mut held = sandbox.files.lock();
        let root = held.root;
        // Somebody else may have let go of the workspace: then this sandbox alone has it.
        let workspace = held.tree.apart_below(root);
        workspace.inspect(|id| held.tree.node_mut(*id).names += 1);
        let filled = held.tree.thaw(root, files);
        let placed = match (&filled, workspace) {
            (Ok(()), Some(node)) => put_at(&mut held.tree, root, workdir, node),
            _ => Ok(()),
        };
        if let Some(node) = workspace {
            held.tree.release_apart(node);
        }
        drop(held);
        filled?;
        placed?;
        if workspace.is_none() { self.workspaces.place(id, workdir, &sandbox.files) } else { Ok(()) }
    }

    /// Returns the files that a sandbox without a snapshot began with.
    pub(super) fn first_files(&self, sandbox: &MemorySandbox) -> Result<FrozenFiles> {
        let files = MemoryFiles::with_max_bytes(u64::MAX);
        if let Some(image) = &sandbox.image {
            files.fill(&image.files)?;
        }
        with_directory(&files, &sandbox.info.workdir)?;
        let held = files.lock();
        Ok(held.tree.freeze(held.root))
    }

    /// Lets go of sandboxes for as long as the provider is there.
    pub fn forgetting(self: &Arc<Self>) -> ForgetSandbox {
        let world = Arc::downgrade(self);
        Box::new(move |sandbox| {
            if let Some(world) = world.upgrade() {
                world.forget(sandbox);
            }
        })
    }

    /// Lets go of a sandbox that has ended. A persistent workspace is kept.
    pub(super) fn forget(&self, sandbox: &MemorySandbox) {
        if self.live().remove(sandbox.info.id.as_str()).is_none() {
            return;
        }
        sandbox.base().take();
        if let WorkspaceSpec::Persistent { id, destroy_on_session_destroy } = &sandbox.info.spec.workspace {
            sandbox.files.release();
            if *destroy_on_session_destroy && !sandbox.keeps_workspace.load(Ordering::Relaxed) {
                self.workspaces.remove(id);
            }
        }
    }
}

impl Drop for MemoryWorld {
    fn drop(&mut self) {
        let live = std::mem::take(&mut *self.live());
        for sandbox in live.into_values() {
            sandbox.destroy(LifeEnd::Destroy);
        }
    }
}

/// Makes a directory that may be there.
pub(super) fn with_directory(files: &MemoryFiles, path: &SandboxPath) -> Result<()> {
    let mut held = files.lock();
    let root = held.root;
    furniture::make_directory(&mut held.tree, root, path.as_str())
}

/// Puts a directory of its own account at a path.
fn put_at(tree: &mut FileTree, root: NodeId, path: &SandboxPath, node: NodeId) -> Result<()> {
    furniture::make_directory(tree, root, path.parent().as_str())?;
    let place = find(tree, root, path.as_str().as_bytes(), Last::Keep, None)?;
    if place.node.is_some() {
        tree.remove_unchecked(&place)?;
    }
    let place = find(tree, root, path.as_str().as_bytes(), Last::Keep, None)?;
    tree.link_unchecked(node, &place)
}
