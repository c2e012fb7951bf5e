//! The directory in which a tree is unpacked before it is complete: a directory in the nearest directory that is there on the way to the
//! target, so that a failure leaves no parents behind either. It goes whatever becomes of the copying.
//!
//! Where it does not lie in the working directory, a file of the same name does that holds its
//! path: the next transfer finds there what a killed one has left anywhere.

use std::collections::BTreeSet;

use bytes::Bytes;
use eyot::internal::SandboxInternals;
use eyot::{
    ByteStream, ConfinedPath, CreateDirOptions, Error, ErrorKind, FileStat, MAX_PATH_BYTES, RemoveOptions,
    Result, Sandbox, SandboxPath, WriteOptions,
};
use futures_util::{StreamExt, stream};

use super::staging_name;

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
                Ok(path) => remove_abandoned(sandbox, path).await,
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::debug!(%error, "remove what a transfer that was killed has left");
        }
    }
}

/// Removes the directory of a transfer that was killed, or its note with the directory that it
/// names.
async fn remove_abandoned(sandbox: &Sandbox, path: SandboxPath) -> Result<()> {
    if let Some(noted) = noted(sandbox, &path).await {
        StagingDirectory { sandbox: sandbox.clone(), path: noted, note: None, armed: false }.clear().await?;
    }
    StagingDirectory { sandbox: sandbox.clone(), path, note: None, armed: false }.clear().await
}

/// Returns the path in a note. A program inside may have written it: it must end in the name of the
/// note.
async fn noted(sandbox: &Sandbox, note: &SandboxPath) -> Option<SandboxPath> {
    let is_note = |stat: &FileStat| stat.size.is_some_and(|size| size <= MAX_PATH_BYTES as u64);
    sandbox.stat(note.as_str()).await.ok().filter(|stat| !stat.is_directory).filter(is_note)?;
    let text = sandbox.read_text(note.as_str()).await.ok()?;
    SandboxPath::parse(&text).ok().filter(|path| path.file_name() == note.file_name() && path != note)
}

/// Returns the error of a tree whose target lies in a directory that can't be written to.
async fn not_beside(near: &SandboxPath, target: &SandboxPath, sandbox: &Sandbox) -> Error {
    let message = format!("a tree is unpacked beside its target first, and `{near}` can't be written to");
    let error = Error::new(ErrorKind::Permission, message);
    match sandbox.stat(target.as_str()).await {
        Ok(stat) if stat.is_directory => error.with_hint(own_name_hint(target)),
        _ => error,
    }
}

/// Says what to name instead of a directory that the copy should go into.
fn own_name_hint(target: &SandboxPath) -> String {
    let below = format!("{}/NAME", target.as_str().trim_end_matches('/'));
    format!("the target is the copy's own name, such as `{below}`")
}

/// A directory that is removed even if the caller stops waiting for the copy.
pub(super) struct StagingDirectory {
    sandbox: Sandbox,
    path: SandboxPath,
    /// The file in the working directory that names it.
    note: Option<SandboxPath>,
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
        let name = staging_name::new_name()?;
        let path = near.resolve(&name)?;
        let workdir = &sandbox.info().workdir;
        let note = (near != *workdir).then(|| workdir.resolve(&name)).transpose()?;
        let mut staged = Self { sandbox: sandbox.clone(), path, note, armed: true };
        staged.write_note().await;
        match sandbox.create_dir(staged.path.as_str(), CreateDirOptions { recursive: false }).await {
            Ok(()) => Ok(staged),
            Err(error) => {
                // There is only the note, and it is gone before the caller is told.
                if let Err(error) = staged.remove_note().await {
                    tracing::warn!(%error, "remove the note of a transfer that did not begin");
                }
                staged.armed = false;
                let is_refused = error.kind() == ErrorKind::Permission;
                Err(if is_refused { not_beside(&near, target, sandbox).await } else { error })
            }
        }
    }

    /// Notes where it is. Without the note only a transfer to the same place finds it.
    async fn write_note(&self) {
        let Some(note) = &self.note else { return };
        let (place, path) = (ConfinedPath { path: note.clone(), beneath: None }, self.path.to_string());
        let content: ByteStream = stream::once(async move { Ok(Bytes::from(path)) }).boxed();
        let written = self.sandbox.driver().write(&place, content, WriteOptions::default()).await;
        if let Err(error) = written {
            tracing::debug!(%error, "note where a transfer unpacks");
        }
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
            (Err(error), _) if error.kind() == ErrorKind::AlreadyExists => {
                Err(error.with_hint(own_name_hint(target)))
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
        self.clear_directory().await?;
        self.remove_note().await
    }

    async fn remove_note(&self) -> Result<()> {
        match &self.note {
            Some(note) => self.sandbox.remove(note.as_str(), ALL_OF_IT).await,
            None => Ok(()),
        }
    }

    async fn clear_directory(&self) -> Result<()> {
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
        let (sandbox, path, note) = (self.sandbox.clone(), self.path.clone(), self.note.clone());
        let left = Self { sandbox, path, note, armed: false };
        tokio::spawn(async move {
            if let Err(error) = left.clear().await {
                tracing::warn!(%error, "remove what a transfer that was given up has left");
            }
        });
    }
}
