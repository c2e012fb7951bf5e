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
        let lifetime = &self.inner.lifetime;
        lifetime.over.store(true, Ordering::Release);
        let mut confirmed = lifetime.confirmed.lock().await;
        if *confirmed {
            return Ok(());
        }
        match self.driver().destroy().await {
            Ok(()) => {}
            // Its deadline was faster: what was wanted holds.
            Err(error) if error.kind() == ErrorKind::Destroyed => {}
            Err(error) => return Err(error.context(format!("destroy sandbox `{}`", self.name()))),
        }
        *confirmed = true;
        drop(confirmed);
        match self.observer() {
            Some(observer) => observer.destroyed(self.event()).await,
            None => Ok(()),
        }
    }
}
