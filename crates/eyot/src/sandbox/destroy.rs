//! The end of a sandbox: once for all clones of its handle, retried only if the backend failed.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Mutex;

use super::Sandbox;
use crate::error::{ErrorKind, Result};
use crate::tasks::run_detached;

/// The end of a sandbox through its handle.
#[derive(Default)]
pub(crate) struct Lifetime {
    /// Set before the backend is asked, so that nothing new begins meanwhile.
    over: AtomicBool,
    /// `true` once the backend has confirmed; held while it is asked, so that a second caller waits
    /// for the first.
    confirmed: Mutex<bool>,
}

impl Lifetime {
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

impl Sandbox {
    /// Destroys the sandbox: processes, mounts, files. From the call on, every operation of every clone is refused
    /// with `destroyed`. Twice is fine and tells the observer once; a destroy that failed may be tried again. One that
    /// was begun goes on when its future is dropped.
    pub async fn destroy(&self) -> Result<()> {
        self.inner.lifetime.over.store(true, Ordering::Release);
        let sandbox = self.clone();
        run_detached(async move {
            let ended = match &sandbox.inner.keeper {
                Some(keeper) => sandbox.end(keeper.destroy(), "destroy").await?,
                None => sandbox.end(sandbox.driver().destroy(), "destroy").await?,
            };
            match sandbox.observer().filter(|_| ended) {
                Some(observer) => observer.destroyed(sandbox.event()).await,
                None => Ok(()),
            }
        })
        .await
    }

    /// Undoes the create of a sandbox that no caller received: as [`Sandbox::destroy`], but what
    /// was there before the create stays, a persistent workspace that would go with the sandbox
    /// above all, and the observer is told nothing.
    pub async fn abandon(&self) -> Result<()> {
        self.inner.lifetime.over.store(true, Ordering::Release);
        let sandbox = self.clone();
        run_detached(async move {
            let ended = match &sandbox.inner.keeper {
                Some(keeper) => sandbox.end(keeper.abandon(), "abandon").await,
                None => sandbox.end(sandbox.driver().abandon(), "abandon").await,
            };
            ended.map(drop)
        })
        .await
    }

    /// Ends the sandbox, and tells if it was this call that did.
    async fn end(&self, end: impl Future<Output = Result<()>>, what: &str) -> Result<bool> {
        let lifetime = &self.inner.lifetime;
        let mut confirmed = lifetime.confirmed.lock().await;
        if *confirmed {
            return Ok(false);
        }
        match end.await {
            Ok(()) => {}
            // The sandbox's deadline was faster: the wanted state holds.
            Err(error) if error.kind() == ErrorKind::Destroyed => {}
            Err(error) => return Err(error.context(format!("{what} sandbox `{}`", self.name()))),
        }
        *confirmed = true;
        Ok(true)
    }
}
