//! Sandboxes and snapshots of pools, by the names that commands take.

use eyot::{Error, ErrorKind, SandboxId, SandboxName};
use eyot_engine::{DEFAULT_SANDBOX, SandboxPool};

use crate::context::Context;
use crate::errors::Failure;
use crate::pools::Pool;

/// Returns the pool of what POOL/NAME, NAME or an id means, and the name or id there. Whether there is something of that
/// name is the pool's to say.
pub async fn in_pool(named: &str, context: &Context) -> Result<(SandboxPool, String), Failure> {
    context.refuse_if_it_ends_with_us("use of a sandbox of an earlier command")?;
    let (pool, name) = match (named.split_once('/'), SandboxId::parse(named)) {
        (Some((pool, name)), _) => (SandboxName::parse(pool)?, name),
        (None, Ok(id)) => (pool_of(&id, context).await?, named),
        (None, Err(_)) => (SandboxName::parse(DEFAULT_SANDBOX)?, named),
    };
    match Pool::existing(pool, context).await {
        Ok(Pool::Local(pool)) => Ok((pool, name.to_owned())),
        Ok(Pool::Remote { .. }) => Err(of_server()),
        Err(Failure::Error { error, .. }) if error.kind() == ErrorKind::NotFound && !named.contains('/') => {
            let error = Error::new(ErrorKind::NotFound, format!("there is no sandbox `{named}`"));
            Err(context.explained(error, named).into())
        }
        Err(failure) => Err(failure),
    }
}

/// Opens the pool of this name.
pub async fn pool(name: SandboxName, context: &Context) -> Result<SandboxPool, Failure> {
    match Pool::existing(name, context).await? {
        Pool::Local(pool) => Ok(pool),
        Pool::Remote { .. } => Err(of_server()),
    }
}

async fn pool_of(id: &SandboxId, context: &Context) -> Result<SandboxName, Failure> {
    if context.server()?.is_some() {
        return Err(of_server());
    }
    let pool = if context.has_no_state()? { None } else { context.engine().await?.pool_of(id).await? };
    Ok(pool.ok_or_else(|| {
        let message = format!("there is no sandbox `{id}` in a pool");
        Error::new(ErrorKind::NotFound, message).with_hint("only sandboxes with a name have snapshots")
    })?)
}

fn of_server() -> Failure {
    let error = Error::new(ErrorKind::Unsupported, "a server has no calls for snapshots yet");
    Failure::from(error).hint("run the command on the server's host, as its user and with its state folder")
}
