//! The snapshots of one pool, for a provider that is this pool: those of other pools are not there.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    AwakeSnapshot, BranchPoint, CompareOptions, FileChanges, ImageInfo, NewImage, NewSnapshot, Result,
    SandboxId, SandboxName, SandboxOperationUnsupported, SandboxSnapshots, SnapshotId, SnapshotInfo,
};

use super::SandboxPool;

/// The snapshots of a pool.
pub(super) struct PoolSnapshots {
    pub pool: SandboxPool,
    /// The snapshots of all pools.
    pub all: Arc<dyn SandboxSnapshots>,
    /// The caller may change the images, which all pools share.
    pub may_commit: bool,
}

#[async_trait]
impl SandboxSnapshots for PoolSnapshots {
    async fn check_still(&self, sandbox: &SandboxId, what: &str) -> Result<()> {
        self.require(&BranchPoint::Sandbox(sandbox.clone())).await?;
        self.all.check_still(sandbox, what).await
    }

    async fn take(&self, sandbox: &SandboxId, new: NewSnapshot) -> Result<SnapshotInfo> {
        self.all.take(sandbox, self.of_pool(sandbox, new).await?).await
    }

    async fn take_awake(&self, sandbox: &SandboxId, new: &NewSnapshot) -> Result<Option<AwakeSnapshot>> {
        self.all.take_awake(sandbox, &self.of_pool(sandbox, new.clone()).await?).await
    }

    async fn roll_back(&self, sandbox: &SandboxId, snapshot: &SnapshotId) -> Result<()> {
        self.pool.live_row(sandbox.as_str()).await?;
        self.pool.find_snapshot(snapshot.as_str()).await?;
        self.all.roll_back(sandbox, snapshot).await
    }

    async fn list(&self) -> Result<Vec<SnapshotInfo>> {
        self.pool.snapshots().await
    }

    async fn list_with_sizes(&self) -> Result<Vec<SnapshotInfo>> {
        self.pool.snapshots_with_sizes().await
    }

    async fn find(&self, snapshot: &SnapshotId) -> Result<Option<SnapshotInfo>> {
        let found = self.all.find(snapshot).await?;
        Ok(found.filter(|info| info.pool.as_ref() == Some(self.pool.name())))
    }

    async fn bytes_of_pool(&self, _pool: &SandboxName) -> Result<u64> {
        self.all.bytes_of_pool(self.pool.name()).await
    }

    async fn remove(&self, snapshot: &SnapshotId) -> Result<()> {
        self.pool.find_snapshot(snapshot.as_str()).await?;
        self.all.remove(snapshot).await
    }

    async fn compare(
        &self,
        from: &BranchPoint,
        to: &BranchPoint,
        options: &CompareOptions,
    ) -> Result<FileChanges> {
        for point in [from, to] {
            self.require(point).await?;
        }
        self.all.compare(from, to, options).await
    }

    async fn check_commit(&self, point: &BranchPoint, image: &NewImage) -> Result<()> {
        self.refuse_commit_of_tenant()?;
        self.require(point).await?;
        self.all.check_commit(point, image).await
    }

    async fn commit(&self, snapshot: &SnapshotId, image: &NewImage) -> Result<ImageInfo> {
        self.refuse_commit_of_tenant()?;
        self.pool.find_snapshot(snapshot.as_str()).await?;
        self.all.commit(snapshot, image).await
    }
}

impl PoolSnapshots {
    /// Describes a snapshot of one of the pool's sandboxes, as the pool knows it.
    async fn of_pool(&self, sandbox: &SandboxId, new: NewSnapshot) -> Result<NewSnapshot> {
        let row = self.pool.live_row(sandbox.as_str()).await?;
        let pool = Some(self.pool.name().clone());
        let most_bytes_of_pool = self.pool.bytes_for_snapshots().await?;
        Ok(NewSnapshot { pool, sandbox_name: row.name, spec: row.spec, most_bytes_of_pool, ..new })
    }

    /// Refuses what is not of this pool.
    async fn require(&self, point: &BranchPoint) -> Result<()> {
        match point {
            BranchPoint::Snapshot(id) => self.pool.find_snapshot(id.as_str()).await.map(drop),
            BranchPoint::Sandbox(id) | BranchPoint::Base(id) => {
                self.pool.live_row(id.as_str()).await.map(drop)
            }
        }
    }

    /// Images belong to the state folder, and every pool may use them.
    fn refuse_commit_of_tenant(&self) -> Result<()> {
        if self.may_commit {
            return Ok(());
        }
        Err(SandboxOperationUnsupported::new("commit", self.pool.provider().name(), &[]).into())
    }
}
