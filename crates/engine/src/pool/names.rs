//! Names of a pool's sandboxes as callers write them: NAME, POOL/NAME or an id.

use eyot::{Error, ErrorKind, Result, SandboxId, SandboxName};

use super::SandboxPool;
use crate::name_in_pool::NameInPool;

impl SandboxPool {
    /// Returns the name in this pool that NAME, POOL/NAME or an id means. Only an id has to be of a
    /// sandbox that is there.
    pub(super) async fn name_of(&self, named: &str) -> Result<SandboxName> {
        let Ok(id) = SandboxId::parse(named) else { return self.name_in_pool(named) };
        let row = self.inner.records.ask(move |store| store.sandbox(&id)).await?;
        let row = row.filter(|row| row.pool == *self.name());
        row.map(|row| row.name).ok_or_else(|| self.not_here(named))
    }

    /// Returns the name in this pool that NAME or POOL/NAME means.
    pub(super) fn name_in_pool(&self, named: &str) -> Result<SandboxName> {
        let NameInPool { pool, name } = NameInPool::parse(named)?;
        if pool.is_none_or(|pool| pool == *self.name()) { Ok(name) } else { Err(self.not_here(named)) }
    }

    /// The error of a sandbox that is not in this pool, whether it is in another or nowhere.
    fn not_here(&self, named: &str) -> Error {
        let message = format!("there is no sandbox `{named}` in this pool, which is `{}`", self.name());
        Error::new(ErrorKind::NotFound, message)
    }
}
