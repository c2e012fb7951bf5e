//! The pools of a server.

use eyot::wire::{MemberBody, PoolAnswer, PoolList, TransferBody};
use eyot::{Error, PoolEntry, Result, SandboxName};
use eyot_engine::{PoolCreate, PoolCreated, Transfer, Transferred};
use reqwest::Method;

use super::{RemoteServer, with_json};

impl RemoteServer {
    /// Lists the pools that the key opens.
    pub async fn pools(&self) -> Result<Vec<SandboxName>> {
        let list: PoolList = self.answer(self.request(Method::GET, &["v1", "pools"], &[])?).await?;
        Ok(list.pools)
    }

    /// Lists the sandboxes of a pool, by name. Wakes none. A pool that does not exist has none.
    pub async fn members(&self, pool: &SandboxName) -> Result<Vec<PoolEntry>> {
        let request = self.request(Method::GET, &["v1", "pools", pool.as_str()], &[])?;
        Ok(self.answer::<PoolAnswer>(request).await?.sandboxes)
    }

    /// Makes a pool's sandbox of this name unless it exists. An existing sandbox is woken and
    /// otherwise left as it is, and the answer lists the differences. `invalid` with a spec: the
    /// server decides a pool's template.
    pub async fn make(&self, pool: &SandboxName, name: &str, create: PoolCreate) -> Result<PoolCreated> {
        let PoolCreate { image, sleep_after_ms, spec, services } = create;
        if spec.is_some() {
            return Err(Error::invalid("spec", "is the server's for a pool's sandbox"));
        }
        let path = ["v1", "pools", pool.as_str(), "sandboxes", name];
        let body = MemberBody { image, sleep_after_ms, services };
        self.answer(with_json(self.request(Method::PUT, &path, &[])?, &body)?).await
    }

    /// Copies a file or a tree from one sandbox of a pool to another, which is made if need be.
    pub async fn transfer(
        &self,
        pool: &SandboxName,
        from: &str,
        to: &str,
        what: &Transfer,
    ) -> Result<Transferred> {
        let Transfer { from_path, to_path, recursive } = what.clone();
        let body = TransferBody { from: from.to_owned(), to: to.to_owned(), from_path, to_path, recursive };
        let path = ["v1", "pools", pool.as_str(), "transfer"];
        self.answer(with_json(self.request(Method::POST, &path, &[])?, &body)?).await
    }

    /// Destroys every sandbox of a pool and forgets the pool.
    pub async fn close(&self, pool: &SandboxName) -> Result<()> {
        let request = self.request(Method::DELETE, &["v1", "pools", pool.as_str()], &[])?;
        self.server().ask(request).await.map(drop)
    }
}
