//! The end of a sandbox of a pool by a handle on it: the name is free again once the sandbox is gone.

use std::sync::Arc;

use async_trait::async_trait;

use super::SandboxPool;
use crate::driver::SandboxDriver;
use crate::error::{ErrorKind, Result};
use crate::events::EventKind;
use crate::provider::SandboxKeeper;
use crate::store::SandboxRow;

/// What a handle asks to destroy its sandbox.
pub(super) struct PoolKeeper {
    pub pool: SandboxPool,
    pub row: SandboxRow,
    pub driver: Arc<dyn SandboxDriver>,
}

#[async_trait]
impl SandboxKeeper for PoolKeeper {
    async fn destroy(&self) -> Result<()> {
        self.end(self.driver.destroy(), "it was destroyed").await
    }

    async fn abandon(&self) -> Result<()> {
        self.end(self.driver.abandon(), "its create failed").await
    }
}

impl PoolKeeper {
    async fn end(&self, destroyed: impl Future<Output = Result<()>>, reason: &str) -> Result<()> {
        let (books, id) = (&self.pool.inner.books, self.row.id.clone());
        let begun = books.ask(move |store| store.begin_removing(&id)).await;
        let was_there = match begun {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        match destroyed.await {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {
                return Err(error);
            }
            _ => {}
        }
        if was_there {
            books.record(&self.row, EventKind::Destroyed, reason).await?;
            let id = self.row.id.clone();
            books.ask(move |store| store.finish_removing(&id)).await?;
            self.pool.forgotten(&self.row.name);
        }
        Ok(())
    }
}
