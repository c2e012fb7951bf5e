//! Which sandboxes a session acts on.

use std::fmt;
use std::sync::{Arc, OnceLock};

use eyot::{Error, ErrorKind, Result, SandboxPool};
use tokio::sync::OnceCell;

/// Which sandboxes a session acts on.
#[derive(Clone)]
pub enum Pools {
    /// One pool for every session; it stays when they end.
    Shared(SandboxPool),
    /// One for each session, made when it first uses a sandbox and destroyed when it ends.
    PerSession(Arc<dyn Fn() -> Result<SandboxPool> + Send + Sync>),
    /// What whoever lets clients in says of the request that opens a session (a `CallersPool`); it stays when they end.
    PerCaller,
}

/// The pool of whoever sent a request.
#[derive(Clone)]
pub(crate) struct CallersPool(pub SandboxPool);

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
            Self::PerCaller => "PerCaller",
        })
    }
}

/// The pool of one session, once there is one.
#[derive(Default)]
pub(super) struct SessionPool {
    made: OnceCell<SandboxPool>,
    callers: OnceLock<SandboxPool>,
}

impl SessionPool {
    /// The session is this caller's.
    pub(super) fn is_of(&self, CallersPool(pool): &CallersPool) {
        // A second `initialize` changes nothing.
        self.callers.get_or_init(|| pool.clone());
    }

    /// The session's pool.
    pub(super) async fn get(&self, pools: &Pools) -> Result<SandboxPool> {
        match pools {
            Pools::Shared(pool) => Ok(pool.clone()),
            Pools::PerSession(make) => self.made.get_or_try_init(async || make()).await.cloned(),
            Pools::PerCaller => {
                let unknown = || Error::new(ErrorKind::Internal, "nobody has said whose session this is");
                self.callers.get().cloned().ok_or_else(unknown)
            }
        }
    }

    /// The pool that is to be destroyed with the session, if it has made one.
    pub(super) fn take(&mut self) -> Option<SandboxPool> {
        self.made.take()
    }
}
