//! Applying the changes of a sandbox's copies of folders to these folders of the host.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::internal::run_detached;
use eyot::{ApplyOptions, ApplyReport, Capability, Result, SandboxCowMounts, SandboxId};

use super::SandboxPool;
use super::still::StillTerms;
use crate::events::EventKind;
use crate::store::SandboxRow;

impl SandboxPool {
    /// Writes the changes of a sandbox's copy of a folder into that folder: all of them or, on a failure, none. A sandbox that runs
    /// is put to sleep for it, and is awake again afterwards; with commands that run it is refused unless `stop` is set. A
    /// dry run leaves it as it is.
    ///
    /// # Errors
    /// `conflict` if commands run in it, or if the host has changed one of the files since the sandbox was made.
    pub async fn apply(&self, name: &str, options: &ApplyOptions, stop: bool) -> Result<ApplyReport> {
        let provider = self.provider();
        provider.capabilities().require(Capability::CowMounts, provider.name(), "apply", &[])?;
        let (pool, row, options) = (self.clone(), self.live(name).await?, options.clone());
        let cow_mounts = provider.cow_mounts()?;
        run_detached(async move {
            if options.dry_run {
                return cow_mounts.apply(&row.id, &options).await;
            }
            let still = pool.hold_still(&row, "apply", StillTerms { stop, asleep_only: false }).await?;
            let applied = cow_mounts.apply(&row.id, &options).await;
            let woken = pool.let_go(&row, still, "its changes were applied").await;
            let report = applied?;
            woken?;
            pool.note_applied(&row, &report).await?;
            Ok(report)
        })
        .await
    }

    async fn note_applied(&self, row: &SandboxRow, report: &ApplyReport) -> Result<()> {
        let kind =
            EventKind::Applied { target: report.target.to_string(), changes: report.changes.len() as u64 };
        self.inner.records.record(row, kind, "an apply was asked for").await
    }
}

/// The copies of folders that the sandboxes of one pool have, for a provider that is this pool.
pub(super) struct PoolCowMounts {
    pub pool: SandboxPool,
    /// Those of all pools.
    pub all: Arc<dyn SandboxCowMounts>,
}

#[async_trait]
impl SandboxCowMounts for PoolCowMounts {
    async fn apply(&self, sandbox: &SandboxId, options: &ApplyOptions) -> Result<ApplyReport> {
        let row = self.pool.live_row(sandbox.as_str()).await?;
        let (pool, all, options) = (self.pool.clone(), Arc::clone(&self.all), options.clone());
        // What was applied is told, though nobody waits for it.
        run_detached(async move {
            let report = all.apply(&row.id, &options).await?;
            if report.applied {
                pool.note_applied(&row, &report).await?;
            }
            Ok(report)
        })
        .await
    }
}
