//! Snapshots of a pool of this host or of a server, and sandboxes by the names that commands take.

use eyot::{
    ApplyOptions, ApplyReport, CompareOptions, Error, ErrorKind, FileChanges, SandboxId, SandboxName,
    SnapshotInfo,
};
use eyot_engine::{
    CommitOptions, ComparedPoint, DEFAULT_SANDBOX, ForkOptions, Forks, ImageCommitted, RollbackDone,
    RollbackOptions, SandboxPool, SnapshotOptions, SnapshotTaken,
};
use eyot_providers::remote::RemoteServer;

use crate::context::Context;
use crate::errors::Failure;
use crate::pools::Pool;

/// A pool whose sandboxes are kept, forked and compared.
pub enum BranchPool {
    /// A pool of the state folder.
    Local(SandboxPool),
    /// A pool of a server.
    Remote {
        /// The server.
        server: RemoteServer,
        /// The pool; `None`: the key's own.
        pool: Option<SandboxName>,
    },
}

impl BranchPool {
    /// Takes a snapshot of a sandbox.
    pub async fn snapshot(&self, sandbox: &str, options: SnapshotOptions) -> Result<SnapshotTaken, Error> {
        match self {
            Self::Local(pool) => pool.snapshot(sandbox, options).await,
            Self::Remote { server, pool } => server.snapshot(pool.as_ref(), sandbox, &options).await,
        }
    }

    /// Lists the snapshots, with their sizes.
    pub async fn snapshots(&self) -> Result<Vec<SnapshotInfo>, Error> {
        match self {
            Self::Local(pool) => pool.snapshots_with_sizes().await,
            Self::Remote { server, pool } => server.snapshots(pool.as_ref()).await,
        }
    }

    /// Removes a snapshot.
    pub async fn remove_snapshot(&self, snapshot: &str) -> Result<(), Error> {
        match self {
            Self::Local(pool) => pool.remove_snapshot(snapshot).await,
            Self::Remote { server, pool } => server.remove_snapshot(pool.as_ref(), snapshot).await,
        }
    }

    /// Gives a sandbox the files of a snapshot.
    pub async fn roll_back(&self, sandbox: &str, options: &RollbackOptions) -> Result<RollbackDone, Error> {
        match self {
            Self::Local(pool) => pool.roll_back(sandbox, options).await,
            Self::Remote { server, pool } => server.roll_back(pool.as_ref(), sandbox, options).await,
        }
    }

    /// Writes the changes of a sandbox's copy of a folder into the folder. A server's folders are not this host's.
    pub async fn apply(
        &self,
        sandbox: &str,
        options: &ApplyOptions,
        stop: bool,
    ) -> Result<ApplyReport, Error> {
        match self {
            Self::Local(pool) => pool.apply(sandbox, options, stop).await,
            Self::Remote { .. } => {
                let message = "apply: a client of a server names no folder of the server's host";
                Err(Error::new(ErrorKind::Unsupported, message).with_hint(
                    "run `eyot apply` on that host, or copy the files: `eyot cp SANDBOX:PATH DIR`",
                ))
            }
        }
    }

    /// Makes sandboxes of a snapshot or of another sandbox.
    pub async fn fork(&self, options: ForkOptions) -> Result<Forks, Error> {
        match self {
            Self::Local(pool) => {
                // As `create` does: only the pool `default` tells the provider below the names.
                let is_default = pool.name().as_str() == DEFAULT_SANDBOX;
                let provider = if is_default { pool.as_host_provider() } else { pool.as_provider() };
                provider.fork(pool.fork_source(&options.from).await?, options).await
            }
            Self::Remote { server, pool } => server.fork(pool.as_ref(), &options).await,
        }
    }

    /// Makes an image of a snapshot or of a sandbox.
    pub async fn commit(&self, options: CommitOptions) -> Result<ImageCommitted, Error> {
        match self {
            Self::Local(pool) => pool.commit(pool.commit_source(&options.from).await?, options, None).await,
            Self::Remote { server, pool } => server.commit(pool.as_ref(), &options).await,
        }
    }

