//! Opening a running sandbox, and waking one that sleeps. A process that reaches a guest without a
//! configuration sends it: several processes may wake a sandbox at once, and all send the same.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result};

use super::accounts;
use super::condition::Condition;
use super::connect::Running;
use super::create::start;
use super::driver::Ready;
use super::engine::Engine;
use super::find::{Found, find, inspect};
use super::host::Host;

/// The number of tries while other processes put the sandbox to sleep and wake it.
const ATTEMPTS: usize = 8;

/// Opens a sandbox that runs.
pub(crate) async fn open(host: &Arc<Host>, id_or_name: &str) -> Result<Ready> {
    let found = find(host, id_or_name).await?;
    match found.condition.clone() {
        Condition::Running(_) => reach(host, id_or_name, found).await,
        other => Err(other.refusal(id_or_name)),
    }
}

/// Connects to a sandbox that was seen running. If it no longer runs, the error says why.
async fn reach(host: &Arc<Host>, id_or_name: &str, found: Found) -> Result<Ready> {
    let Condition::Running(life) = found.condition else {
        return Err(found.condition.refusal(id_or_name));
    };
    let running = Running { record: Arc::new(found.record), container: found.container, life };
    match connect(host, &running).await {
        Ok(ready) => Ok(ready),
        Err(error) => match inspect(host, &running.container).await? {
            Some(now) if now.condition == Condition::Running(running.life.clone()) => Err(error),
            Some(now) => Err(now.condition.refusal(id_or_name)),
            None => Err(Error::destroyed(id_or_name)),
        },
    }
}

async fn connect(host: &Arc<Host>, running: &Running) -> Result<Ready> {
    let connection = running.connect(host, false).await?;
    Ready::new(host, running.clone(), connection).await
}

/// Starts a container that has run before.
async fn start_again(engine: &Engine, found: &Found) -> Result<()> {
    if !found.record.spec.security.readonly_rootfs {
        accounts::make_harmless(engine, &found.container).await?;
    }
    start(engine, &found.container).await
}

/// Wakes a sandbox. A sandbox that runs is opened.
pub(crate) async fn wake(host: &Arc<Host>, id_or_name: &str) -> Result<Ready> {
    let _turn = host.turns.acquire().await;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let found = match find(host, id_or_name).await {
            // It was there a moment ago.
            Err(error) if error.kind() == ErrorKind::NotFound && last.is_some() => {
                return Err(Error::destroyed(id_or_name));
            }
            found => found?,
        };
        let started = match &found.condition {
            Condition::Running(_) => Ok(()),
            Condition::Sleeping | Condition::Dead => start_again(&host.engine, &found).await,
            other => return Err(other.refusal(id_or_name)),
        };
        let now = inspect(host, &found.container).await?;
        let Some(now) = now.filter(|now| now.condition != Condition::Going) else {
            // Destroyed, or replaced: then another container has its place.
            last = Some(Error::destroyed(id_or_name));
            continue;
        };
        started.map_err(|error| error.context(format!("wake sandbox `{id_or_name}`")))?;
        match reach(host, id_or_name, now).await {
            Ok(ready) => return Ok(ready),
            // Put to sleep again since, or somebody else was the one to tell the guest.
            Err(error) if error.kind() == ErrorKind::Unavailable => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| Error::sleeping(id_or_name)))
}
