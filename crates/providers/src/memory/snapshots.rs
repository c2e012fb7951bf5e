//! Snapshots of sandboxes in memory.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::internal::{different_images, of_another_image};
use eyot::{
    BranchPoint, CompareOptions, Error, ErrorKind, FileChanges, ImageInfo, ImageName, NewImage, NewSnapshot,
    Result, SandboxId, SandboxSnapshots, SnapshotId, SnapshotInfo,
};

use super::compared::compare;
use super::frozen::FrozenFiles;
use super::image_table::MemoryImage;
use super::sandbox::MemorySandbox;
use super::world::MemoryWorld;

/// The snapshots of a provider.
pub(super) struct MemorySnapshots(pub Arc<MemoryWorld>);

#[async_trait]
impl SandboxSnapshots for MemorySnapshots {
    async fn take(&self, sandbox: &SandboxId, new: NewSnapshot) -> Result<SnapshotInfo> {
        let sandbox = self.0.find(sandbox.as_str())?;
        self.blocking(move |world| take(world, &sandbox, new)).await
    }

    async fn roll_back(&self, sandbox: &SandboxId, snapshot: &SnapshotId) -> Result<()> {
        let (sandbox, snapshot) = (self.0.find(sandbox.as_str())?, snapshot.clone());
        self.blocking(move |world| roll_back(world, &sandbox, &snapshot)).await
    }

    async fn list(&self) -> Result<Vec<SnapshotInfo>> {
        Ok(self.0.snapshots().list())
    }

    /// The sizes are always known.
    async fn list_with_sizes(&self) -> Result<Vec<SnapshotInfo>> {
        self.list().await
    }

    async fn find(&self, snapshot: &SnapshotId) -> Result<Option<SnapshotInfo>> {
        Ok(self.0.snapshots().find(snapshot).ok().map(|kept| kept.info.clone()))
    }

    async fn remove(&self, snapshot: &SnapshotId) -> Result<()> {
        self.0.snapshots().remove(snapshot)
    }

    async fn compare(
        &self,
        from: &BranchPoint,
        to: &BranchPoint,
        options: &CompareOptions,
    ) -> Result<FileChanges> {
        let (from, to, options) = (from.clone(), to.clone(), options.clone());
        let compared = self.blocking(move |world| {
            let ((from, one), (to, other)) = (side(world, &from)?, side(world, &to)?);
            if !is_same(one.as_deref(), other.as_deref()) {
                return Err(different_images());
            }
            Ok(compare(&from, &to, &options))
        });
        compared.await
    }

    async fn check_commit(&self, point: &BranchPoint, image: &NewImage) -> Result<()> {
        let name = ImageName::parse_new(&image.reference)?;
        let found = match point {
            BranchPoint::Snapshot(id) => self.0.snapshots().find(id).map(drop),
            BranchPoint::Sandbox(id) | BranchPoint::Base(id) => self.0.find(id.as_str()).map(drop),
        };
        found.map_err(|error| error.context(format!("commit `{}`", name.short())))
    }

    async fn commit(&self, snapshot: &SnapshotId, image: &NewImage) -> Result<ImageInfo> {
        let name = ImageName::parse_new(&image.reference)?;
        let what = format!("commit `{}`", name.short());
        let (snapshot, new) = (snapshot.clone(), image.clone());
        let made = self.blocking(move |world| {
            let kept = world.snapshots().find(&snapshot)?;
            MemoryImage::of(&kept.files, kept.image.as_deref(), &new)
        });
        // Whoever gives up while it is made has named nothing.
        let named = made.await.and_then(|made| self.0.images().put(name, Arc::new(made)));
        named.map_err(|error| error.context(what))
    }
}

impl MemorySnapshots {
    /// Does what takes longer the more files there are, where it holds up nobody.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&MemoryWorld) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let world = self.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&world)).await;
        done.unwrap_or_else(|error| {
            Err(Error::new(ErrorKind::Internal, "work on a snapshot: its task ended early")
                .with_source(error))
        })
    }
}

