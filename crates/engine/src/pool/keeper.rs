//! The end of a sandbox of a pool by a handle on it: the name is free again once the sandbox is gone.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::internal::run_detached;
use eyot::{ErrorKind, Result, SandboxDriver, SandboxKeeper};

use super::SandboxPool;
use crate::store::SandboxRow;

/// Destroys a sandbox of a pool for its handle, and frees its name.
pub(super) struct PoolKeeper {
    pub pool: SandboxPool,
    pub row: SandboxRow,
    pub driver: Arc<dyn SandboxDriver>,
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl SandboxKeeper for PoolKeeper {
    async fn destroy(&self) -> Result<()> {
        let driver = Arc::clone(&self.driver);
        self.end(async move { driver.destroy().await }, "it was destroyed").await
    }

    async fn abandon(&self) -> Result<()> {
        let driver = Arc::clone(&self.driver);
        self.end(async move { driver.abandon().await }, "its create failed").await
    }
}

impl PoolKeeper {
    async fn end(
        &self,
        destroyed: impl Future<Output = Result<()>> + Send + 'static,
        reason: &'static str,
    ) -> Result<()> {
        let (pool, row) = (self.pool.clone(), self.row.clone());
        run_detached(async move { pool.end(&row, destroyed, reason).await }).await
    }
}

impl SandboxPool {
    /// Frees the name of a sandbox with the end that `destroyed` brings about.
    async fn end(
        &self,
        row: &SandboxRow,
        destroyed: impl Future<Output = Result<()>>,
        reason: &str,
    ) -> Result<()> {
        let claim = match self.inner.records.begin_removing(row).await {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            begun => Some(begun?),
        };
        match destroyed.await {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {
                return Err(error);
            }
            _ => {}
        }
        if let Some(claim) = claim {
            self.inner.records.finish_removing(row, claim, reason).await?;
            self.forget_name(&row.name);
        }
        Ok(())
    }
}
