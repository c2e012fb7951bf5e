//! Transitions of sandboxes: pause, wake, kill, and the end of their time. Of those of one sandbox one is carried out at a
//! time, and to its end, though the client that asked for it has gone.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use eyot::Sandbox;

use super::E2bApi;
use super::records::SandboxRecord;
use super::refusal::E2bRefusal;

type Answer<T> = Result<T, E2bRefusal>;

/// The wait before a sandbox that could not be ended in time is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Finds a sandbox.
pub(super) fn find(api: &E2bApi, id: &str) -> Answer<Arc<SandboxRecord>> {
    api.records.get(id).ok_or_else(|| E2bRefusal::no_sandbox(id))
}

/// Pauses a sandbox.
pub(super) async fn pause(api: &E2bApi, id: &str) -> Answer<()> {
    in_turn(api, id, |api, record| async move {
        if record.is_paused() {
            let message = format!("sandbox \"{}\" is already paused", record.id);
            return Err(E2bRefusal::new(StatusCode::CONFLICT, message));
        }
        sleep(&api, &record).await
    })
    .await
}

/// Gives a sandbox more time, and wakes it if it is paused. Returns whether it was.
pub(super) async fn connect(api: &E2bApi, id: &str, timeout_s: u64) -> Answer<(Arc<SandboxRecord>, bool)> {
    in_turn(api, id, move |api, record| async move {
        if !record.is_paused() {
            record.set_timeout(timeout_s, true);
            return Ok((record, false));
        }
        let sandbox = Sandbox::wake(&*api.provider, record.sandbox().id().as_str()).await?;
        record.set_timeout(timeout_s, false);
        record.set_woken(sandbox);
        Ok((record, true))
    })
    .await
}

/// Kills a sandbox.
pub(super) async fn kill(api: &E2bApi, id: &str) -> Answer<()> {
    in_turn(api, id, |api, record| async move { destroy(&api, &record).await }).await
}

/// Pauses or kills a sandbox when its time is over. Returns once it is gone.
pub(super) async fn end_in_time(api: E2bApi, record: Arc<SandboxRecord>) {
    let ending = async {
        loop {
            record.wait_for_end().await;
            if let Err(refusal) = in_turn(&api, &record.id, end_if_over).await {
                tracing::warn!(
                    id = record.id,
                    message = refusal.message,
                    "a sandbox could not be ended in time"
                );
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    };
    record.gone.run_until_cancelled(ending).await;
}

async fn end_if_over(api: E2bApi, record: Arc<SandboxRecord>) -> Answer<()> {
    if !record.is_over() {
        // It got more time, or was paused, while the turn was awaited.
        return Ok(());
    }
    if record.auto_pause { sleep(&api, &record).await } else { destroy(&api, &record).await }
}

async fn sleep(api: &E2bApi, record: &SandboxRecord) -> Answer<()> {
    record.set_paused(true);
    let slept = api.provider.sleep(record.sandbox().id().as_str()).await;
    if slept.is_err() {
        record.set_paused(false);
    }
    Ok(slept?)
}

async fn destroy(api: &E2bApi, record: &SandboxRecord) -> Answer<()> {
    record.set_ending(true);
    if let Err(error) = record.sandbox().destroy().await {
        record.set_ending(false);
        return Err(error.into());
    }
    api.records.remove(&record.id);
    Ok(())
}

/// Carries a transition out once it is its turn.
async fn in_turn<T, W>(
    api: &E2bApi,
    id: &str,
    transition: impl FnOnce(E2bApi, Arc<SandboxRecord>) -> W + Send + 'static,
) -> Answer<T>
where
    T: Send + 'static,
    W: Future<Output = Answer<T>> + Send,
{
    let (api, record) = (api.clone(), find(api, id)?);
    let carried = tokio::spawn(async move {
        let turn = Arc::clone(&record);
        let _turn = turn.turn.lock().await;
        // It may have been killed meanwhile.
        let record = find(&api, &record.id)?;
        transition(api, record).await
    });
    let ended_early = |error| {
        tracing::error!(%error, "a transition ended early");
        Err(E2bRefusal::new(StatusCode::INTERNAL_SERVER_ERROR, "a transition ended early"))
    };
    carried.await.unwrap_or_else(ended_early)
}