fn take(world: &MemoryWorld, sandbox: &MemorySandbox, new: NewSnapshot) -> Result<SnapshotInfo> {
    sandbox.while_asleep("take a snapshot", || {
        let files = frozen(sandbox);
        let mut base = sandbox.base();
        let (id, image) = (&sandbox.info.id, sandbox.image.clone());
        let kept = world.snapshots().keep(id, new, files, base.as_deref(), image)?;
        *base = Some(kept.clone());
        Ok(kept.info.clone())
    })
}

fn roll_back(world: &MemoryWorld, sandbox: &MemorySandbox, snapshot: &SnapshotId) -> Result<()> {
    sandbox.while_asleep("roll back", || {
        let kept = world.snapshots().find(snapshot)?;
        if !is_same(kept.image.as_deref(), sandbox.image.as_deref()) {
            return Err(of_another_image(snapshot));
        }
        world.give_files(sandbox, &kept.files)?;
        *sandbox.base() = Some(kept);
        Ok(())
    })
}

/// Returns the files of a sandbox as they are now.
fn frozen(sandbox: &MemorySandbox) -> FrozenFiles {
    let held = sandbox.files.lock();
    held.tree.freeze(held.root)
}

/// Tells whether two images are the same, or neither is there.
fn is_same(one: Option<&MemoryImage>, other: Option<&MemoryImage>) -> bool {
    one.map(|image| &image.digest) == other.map(|image| &image.digest)
}

/// Returns the files of one side of a comparison, and the image below them.
fn side(world: &MemoryWorld, point: &BranchPoint) -> Result<(FrozenFiles, Option<Arc<MemoryImage>>)> {
    let (id, is_present) = match point {
        BranchPoint::Snapshot(id) => {
            let kept = world.snapshots().find(id)?;
            return Ok((kept.files.clone(), kept.image.clone()));
        }
        BranchPoint::Sandbox(id) => (id, true),
        BranchPoint::Base(id) => (id, false),
    };
    let sandbox = world.find(id.as_str())?;
    let base = sandbox.base().clone();
    let files = match base {
        _ if is_present => frozen(&sandbox),
        Some(kept) => kept.files.clone(),
        None => world.first_files(&sandbox)?,
    };
    Ok((files, sandbox.image.clone()))
}

#[cfg(test)]
mod tests {
    use eyot::{ChangeKind, ExecOptions, Sandbox, SandboxPath, SandboxProvider, SandboxSpec, WorkspaceSpec};

    use super::super::files::MemoryFiles;
    use super::super::provider::MemoryProvider;
    use super::*;

    async fn take(provider: &MemoryProvider, sandbox: &Sandbox) -> Result<SnapshotInfo> {
        provider.sleep(sandbox.id().as_str()).await?;
        provider.snapshots()?.take(sandbox.id(), NewSnapshot::of(sandbox.info())).await
    }

    async fn printed(sandbox: &Sandbox, line: &str) -> String {
        let ended = sandbox.exec(line, ExecOptions::default()).await.unwrap();
        format!("{}{}", ended.stdout_text(), ended.stderr_text())
    }

    #[tokio::test]
    async fn a_persistent_workspace_is_no_part_of_a_snapshot_and_stays_through_a_rollback() {
        let provider = MemoryProvider::default();
        let workspace =
            WorkspaceSpec::Persistent { id: "shared".to_owned(), destroy_on_session_destroy: false };
        let spec = SandboxSpec { workspace, ..SandboxSpec::default() };
        let sandbox = Sandbox::create(&provider, spec.clone()).await.unwrap();
        let other = Sandbox::create(&provider, spec.clone()).await.unwrap();
        printed(&sandbox, "echo one > file; echo one > /tmp/file").await;
        let snapshot = take(&provider, &sandbox).await.unwrap();
        let id = sandbox.id().as_str();
        let woken = Sandbox::wake(&provider, id).await.unwrap();
        printed(&woken, "echo two > file; echo two > /tmp/file; echo three > /tmp/more").await;
        let (base, present) =
            (BranchPoint::Base(sandbox.id().clone()), BranchPoint::Sandbox(sandbox.id().clone()));
        let snapshots = provider.snapshots().unwrap();
        let found =
            snapshots.compare(&base, &present, &CompareOptions::below(SandboxPath::root())).await.unwrap();
        let found: Vec<_> = found.changes.iter().map(|one| (one.change, one.path.as_str())).collect();
        assert_eq!(found, [(ChangeKind::Changed, "/tmp/file"), (ChangeKind::Added, "/tmp/more")]);
        provider.sleep(id).await.unwrap();
        snapshots.roll_back(sandbox.id(), &snapshot.id).await.unwrap();
        let woken = Sandbox::wake(&provider, id).await.unwrap();
        assert_eq!(printed(&woken, "cat file /tmp/file; ls /tmp").await, "two\none\nfile\n");
        printed(&other, "echo of-other > file").await;
        assert_eq!(printed(&woken, "cat file").await, "of-other\n");
        let forked = SandboxSpec { snapshot: Some(snapshot.id), ..spec };
        let forked = Sandbox::create(&provider, forked).await.unwrap();
        assert_eq!(printed(&forked, "cat file /tmp/file").await, "of-other\none\n");
    }

