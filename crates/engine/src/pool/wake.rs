//! Waking a sandbox with its services: of all callers that ask, in this process and others, one
//! does it.

use eyot::internal::{SandboxInternals, run_detached};
use eyot::{Command, Error, ErrorKind, Result, Sandbox, SandboxProvider, Service, StartOptions};
use tokio::time::Instant;

use super::{LOOK_AGAIN, PATIENCE, SandboxPool};
use crate::records::PoolRecords;
use crate::store::{SandboxRow, WakingTurn};

impl SandboxPool {
    /// Wakes the sandbox of a row, or waits for the process that does.
    pub(super) async fn wake(&self, row: &SandboxRow) -> Result<Sandbox> {
        let given_up = Instant::now() + PATIENCE;
        loop {
            let changed = self.inner.changed.notified();
            if let Some(sandbox) = self.wake_once(row).await? {
                return Ok(sandbox);
            }
            if Instant::now() > given_up {
                let message = format!("use sandbox `{}`: somebody has been waking it for too long", row.name);
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
            let recorded = self.next_event(row).await?;
            tokio::select! {
                () = changed => {}
                () = recorded => {}
                // A process that is killed, or fails, sends no notice.
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Wakes the sandbox of a row, or does nothing while another task does.
    async fn wake_once(&self, row: &SandboxRow) -> Result<Option<Sandbox>> {
        let (pool, row) = (self.clone(), row.clone());
        run_detached(async move {
            let reason = "it was used while it slept";
            let woken = wake_in_turn(&pool.inner.records, pool.provider().as_ref(), &row, reason).await;
            if !matches!(woken, Ok(None)) {
                pool.inner.changed.notify_waiters();
            }
            woken
        })
        .await
    }
}

/// Wakes the sandbox of a row; `None` while another task does. One that was woken meanwhile is
/// opened.
pub(crate) async fn wake_in_turn(
    records: &PoolRecords,
    provider: &dyn SandboxProvider,
    row: &SandboxRow,
    reason: &str,
) -> Result<Option<Sandbox>> {
    let id = row.id.clone();
    let (claim, is_half_awake) = match records.store.ask(move |store| store.begin_waking(&id)).await? {
        WakingTurn::Theirs => return Ok(None),
        WakingTurn::Ours(claim) => (claim, false),
        WakingTurn::TakenOver(claim) => (claim, true),
    };
    // The services that the previous waker started are ended, so that each is started once.
    let settled = if is_half_awake { provider.sleep(row.id.as_str()).await } else { Ok(()) };
    let woken = match settled {
        Ok(()) => wake_unless_awake(records, provider, row, reason).await,
        Err(error) => Err(error),
    };
    let id = row.id.clone();
    records.ask(move |store| store.finish_waking(&id)).await?;
    claim.finish();
    woken.map(Some)
}

pub(super) async fn wake_unless_awake(
    records: &PoolRecords,
    provider: &dyn SandboxProvider,
    row: &SandboxRow,
    reason: &str,
) -> Result<Sandbox> {
    let id = row.id.as_str();
    if let Ok(awake) = provider.open(id).await {
        return Ok(Sandbox::from_created(awake, records.recorder(row)));
    }
    let sandbox = Sandbox::from_created(provider.wake(id).await?, records.recorder(row));
    // One whose services can't be started sleeps on, and the next use tries again: nobody is handed half of it.
    if let Err(error) = start_services(&sandbox, &row.services).await {
        if let Err(error) = provider.sleep(id).await {
            tracing::warn!(%error, sandbox = id, "put a sandbox back to sleep whose services failed");
        }
        return Err(error.context(format!("start the services of sandbox `{}`", row.name)));
    }
    records.record_wake(row, reason).await?;
    Ok(sandbox)
}

/// Starts what is to run in a sandbox whenever it is awake.
pub(super) async fn start_services(sandbox: &Sandbox, services: &[Service]) -> Result<()> {
    for service in services {
        let (cwd, env) = (service.cwd.clone(), service.env.clone());
        let options = StartOptions { cwd, env, ..StartOptions::default() };
        sandbox.start(Command::shell(&service.command), options).await?;
    }
    Ok(())
}
