//! Persistent workspaces of a pool, by the ids that they have for the provider below.
//!
//! A workspace ID of the pool POOL is POOL.ID there, and one of the pool `default` is ID, as the
//! command line always had it. A name of a pool has no dot, so an ID with a dot could be another
//! pool's: that one is `default.ID`. Earlier versions of the server put `default.` before every ID
//! of that pool; where such a workspace is there, it is the one that is meant.

use eyot::Result;

use super::SandboxPool;
use super::as_provider::PoolCaller;
use crate::pool_options::DEFAULT_SANDBOX;

impl SandboxPool {
    /// Returns the provider's id of the workspace that a caller calls `id`.
    pub(super) async fn workspace_id(&self, id: &str, caller: PoolCaller) -> Result<String> {
        let with_pool = format!("{}.{id}", self.name());
        if self.name().as_str() != DEFAULT_SANDBOX {
            return Ok(with_pool);
        }
        if caller == PoolCaller::Owner && self.provider().has_workspace(id).await? {
            return Ok(id.to_owned());
        }
        if id.contains('.') || self.provider().has_workspace(&with_pool).await? {
            return Ok(with_pool);
        }
        Ok(id.to_owned())
    }
}