    #[tokio::test]
    async fn sandboxes_that_have_all_files_in_common_have_no_snapshots() {
        let provider =
            MemoryProvider::sharing(Arc::new(bashkit::Bash::builder), MemoryFiles::with_max_bytes(1 << 20));
        assert_eq!(provider.snapshots().err().map(|error| error.kind()), Some(ErrorKind::Unsupported));
        let spec = SandboxSpec { snapshot: Some(SnapshotId::generate()), ..SandboxSpec::default() };
        let refused = Sandbox::create(&provider, spec).await.err();
        assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::Unsupported));
    }

    #[tokio::test]
    async fn the_snapshots_of_a_pool_hold_a_bounded_amount_and_a_removal_makes_room() {
        let provider = MemoryProvider::default();
        let sandbox = Sandbox::create(&provider, SandboxSpec::default()).await.unwrap();
        let mut taken = Vec::new();
        let full = loop {
            let woken = Sandbox::wake(&provider, sandbox.id().as_str()).await.unwrap();
            let bytes = vec![u8::try_from(taken.len()).unwrap(); 200 << 20];
            woken.write("large", bytes).await.unwrap();
            match take(&provider, &sandbox).await {
                Ok(snapshot) => taken.push(snapshot),
                Err(error) => break error,
            }
        };
        assert_eq!((full.kind(), taken.len()), (ErrorKind::Quota, 5), "{full}");
        let snapshots = provider.snapshots().unwrap();
        assert_eq!(snapshots.list().await.unwrap().len(), 5);
        snapshots.remove(&taken[0].id).await.unwrap();
        assert!(take(&provider, &sandbox).await.is_ok());
    }

    #[tokio::test]
    async fn an_image_that_is_replaced_makes_room_for_the_next_one_of_its_name() {
        let provider = MemoryProvider::default();
        let spec: SandboxSpec = serde_json::from_str(r#"{"limits":{"disk_mib":1024}}"#).unwrap();
        let sandbox = Sandbox::create(&provider, spec).await.unwrap();
        let snapshots = provider.snapshots().unwrap();
        let committed = async |byte: u8, name: &str| {
            let woken = Sandbox::wake(&provider, sandbox.id().as_str()).await.unwrap();
            woken.write("large", vec![byte; 600 << 20]).await.unwrap();
            provider.sleep(sandbox.id().as_str()).await.unwrap();
            let hidden = NewSnapshot { for_forks: true, ..NewSnapshot::of(sandbox.info()) };
            let taken = snapshots.take(sandbox.id(), hidden).await.unwrap();
            let image = NewImage { reference: name.to_owned(), max_bytes: None };
            snapshots.commit(&taken.id, &image).await.map(|made| made.digest)
        };
        let first = committed(1, "app:1").await.unwrap();
        let second = committed(2, "app:1").await.unwrap();
        assert_ne!(first, second);
        assert_eq!(committed(3, "other:1").await.err().map(|error| error.kind()), Some(ErrorKind::Quota));
        let listed = provider.images(Arc::new(|_| None)).unwrap().list().await.unwrap();
        let listed: Vec<_> = listed.iter().map(|image| (image.name.as_str(), &image.digest)).collect();
        assert_eq!(listed, [("app:1", &second)]);
    }
}
