//! Which sandboxes a session acts on.

use std::fmt;
use std::sync::Arc;

use eyot::{Result, SandboxPool};
use tokio::sync::OnceCell;

/// Which sandboxes a session acts on.
#[derive(Clone)]
pub enum Pools {
    /// One pool for every session; it stays when they end.
    Shared(SandboxPool),
    /// One for each session, made when it first uses a sandbox and destroyed when it ends.
    PerSession(Arc<dyn Fn() -> Result<SandboxPool> + Send + Sync>),
}

impl Pools {
    /// A pool for each session.
    pub fn per_session(make: impl Fn() -> Result<SandboxPool> + Send + Sync + 'static) -> Self {
        Self::PerSession(Arc::new(make))
    }
}

impl fmt::Debug for Pools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared(_) => "Shared",
            Self::PerSession(_) => "PerSession",
        })
    }
}

/// The pool of one session, once there is one.
#[derive(Default)]
pub(super) struct SessionPool(OnceCell<SandboxPool>);

impl SessionPool {
    /// The session's pool.
    pub(super) async fn get(&self, pools: &Pools) -> Result<SandboxPool> {
        match pools {
            Pools::Shared(pool) => Ok(pool.clone()),
            Pools::PerSession(make) => self.0.get_or_try_init(async || make()).await.cloned(),
        }
    }

    /// The pool that is to be destroyed with the session, if it has made one.
    pub(super) fn take(&mut self) -> Option<SandboxPool> {
        self.0.take()
    }
}
