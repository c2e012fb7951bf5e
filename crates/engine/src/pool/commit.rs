//! Commits: images that are made of a snapshot or of a sandbox as it is now.

use eyot::{BranchPoint, Capability, NewImage, NewSnapshot, Result};

use super::SandboxPool;
use super::branch_options::{CommitOptions, ForkSource, ForkedFiles, ImageCommitted, SnapshotTaken};
use super::still::StillTerms;

impl SandboxPool {
    /// Finds what an image is to be made of: a snapshot or, if there is none of that name, a sandbox.
    pub async fn commit_source(&self, id_or_name: &str) -> Result<ForkSource> {
        let provider = self.provider();
        provider.capabilities().require(Capability::Commit, provider.name(), "commit", &[])?;
        self.branch_source(id_or_name).await
    }

    /// Makes an image of what [`SandboxPool::commit_source`] found. A sandbox is kept still only while a snapshot of it is
    /// taken, which is not listed and goes with the last sandbox above it. Dropping the future ends the commit. `max_bytes`
    /// bounds the layer, uncompressed.
    ///
    /// # Errors
    /// Those of [`eyot::SandboxSnapshots::commit`]. A refusal that needs no look at the files comes before anything is stopped.
    pub async fn commit(
        &self,
        source: ForkSource,
        options: CommitOptions,
        max_bytes: Option<u64>,
    ) -> Result<ImageCommitted> {
        let image = NewImage { reference: options.reference, max_bytes };
        let snapshots = self.provider().snapshots()?;
        let (snapshot, stopped) = match source.0 {
            ForkedFiles::Snapshot(snapshot) => (snapshot.id, Vec::new()),
            ForkedFiles::Sandbox(row) => {
                snapshots.check_commit(&BranchPoint::Sandbox(row.id.clone()), &image).await?;
                let new = NewSnapshot { for_forks: true, ..self.new_snapshot(&row) };
                let terms = StillTerms { stop: options.stop, asleep_only: false };
                let SnapshotTaken { snapshot, stopped } = self.take(*row, new, terms).await?;
                (snapshot.id, stopped)
            }
        };
        let image = snapshots.commit(&snapshot, &image).await?;
        Ok(ImageCommitted { image, stopped })
    }
}
