//! Selects the pool that a session acts on.

use std::fmt;
use std::sync::{Arc, OnceLock};

use eyot::{Error, ErrorKind, Result};
use eyot_engine::SandboxPool;
use tokio::sync::OnceCell;

/// The pool that a session acts on.
#[derive(Clone)]
pub enum SessionPools {
    /// One pool for every session. It stays when they end.
    Shared(SandboxPool),
    /// A pool per session, made when the session first uses a sandbox and destroyed when it ends.
    PerSession(Arc<dyn Fn() -> Result<SandboxPool> + Send + Sync>),
    /// The pool that the authentication layer notes on the request that opens the session (a
    /// `CallersPool`). It stays when the session ends.
    PerCaller,
}

/// The pool of the client that sent a request.
#[derive(Clone)]
pub(crate) struct CallersPool(pub SandboxPool);

impl SessionPools {
    /// Makes a pool for each session with `make`.
    pub fn per_session(make: impl Fn() -> Result<SandboxPool> + Send + Sync + 'static) -> Self {
        Self::PerSession(Arc::new(make))
    }
}

impl fmt::Debug for SessionPools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared(_) => "Shared",
            Self::PerSession(_) => "PerSession",
            Self::PerCaller => "PerCaller",
        })
    }
}

/// The pool of one session, once it has one.
#[derive(Default)]
pub(super) struct SessionPool {
    made: OnceCell<SandboxPool>,
    callers: OnceLock<SandboxPool>,
}

impl SessionPool {
    /// Takes this caller's pool as the session's.
    pub(super) fn is_of(&self, CallersPool(pool): &CallersPool) {
        self.callers.get_or_init(|| pool.clone());
    }

    /// Returns the caller's pool, if the session has such.
    pub(super) fn callers(&self) -> Option<&SandboxPool> {
        self.callers.get()
    }

    /// Returns the session's pool, and makes it if there is none yet.
    pub(super) async fn get(&self, pools: &SessionPools) -> Result<SandboxPool> {
        match pools {
            SessionPools::Shared(pool) => Ok(pool.clone()),
            SessionPools::PerSession(make) => self.made.get_or_try_init(async || make()).await.cloned(),
            SessionPools::PerCaller => {
                let unknown = || Error::new(ErrorKind::Internal, "nobody has said whose session this is");
                self.callers.get().cloned().ok_or_else(unknown)
            }
        }
    }

    /// Returns the pool that is to be destroyed with the session, if the session made one.
    pub(super) fn take(&mut self) -> Option<SandboxPool> {
        self.made.take()
    }
}
