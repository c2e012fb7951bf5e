//! Snapshots: the files of a sandbox as they were at one moment, to go back to, to compare with, and
//! to make other sandboxes from. Its processes are no part of it, nor are persistent workspaces and
//! mounts, but for copies of folders.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::created::SandboxInfo;
use crate::error::{Error, ErrorKind, Result};
use crate::images::ImageInfo;
use crate::path::SandboxPath;
use crate::spec::{SandboxId, SandboxName, SandboxSpec, SnapshotId};

/// A snapshot that is to be taken.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSnapshot {
    /// The id of the snapshot.
    pub id: SnapshotId,
    /// The name that its pool knows it by.
    pub name: Option<SandboxName>,
    /// The pool that it belongs to.
    pub pool: Option<SandboxName>,
    /// The name of the sandbox in its pool.
    pub sandbox_name: SandboxName,
    /// Labels to select by.
    pub labels: BTreeMap<String, String>,
    /// The spec of the sandbox, as its pool knows it.
    pub spec: SandboxSpec,
    /// It is only there to make forks from: it is not listed, and is gone once nothing lies above it.
    pub for_forks: bool,
    /// The most bytes that the snapshots of its pool may take of the pool's quota of the disk
    /// ([`SandboxSnapshots::bytes_of_pool`]), this one included. `None`: no bound.
    pub most_bytes_of_pool: Option<u64>,
}

impl NewSnapshot {
    /// Describes a snapshot of a sandbox, without a name, a pool and labels.
    pub fn of(sandbox: &SandboxInfo) -> Self {
        Self {
            id: SnapshotId::generate(),
            name: None,
            pool: None,
            sandbox_name: sandbox.name.clone(),
            labels: BTreeMap::new(),
            spec: sandbox.spec.clone(),
            for_forks: false,
            most_bytes_of_pool: None,
        }
    }
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SnapshotInfo {
    /// The id.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "sn_01a21e86dcff438e9a3ed9ae7c2d4c55"))]
    pub id: SnapshotId,
    /// The name, unique in its pool.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub name: Option<SandboxName>,
    /// The pool that it belongs to.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub pool: Option<SandboxName>,
    /// The sandbox that it was taken of, which may be gone.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub sandbox: SandboxId,
    /// The name that the sandbox had.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub sandbox_name: SandboxName,
    /// The snapshot that the sandbox's files came from, which may be gone.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub parent: Option<SnapshotId>,
    /// Labels to select by.
    pub labels: BTreeMap<String, String>,
    /// The time at which it was taken, in milliseconds since 1970.
    pub created_ms: i64,
    /// The bytes on the disk that only this snapshot adds to its parent. `None`: they were not counted yet, or can't be.
    pub own_bytes: Option<u64>,
    /// The bytes on the disk of the snapshots below it, which it shares with others. `None`: those of one are not known.
    pub shared_bytes: Option<u64>,
    /// The spec that the sandbox was made from: what a fork is made from, too.
    pub spec: SandboxSpec,
}

impl SnapshotInfo {
    /// Leaves out what may be secret: the contents of files and, unless `show_env`, the values of variables.
    #[must_use]
    pub fn without_secrets(mut self, show_env: bool) -> Self {
        if !show_env {
            self.spec.env.clear();
            self.spec.manifest.env.clear();
        }
        self.spec.manifest.files.clear();
        self
    }
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchPoint {
    /// The files that a snapshot keeps.
    Snapshot(SnapshotId),
    /// The present files of a sandbox.
    Sandbox(SandboxId),
    /// The files below the present changes of a sandbox: those of its last snapshot or, without any, those that it began with.
    Base(SandboxId),
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It is on the second side only.
    Added,
    /// It is on both sides, with another content, kind, target or mode.
    Changed,
    /// It is on the first side only.
    Removed,
}

/// A file, directory or link as one side of a comparison has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ComparedFile {
    /// The kind: `file`, `directory`, `symlink` or `other`.
    #[serde(rename = "type")]
    pub file_type: ComparedFileType,
    /// The size of a file, in bytes; 0 for all others.
    pub size_bytes: u64,
    /// The permission bits.
    pub mode: u32,
}

/// The kind of something that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ComparedFileType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A socket, a pipe or a device.
    Other,
}

