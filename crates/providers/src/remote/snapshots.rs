//! The snapshots of a pool of a server. They are taken of sandboxes that sleep, as the trait says: the server is told to refuse others.

use async_trait::async_trait;
use eyot::wire::SnapshotList;
use eyot::{
    BranchPoint, CompareOptions, ErrorKind, FileChanges, ImageInfo, NewImage, NewSnapshot, Result, SandboxId,
    SandboxSnapshots, SnapshotId, SnapshotInfo,
};
use eyot_engine::{CommitOptions, ComparedPoint, RollbackOptions, SnapshotOptions};

use super::branch_calls;
use super::http::ServerClient;

/// The snapshots of the pool that requests name.
pub(super) struct RemoteSnapshots(pub ServerClient);

impl RemoteSnapshots {
    async fn listed(&self, sizes: bool) -> Result<Vec<SnapshotInfo>> {
        let SnapshotList { snapshots } = branch_calls::list(&self.0, self.0.pool(), sizes).await?;
        Ok(snapshots)
    }
}

#[async_trait]
impl SandboxSnapshots for RemoteSnapshots {
    async fn take(&self, sandbox: &SandboxId, new: NewSnapshot) -> Result<SnapshotInfo> {
        let NewSnapshot { id, name, labels, for_forks, .. } = new;
        let options =
            SnapshotOptions { id: Some(id), name, labels, for_forks, asleep_only: true, stop: false };
        Ok(branch_calls::take(&self.0, self.0.pool(), sandbox.as_str(), &options).await?.snapshot)
    }

    async fn roll_back(&self, sandbox: &SandboxId, snapshot: &SnapshotId) -> Result<()> {
        let options = RollbackOptions { snapshot: snapshot.to_string(), stop: false, asleep_only: true };
        branch_calls::roll_back(&self.0, self.0.pool(), sandbox.as_str(), &options).await.map(drop)
    }

    async fn list(&self) -> Result<Vec<SnapshotInfo>> {
        self.listed(false).await
    }

    async fn list_with_sizes(&self) -> Result<Vec<SnapshotInfo>> {
        self.listed(true).await
    }

    async fn find(&self, snapshot: &SnapshotId) -> Result<Option<SnapshotInfo>> {
        match branch_calls::get(&self.0, self.0.pool(), snapshot.as_str()).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    async fn remove(&self, snapshot: &SnapshotId) -> Result<()> {
        branch_calls::remove(&self.0, self.0.pool(), snapshot.as_str()).await
    }

    async fn compare(
        &self,
        from: &BranchPoint,
        to: &BranchPoint,
        options: &CompareOptions,
    ) -> Result<FileChanges> {
        branch_calls::diff(&self.0, self.0.pool(), &point(from), Some(&point(to)), options).await
    }

    /// Lets everything pass: the server checks, and bounds the layer.
    async fn check_commit(&self, _: &BranchPoint, _: &NewImage) -> Result<()> {
        Ok(())
    }

    async fn commit(&self, snapshot: &SnapshotId, image: &NewImage) -> Result<ImageInfo> {
        let reference = image.reference.clone();
        let options = CommitOptions { from: snapshot.to_string(), reference, stop: false };
        Ok(branch_calls::commit(&self.0, self.0.pool(), &options).await?.image)
    }
}

/// Names a side of a comparison by its id, which can mean nothing else.
fn point(point: &BranchPoint) -> ComparedPoint {
    match point {
        BranchPoint::Snapshot(id) => ComparedPoint::Named(id.to_string()),
        BranchPoint::Sandbox(id) => ComparedPoint::Sandbox(id.to_string()),
        BranchPoint::Base(id) => ComparedPoint::BaseOf(id.to_string()),
    }
}
