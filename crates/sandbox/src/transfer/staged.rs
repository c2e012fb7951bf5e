//! The directory in which a tree is unpacked before it is complete: a directory in the nearest
//! directory that is there on the way to the target, so that a failure leaves no parents behind
//! either. It goes whatever becomes of the copying.

use std::collections::BTreeSet;

use super::staging_name;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{CreateDirOptions, FileStat, RemoveOptions};
use crate::path::SandboxPath;
use crate::sandbox::Sandbox;

const ALL_OF_IT: RemoveOptions = RemoveOptions { recursive: true, force: true };
/// That its owner may write to a directory.
const OWNER_WRITES: u32 = 0o200;

/// Removes what transfers have left in a directory whose processes were killed. What stays is for the next one.
async fn sweep(sandbox: &Sandbox, folder: &SandboxPath) {
    let Ok(entries) = sandbox.list(folder.as_str()).await else { return };
    for entry in &entries {
        let removed = match staging_name::is_abandoned(&entry.name) {
            Ok(false) => continue,
            Ok(true) => match folder.resolve(&entry.name) {
                Ok(path) => StagingDirectory { sandbox: sandbox.clone(), path, armed: false }.clear().await,
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::debug!(%error, "remove what a transfer that was killed has left");
        }
    }
}

/// A directory that is removed even if the caller stops waiting for the copy.
pub(super) struct StagingDirectory {
    sandbox: Sandbox,
    path: SandboxPath,
    armed: bool,
}

impl StagingDirectory {
    /// Makes it, on the file system that `target` is to lie on.
    pub(super) async fn make(sandbox: &Sandbox, target: &SandboxPath) -> Result<Self> {
        let mut near = target.parent();
        while !near.is_root() && !sandbox.exists(near.as_str()).await? {
            near = near.parent();
        }
        for folder in BTreeSet::from([&near, &sandbox.info().workdir]) {
            sweep(sandbox, folder).await;
        }
        let path = near.resolve(&staging_name::new_name()?)?;
        sandbox.create_dir(path.as_str(), CreateDirOptions { recursive: false }).await?;
        Ok(Self { sandbox: sandbox.clone(), path, armed: true })
    }

    /// The directory.
    pub(super) fn path(&self) -> &SandboxPath {
        &self.path
    }

    /// The directory's own name, which no other directory has.
    pub(super) fn name(&self) -> &str {
        self.path.file_name()
    }

    /// Moves a tree in it, which `was` so at its source, to the target, whose parents are made.
    pub(super) async fn put(&self, name: &str, was: &FileStat, target: &SandboxPath) -> Result<()> {
        self.sandbox.create_dir(target.parent().as_str(), CreateDirOptions { recursive: true }).await?;
        let tree = self.path.resolve(name)?;
        let read_only = was.mode.filter(|mode| mode & OWNER_WRITES == 0);
        match (self.sandbox.rename(tree.as_str(), target.as_str()).await, read_only) {
            // The name of its parent stands in a directory: whoever moves one must be able to write to it.
            (Err(error), Some(mode)) if error.kind() == ErrorKind::Permission => {
                let mode = mode & 0o7777;
                self.chmod(&format!("{:o}", mode | OWNER_WRITES), &tree, error).await?;
                self.sandbox.rename(tree.as_str(), target.as_str()).await?;
                let lost = Error::new(ErrorKind::Permission, "its permission bits could not be set");
                self.chmod(&format!("{mode:o}"), target, self.sandbox.failed("copy to", target)(lost)).await
            }
            (renamed, _) => renamed,
        }
    }

    /// Removes it with what is still in it.
    pub(super) async fn remove(mut self) -> Result<()> {
        let removed = self.clear().await;
        self.armed = false;
        removed
    }

    /// Half a tree may have directories that nothing can be removed from.
    async fn clear(&self) -> Result<()> {
        match self.sandbox.remove(self.path.as_str(), ALL_OF_IT).await {
            Err(error) if error.kind() == ErrorKind::Permission => {
                self.chmod("u+rwx", &self.path, error).await?;
                self.sandbox.remove(self.path.as_str(), ALL_OF_IT).await
            }
            removed => removed,
        }
    }

    /// Changes the mode of a directory, a symbolic one of everything below as well; `otherwise` where that can't be done.
    async fn chmod(&self, mode: &str, path: &SandboxPath, otherwise: Error) -> Result<()> {
        let argv = if mode.starts_with(char::is_numeric) {
            vec!["chmod", mode, path.as_str()]
        } else {
            vec!["chmod", "-R", mode, path.as_str()]
        };
        match self.sandbox.run_unobserved(argv).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(otherwise),
            Err(error) => {
                tracing::debug!(%error, "change the mode of what a transfer made");
                Err(otherwise)
            }
        }
    }
}

impl Drop for StagingDirectory {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let left = Self { sandbox: self.sandbox.clone(), path: self.path.clone(), armed: false };
        tokio::spawn(async move {
            if let Err(error) = left.clear().await {
                tracing::warn!(%error, "remove what a transfer that was given up has left");
            }
        });
    }
}