/// A difference between two sides. A directory that was added or removed is followed by all that is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileChange {
    /// The path inside. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// The kind.
    pub change: ChangeKind,
    /// On the first side. `None`: it was added.
    pub before: Option<ComparedFile>,
    /// On the second side. `None`: it was removed.
    pub after: Option<ComparedFile>,
    /// A unified diff, where it was asked for. There is none of what is no text or larger than 1 MiB, nor beyond the
    /// [`FileChanges::MAX_TEXT_BYTES`] that all have together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The extent of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompareOptions {
    /// Only what lies here and below.
    pub path: SandboxPath,
    /// Adds unified diffs of files that are text.
    pub text: bool,
}

impl CompareOptions {
    /// Compares what lies here and below, without diffs.
    pub fn below(path: SandboxPath) -> Self {
        Self { path, text: false }
    }
}

/// An image that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewImage {
    /// The name, such as `app:1`. An image that has it loses it, unless the provider sees that it is somebody else's.
    pub reference: String,
    /// The most bytes that its own layer may have, uncompressed. `None`: as many as the provider allows.
    pub max_bytes: Option<u64>,
}

impl NewImage {
    /// Refuses an image that would have more bytes of its own than it may.
    ///
    /// # Errors
    /// `too_large`.
    pub fn check_own_bytes(&self, own_bytes: u64) -> Result<()> {
        match self.max_bytes {
            Some(max) if own_bytes > max => {
                let message = format!(
                    "the files of the snapshot take {own_bytes} bytes, and an image may have {max} of its own"
                );
                Err(Error::new(ErrorKind::TooLarge, message))
            }
            _ => Ok(()),
        }
    }
}

/// Makes the error of a rollback to a snapshot of a sandbox with another image.
pub fn of_another_image(snapshot: &SnapshotId) -> Error {
    let message = format!("roll back: snapshot `{snapshot}` is of a sandbox with another image");
    Error::new(ErrorKind::Conflict, message).with_hint("make a sandbox from it: `eyot fork SNAPSHOT`")
}

/// Makes the error of a comparison whose sides lie over different images.
pub fn different_images() -> Error {
    Error::new(ErrorKind::Conflict, "compare files: the two sides have different images")
}

/// The differences between two sides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileChanges {
    /// The changes, by path.
    pub changes: Vec<FileChange>,
    /// There are more: at most [`FileChanges::MAX`] are listed, with paths of [`FileChanges::MAX_PATH_BYTES`] in all.
    pub truncated: bool,
}

impl FileChanges {
    /// The most changes that a comparison lists.
    pub const MAX: usize = 100_000;
    /// The most bytes that their paths have together.
    pub const MAX_PATH_BYTES: usize = 16 << 20;
    /// The most bytes that their diffs have together.
    pub const MAX_TEXT_BYTES: usize = 4 << 20;
}

/// Collects the changes of a comparison, no more than may be listed.
#[derive(Debug, Default)]
pub struct ChangeCollector {
    changes: Vec<FileChange>,
    path_bytes: usize,
    truncated: bool,
}

impl ChangeCollector {
    /// Adds a change. `false`: there is no room for it, nor for more.
    pub fn add(&mut self, change: FileChange) -> bool {
        self.path_bytes = self.path_bytes.saturating_add(change.path.len());
        self.truncated |=
            self.changes.len() >= FileChanges::MAX || self.path_bytes > FileChanges::MAX_PATH_BYTES;
        if !self.truncated {
            self.changes.push(change);
        }
        !self.truncated
    }

    /// Says that there are more changes than were looked for.
    pub fn cut(&mut self) {
        self.truncated = true;
    }

    /// Tells whether a change had no room.
    pub fn is_full(&self) -> bool {
        self.truncated
    }

    /// Forgets what was added.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the changes, by path.
    pub fn finish(mut self) -> FileChanges {
        self.changes.sort_by(|one, other| one.path.cmp(&other.path));
        FileChanges { changes: self.changes, truncated: self.truncated }
    }
}

/// A snapshot of a sandbox that was awake.
#[derive(Debug, Clone, PartialEq)]
pub struct AwakeSnapshot {
    /// The snapshot.
    pub snapshot: SnapshotInfo,
    /// The sandbox still is awake. If not, something went wrong after its files were kept, and it sleeps.
    pub is_awake: bool,
}

