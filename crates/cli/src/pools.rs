//! Pools of this host's state folder, or of a server.

use std::sync::Arc;

use eyot::{Error, ErrorKind, PoolEntry, SandboxName, SandboxProvider};
use eyot_engine::{Engine, PoolCreate, PoolCreated, SandboxPool, Transfer, TransferObserver, Transferred};
use eyot_providers::remote::RemoteServer;

use crate::context::Context;
use crate::errors::Failure;

/// All pools.
pub enum Pools {
    /// The pools of the state folder.
    Local(Engine),
    /// The pools of a server that the key opens.
    Remote(RemoteServer),
}

/// One pool.
pub enum Pool {
    /// A pool of the state folder.
    Local(SandboxPool),
    /// A pool of a server, with its sandboxes.
    Remote {
        /// The server.
        server: RemoteServer,
        /// The pool's name.
        name: SandboxName,
        /// The pool's sandboxes.
        provider: Arc<dyn SandboxProvider>,
    },
}

impl Pools {
    /// Returns the pools that the command is about.
    pub async fn of(context: &Context) -> Result<Self, Failure> {
        match context.server()? {
            Some(server) => Ok(Self::Remote(server)),
            None => Ok(Self::Local(context.engine().await?)),
        }
    }

    /// Returns the names of the pools.
    pub async fn names(&self) -> Result<Vec<SandboxName>, Error> {
        match self {
            Self::Local(engine) => engine.pools().await,
            Self::Remote(server) => server.pools().await,
        }
    }

    /// Returns the pool of this name, whether or not it exists.
    pub async fn pool(&self, name: SandboxName, context: &Context) -> Result<Pool, Failure> {
        match self {
            Self::Local(engine) => Ok(Pool::Local(context.pool_of(engine, name)?)),
            Self::Remote(server) => {
                let provider = server.provider(Some(&name)).await?;
                Ok(Pool::Remote { server: server.clone(), name, provider })
            }
        }
    }
}

impl Pool {
    /// Returns the pool of this name that the command is about, whether or not it exists.
    pub async fn of(name: SandboxName, context: &Context) -> Result<Self, Failure> {
        Pools::of(context).await?.pool(name, context).await
    }

    /// Returns the pool of this name if it exists: a misspelt name is not an empty pool.
    pub async fn existing(name: SandboxName, context: &Context) -> Result<Self, Failure> {
        let pools = if context.has_no_state()? { None } else { Some(Pools::of(context).await?) };
        match pools {
            Some(pools) if pools.names().await?.contains(&name) => pools.pool(name, context).await,
            _ => {
                let error = Error::new(ErrorKind::NotFound, format!("there is no pool `{name}`"));
                Err(error.with_hint("`eyot pool ls` shows the pools there are").into())
            }
        }
    }

    /// Lists the pool's sandboxes, by name.
    pub async fn list(&self) -> Result<Vec<PoolEntry>, Error> {
        match self {
            Self::Local(pool) => pool.list().await,
            Self::Remote { server, name, .. } => server.members(name).await,
        }
    }

    /// Creates the pool's sandbox of this name, unless it exists.
    pub async fn create(&self, sandbox: &str, create: PoolCreate) -> Result<PoolCreated, Error> {
        match self {
            Self::Local(pool) => pool.create(sandbox, create).await,
            Self::Remote { server, name, .. } => server.make(name, sandbox, create).await,
        }
    }

    /// Puts the pool's sandbox of this name to sleep.
    pub async fn sleep(&self, sandbox: &str) -> Result<(), Error> {
        match self {
            Self::Local(pool) => pool.sleep(sandbox).await,
            Self::Remote { provider, .. } => provider.sleep(sandbox).await,
        }
    }

    /// Destroys the pool's sandbox of this name.
    pub async fn remove(&self, sandbox: &str) -> Result<(), Error> {
        match self {
            Self::Local(pool) => pool.remove(sandbox).await,
            Self::Remote { provider, .. } => provider.remove(sandbox).await,
        }
    }

    /// Copies between two of the pool's sandboxes. Of a server's copy an observer hears nothing.
    pub async fn transfer(
        &self,
        from: &str,
        to: &str,
        what: &Transfer,
        observer: TransferObserver,
    ) -> Result<Transferred, Error> {
        match self {
            Self::Local(pool) => pool.transfer_observed(from, to, what, observer).await,
            Self::Remote { server, name, .. } => server.transfer(name, from, to, what).await,
        }
    }

    /// Destroys every sandbox of the pool, and the pool itself.
    pub async fn close(&self) -> Result<(), Error> {
        match self {
            Self::Local(pool) => pool.close().await,
            Self::Remote { server, name, .. } => server.close(name).await,
        }
    }
}
