//! Names of a pool's sandboxes as callers write them: NAME, POOL/NAME or an id.

use eyot::{Error, ErrorKind, Result, SandboxId, SandboxName};

use super::SandboxPool;

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
        match named.split_once('/') {
            Some((pool, name)) if pool == self.name().as_str() => SandboxName::parse(name),
            Some((pool, name)) if SandboxName::parse(pool).is_ok() && SandboxName::parse(name).is_ok() => {
                Err(self.not_here(named))
            }
            _ => SandboxName::parse(named),
        }
    }

    /// The error of a sandbox that is not in this pool, whether it is in another or nowhere.
    fn not_here(&self, named: &str) -> Error {
        let message = format!("there is no sandbox `{named}` in this pool, which is `{}`", self.name());
        Error::new(ErrorKind::NotFound, message)
    }
}
