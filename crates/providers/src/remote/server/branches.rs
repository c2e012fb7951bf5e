//! Snapshots, forks, commits, rollbacks and comparisons in a server's pools. `None` for a pool is the key's own.

use eyot::wire::SnapshotList;
use eyot::{CompareOptions, FileChanges, Result, SandboxName, SnapshotInfo};
use eyot_engine::{
    CommitOptions, ComparedPoint, ForkOptions, Forks, ImageCommitted, RollbackDone, RollbackOptions,
    SnapshotOptions, SnapshotTaken,
};

use super::RemoteServer;
use crate::remote::branch_calls;

impl RemoteServer {
    /// Takes a snapshot of a sandbox, by name or id.
    pub async fn snapshot(
        &self,
        pool: Option<&SandboxName>,
        sandbox: &str,
        options: &SnapshotOptions,
    ) -> Result<SnapshotTaken> {
        branch_calls::take(self.server(), named(pool), sandbox, options).await
    }

    /// Lists the snapshots of a pool, with their sizes.
    pub async fn snapshots(&self, pool: Option<&SandboxName>) -> Result<Vec<SnapshotInfo>> {
        let SnapshotList { snapshots } = branch_calls::list(self.server(), named(pool), true).await?;
        Ok(snapshots)
    }

    /// Removes a snapshot, by name or id.
    pub async fn remove_snapshot(&self, pool: Option<&SandboxName>, snapshot: &str) -> Result<()> {
        branch_calls::remove(self.server(), named(pool), snapshot).await
    }

    /// Gives a sandbox the files of a snapshot.
    pub async fn roll_back(
        &self,
        pool: Option<&SandboxName>,
        sandbox: &str,
        options: &RollbackOptions,
    ) -> Result<RollbackDone> {
        branch_calls::roll_back(self.server(), named(pool), sandbox, options).await
    }

    /// Makes sandboxes that begin with the files of a snapshot or of another sandbox.
    pub async fn fork(&self, pool: Option<&SandboxName>, options: &ForkOptions) -> Result<Forks> {
        branch_calls::fork(self.server(), named(pool), options).await
    }

    /// Makes an image of a snapshot or of a sandbox as it is now. Dropping the future ends it.
    pub async fn commit(
        &self,
        pool: Option<&SandboxName>,
        options: &CommitOptions,
    ) -> Result<ImageCommitted> {
        branch_calls::commit(self.server(), named(pool), options).await
    }

    /// Compares two sides; without the second, what a sandbox has changed since its last snapshot.
    pub async fn diff(
        &self,
        pool: Option<&SandboxName>,
        from: &ComparedPoint,
        to: Option<&ComparedPoint>,
        options: &CompareOptions,
    ) -> Result<FileChanges> {
        branch_calls::diff(self.server(), named(pool), from, to, options).await
    }
}

fn named(pool: Option<&SandboxName>) -> Option<&str> {
    pool.map(SandboxName::as_str)
}