/// The snapshots of a provider. The calls that take one, or go back to one, want a sandbox that sleeps: `conflict` for one
/// that runs. Whoever manages it, such as a pool, puts it to sleep and wakes it.
#[async_trait]
pub trait SandboxSnapshots: Send + Sync + 'static {
    /// Refuses a sandbox whose files can be neither kept nor replaced, whether it sleeps or not: before anything of it is stopped.
    /// `what` is verb and object. A provider whose server checks it may let it pass.
    ///
    /// # Errors
    /// `unsupported`, with the reason.
    async fn check_still(&self, _sandbox: &SandboxId, _what: &str) -> Result<()> {
        Ok(())
    }

    /// Keeps the files of a sleeping sandbox, which goes on from them.
    ///
    /// # Errors
    /// `unsupported` if the sandbox's files can't be kept, with the reason.
    async fn take(&self, sandbox: &SandboxId, new: NewSnapshot) -> Result<SnapshotInfo>;

    /// Keeps the files of a sandbox that is awake, if it can go on from them without sleeping. `None`: it can't, has something to
    /// do, or does not run; no snapshot was taken.
    ///
    /// # Errors
    /// Those of [`SandboxSnapshots::take`].
    async fn take_awake(&self, _sandbox: &SandboxId, _new: &NewSnapshot) -> Result<Option<AwakeSnapshot>> {
        Ok(None)
    }

    /// Gives a sleeping sandbox the files of a snapshot. Its present ones are lost. `not_found` if there is no such snapshot;
    /// `conflict` if it was made from another image.
    async fn roll_back(&self, sandbox: &SandboxId, snapshot: &SnapshotId) -> Result<()>;

    /// Lists every snapshot, oldest first, with the sizes that are known.
    async fn list(&self) -> Result<Vec<SnapshotInfo>>;

    /// Lists as [`SandboxSnapshots::list`] does, and counts the sizes that are not known, which takes a walk through the files.
    async fn list_with_sizes(&self) -> Result<Vec<SnapshotInfo>>;

    /// Finds a snapshot that a sandbox can be made from, one for forks too.
    async fn find(&self, snapshot: &SnapshotId) -> Result<Option<SnapshotInfo>>;

    /// Counts the bytes that the snapshots of a pool take of its quota of the disk, those that are not listed any more included.
    async fn bytes_of_pool(&self, _pool: &SandboxName) -> Result<u64> {
        Ok(0)
    }

    /// Removes a snapshot. Its files stay on the disk as long as a sandbox or another snapshot needs
    /// them. `not_found` if there is none.
    async fn remove(&self, snapshot: &SnapshotId) -> Result<()>;

    /// Compares the files of two sides, whose images are the same. The present files of a sandbox that runs are
    /// compared as far as they hold still.
    ///
    /// # Errors
    /// `conflict` if the sides have different images.
    async fn compare(
        &self,
        from: &BranchPoint,
        to: &BranchPoint,
        options: &CompareOptions,
    ) -> Result<FileChanges>;

    /// Refuses what [`SandboxSnapshots::commit`] would refuse of this point, or of the snapshot that is taken of it, without
    /// reading its files. A provider whose server checks it may let it pass.
    ///
    /// # Errors
    /// Those of a commit.
    async fn check_commit(&self, _point: &BranchPoint, image: &NewImage) -> Result<()> {
        Err(no_commit(image))
    }

    /// Makes an image of a snapshot, which sandboxes can be made from: the image of its sandbox, with its configuration, and
    /// the files of the snapshot above it. Dropping the future ends it, and the name means what it meant before. A provider
    /// that does it has [`crate::Capability::Commit`].
    ///
    /// # Errors
    /// `unsupported` if the sandbox was made from no image, with the reason; `invalid` for a reference that can't be; `conflict`
    /// for the name of somebody else's image.
    async fn commit(&self, _snapshot: &SnapshotId, image: &NewImage) -> Result<ImageInfo> {
        Err(no_commit(image))
    }
}

fn no_commit(image: &NewImage) -> Error {
    let message = format!("commit `{}`: this provider makes no images", image.reference);
    Error::new(ErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(path: String) -> FileChange {
        FileChange { path, change: ChangeKind::Removed, before: None, after: None, text: None }
    }

    #[test]
    fn a_list_of_changes_ends_at_its_number_and_at_the_bytes_of_its_paths() {
        let mut changes = ChangeCollector::default();
        for number in (0..FileChanges::MAX).rev() {
            assert!(changes.add(removed(format!("/{number:06}"))));
        }
        assert!(!changes.is_full() && !changes.add(removed("/more".to_owned())) && changes.is_full());
        let found = changes.finish();
        assert!(found.truncated && found.changes.len() == FileChanges::MAX);
        assert_eq!(found.changes[1].path, "/000001");

        let mut changes = ChangeCollector::default();
        assert!(changes.add(removed("x".repeat(FileChanges::MAX_PATH_BYTES))));
        assert!(!changes.add(removed("y".to_owned())));
        assert_eq!(changes.finish().changes.len(), 1);
    }
}
