//! The snapshots of one pool, for a provider that is this pool: those of other pools are not there.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    BranchPoint, CompareOptions, FileChanges, NewSnapshot, Result, SandboxId, SandboxSnapshots, SnapshotId,
    SnapshotInfo,
};

use super::SandboxPool;

/// The snapshots of a pool.
pub(super) struct PoolSnapshots {
    pub pool: SandboxPool,
    /// The snapshots of all pools.
    pub all: Arc<dyn SandboxSnapshots>,
}

#[async_trait]
impl SandboxSnapshots for PoolSnapshots {
    async fn take(&self, sandbox: &SandboxId, new: NewSnapshot) -> Result<SnapshotInfo> {
        let row = self.pool.live_row(sandbox.as_str()).await?;
        let new = NewSnapshot {
            pool: Some(self.pool.name().clone()),
            sandbox_name: row.name,
            spec: row.spec,
            ..new
        };
        self.all.take(sandbox, new).await
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
            match point {
                BranchPoint::Snapshot(id) => self.pool.find_snapshot(id.as_str()).await.map(drop)?,
                BranchPoint::Sandbox(id) | BranchPoint::Base(id) => {
                    self.pool.live_row(id.as_str()).await.map(drop)?;
                }
            }
        }
        self.all.compare(from, to, options).await
    }
}
