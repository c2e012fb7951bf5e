//! The end of a sandbox: once for all clones of its handle, retried only if the backend failed.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Mutex;

use super::Sandbox;
use crate::error::{ErrorKind, Result};

/// Whether a sandbox was destroyed through its handle.
#[derive(Default)]
pub(crate) struct Lifetime {
    /// Set before the backend is asked, so that nothing new begins meanwhile.
    over: AtomicBool,
    /// Whether the backend has confirmed; held while it is asked, so that a second caller waits for the first.
    confirmed: Mutex<bool>,
}

impl Lifetime {
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

impl Sandbox {
    /// Destroys the sandbox: processes, mounts, files. From the call on, every operation of every clone is refused
    /// with `destroyed`. Twice is fine and tells the observer once; a destroy that failed may be tried again.
    pub async fn destroy(&self) -> Result<()> {
        let ended = match &self.inner.keeper {
            Some(keeper) => self.end(keeper.destroy(), "destroy").await?,
            None => self.end(self.driver().destroy(), "destroy").await?,
        };
        match self.observer().filter(|_| ended) {
            Some(observer) => observer.destroyed(self.event()).await,
            None => Ok(()),
        }
    }

    /// Undoes the create of a sandbox that nobody is to have: as [`Sandbox::destroy`], but what was there before the create
    /// stays, a persistent workspace that would go with the sandbox above all, and the observer is told nothing.
    pub async fn abandon(&self) -> Result<()> {
        let ended = match &self.inner.keeper {
            Some(keeper) => self.end(keeper.abandon(), "abandon").await,
            None => self.end(self.driver().abandon(), "abandon").await,
        };
        ended.map(drop)
    }

    /// Refuses every operation from now on, and ends the sandbox so; whether it was this call that did.
    async fn end(&self, end: impl Future<Output = Result<()>>, what: &str) -> Result<bool> {
        let lifetime = &self.inner.lifetime;
        lifetime.over.store(true, Ordering::Release);
        let mut confirmed = lifetime.confirmed.lock().await;
        if *confirmed {
            return Ok(false);
        }
        match end.await {
            Ok(()) => {}
            // Its deadline was faster: what was wanted holds.
            Err(error) if error.kind() == ErrorKind::Destroyed => {}
            Err(error) => return Err(error.context(format!("{what} sandbox `{}`", self.name()))),
        }
        *confirmed = true;
        Ok(true)
    }
}
