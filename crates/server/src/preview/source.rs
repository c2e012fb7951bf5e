//! The source of the sandboxes that previews show: a server's pools, or the one sandbox of `eyot
//! browse`.

use eyot::{Result, Sandbox, SandboxId, SandboxName};
use futures_util::future::BoxFuture;

use super::grants::Grants;
use crate::api::Api;
use crate::problem::Refusal;

/// Finds or wakes the sandbox that is shown.
pub(crate) type OpenSandbox = Box<dyn Fn() -> BoxFuture<'static, Result<Sandbox>> + Send + Sync>;

/// The source of sandboxes, and of the grants to see their ports.
pub(crate) enum SandboxSource {
    /// The pools of a server.
    Server(Api),
    /// One sandbox, which is opened anew for each request, since it may sleep between them.
    One(OneSandbox),
}

/// The one sandbox that is shown.
pub(crate) struct OneSandbox {
    /// The id in its addresses.
    pub id: SandboxId,
    /// The pool's name in its grants.
    pub pool: SandboxName,
    pub grants: Grants,
    pub open: OpenSandbox,
}

impl SandboxSource {
    pub fn grants(&self) -> &Grants {
        match self {
            Self::Server(api) => api.grants(),
            Self::One(one) => &one.grants,
        }
    }

    /// Returns the pool of a sandbox; `None`: there is no such sandbox.
    pub async fn pool_of(&self, id: &SandboxId) -> Result<Option<SandboxName>> {
        match self {
            Self::Server(api) => api.pool_of_any(id).await,
            Self::One(one) => Ok((one.id == *id).then(|| one.pool.clone())),
        }
    }

    /// Returns a sandbox that is awake, and whether it had to be woken.
    pub async fn awake(&self, pool: &SandboxName, id: &SandboxId) -> Result<(Sandbox, bool), Refusal> {
        match self {
            Self::Server(api) => api.awake(pool, id).await,
            Self::One(one) => Ok(((one.open)().await?, false)),
        }
    }
}