    /// Compares two sides; without the second, what a sandbox has changed since its last snapshot.
    pub async fn compare(
        &self,
        from: &str,
        to: Option<&str>,
        options: &CompareOptions,
    ) -> Result<FileChanges, Error> {
        let (first, second) = (from.parse()?, to.map(str::parse).transpose()?);
        match (self, second) {
            (Self::Local(pool), Some(second)) => pool.compare(&first, &second, options).await,
            (Self::Local(pool), None) => {
                let base = ComparedPoint::BaseOf(from.to_owned());
                pool.compare(&base, &ComparedPoint::Sandbox(from.to_owned()), options).await
            }
            (Self::Remote { server, pool }, second) => {
                server.diff(pool.as_ref(), &first, second.as_ref(), options).await
            }
        }
    }

    /// Returns the name of what is in this pool, without the pool's own before it.
    pub fn name_inside<'a>(&self, named: &'a str) -> &'a str {
        let own = self.name().and_then(|own| named.strip_prefix(own.as_str())?.strip_prefix('/'));
        own.unwrap_or(named)
    }

    /// Returns the name of a sandbox as lists show it.
    pub fn shown_name(&self, name: &SandboxName) -> String {
        self.name().map_or_else(|| name.to_string(), |pool| eyot_engine::shown_name(pool, name))
    }

    fn name(&self) -> Option<&SandboxName> {
        match self {
            Self::Local(pool) => Some(pool.name()),
            Self::Remote { pool, .. } => pool.as_ref(),
        }
    }
}

/// Returns the pool of what POOL/NAME, NAME or an id means, and the name or id there. Whether there is something of that
/// name is the pool's to say.
pub async fn in_pool(named: &str, context: &Context) -> Result<(BranchPool, String), Failure> {
    context.refuse_if_it_ends_with_us("use of a sandbox of an earlier command")?;
    let (pool, name) = match named.split_once('/') {
        Some((pool, name)) => (Some(SandboxName::parse(pool)?), name),
        None => (None, named),
    };
    if let Some(server) = context.server()? {
        return Ok((BranchPool::Remote { server, pool }, name.to_owned()));
    }
    let pool = match (pool, SandboxId::parse(named)) {
        (Some(pool), _) => pool,
        (None, Ok(id)) => pool_of(&id, context).await?,
        (None, Err(_)) => SandboxName::parse(DEFAULT_SANDBOX)?,
    };
    match local(pool, context).await {
        Ok(pool) => Ok((pool, name.to_owned())),
        Err(Failure::Error { error, .. }) if error.kind() == ErrorKind::NotFound && !named.contains('/') => {
            let error = Error::new(ErrorKind::NotFound, format!("there is no sandbox `{named}`"));
            Err(context.explained(error, named).into())
        }
        Err(failure) => Err(failure),
    }
}

/// Opens the pool of this name; `None`: the pool `default`, or the key's own of a server.
pub async fn pool(name: Option<SandboxName>, context: &Context) -> Result<BranchPool, Failure> {
    if let Some(server) = context.server()? {
        return Ok(BranchPool::Remote { server, pool: name });
    }
    local(name.map_or_else(|| SandboxName::parse(DEFAULT_SANDBOX), Ok)?, context).await
}

async fn local(name: SandboxName, context: &Context) -> Result<BranchPool, Failure> {
    match Pool::existing(name, context).await? {
        Pool::Local(pool) => Ok(BranchPool::Local(pool)),
        Pool::Remote { server, name, .. } => Ok(BranchPool::Remote { server, pool: Some(name) }),
    }
}

async fn pool_of(id: &SandboxId, context: &Context) -> Result<SandboxName, Failure> {
    let pool = if context.has_no_state()? { None } else { context.engine().await?.pool_of(id).await? };
    Ok(pool.ok_or_else(|| {
        let message = format!("there is no sandbox `{id}` in a pool");
        Error::new(ErrorKind::NotFound, message).with_hint("only sandboxes with a name have snapshots")
    })?)
}
