//! Commands whose output comes as server-sent events. A connection that breaks need not end the command: its stream can be taken
//! up again behind the last event that came.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use eyot::wire::{ExecBody, ExecPiece, ExecStarted};
use eyot::{CancellationToken, Error};
use futures_util::{Stream, StreamExt};
use serde::Deserialize;
use utoipa::IntoParams;

use super::events_stream::{event, keep_alive};
use super::exec::{checked, refuse_what_needs_a_socket};
use super::extract::{Chosen, InPool, JsonBody, LastEventId, Named, Params, TheSandbox, Where};
use super::state::Api;
use super::streamed::{Run, Told};
use crate::problem::{Problems, Refusal};

/// How long a command goes on without anybody who reads, unless the request says.
const LINGER_MS: u64 = 30_000;
/// How long it may.
const MAX_LINGER_MS: u64 = 600_000;

/// How long a command outlives its connection.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Linger {
    /// How long the command goes on when nobody reads its stream, and how long its end is kept, in milliseconds: 0 to 600,000;
    /// by default 30,000.
    linger_ms: Option<u64>,
}

/// A command that is streamed.
#[derive(IntoParams)]
#[into_params(names("exec"), parameter_in = Path)]
pub(super) struct TheExec(
    /// What its event `started` says.
    #[allow(dead_code, reason = "it is read by its name, and stands here for the document")]
    String,
);

/// Runs a command and streams what it writes: the event `started`, then `stdout` and `stderr` with pieces in base64, each with
/// its number as its id, and last `end` (without the output) or `problem`. When the connection breaks, the stream can be taken
/// up again; a command that nobody reads for `linger_ms` is killed, and one that is 1 MiB ahead of its reader waits.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/exec/stream", tag = "exec", request_body = ExecBody,
    params(TheSandbox, Where, Linger),
    responses((status = 200, description = "What the command writes", content_type = "text/event-stream"),
        Problems))]
pub(super) async fn exec_stream(
    State(api): State<Api>,
    named: Named,
    Chosen(sandbox): Chosen,
    Params(Linger { linger_ms }): Params<Linger>,
    JsonBody(body): JsonBody<ExecBody>,
) -> Result<impl IntoResponse, Refusal> {
    refuse_what_needs_a_socket(&body)?;
    let linger_ms = linger_ms.unwrap_or(LINGER_MS);
    if linger_ms > MAX_LINGER_MS {
        return Err(
            Error::invalid("linger_ms", format!("must be at most {MAX_LINGER_MS}, not {linger_ms}")).into()
        );
    }
    let (command, mut options) = checked(&api, &sandbox, body)?;
    let cancel = CancellationToken::new();
    options.cancel = Some(cancel.clone());
    // Nobody is told what was kept.
    options.max_output_bytes = Some(0);
    let pool = named.pool(&api).await?;
    api.streamed().check_room(&pool)?;
    let events = sandbox.exec_stream(command, options).await?;
    let (figures, linger) = (api.clone(), Duration::from_millis(linger_ms));
    let ended = move |result: &_| figures.metrics().exec_ended(result);
    let run = api.streamed().take_up(pool, &sandbox, events, cancel, linger, ended)?;
    let started = event("started", &ExecStarted { exec: run.id().to_owned() }, None);
    let rest = run.read(0)?.map(told);
    let all = futures_util::stream::iter([started]).chain(rest);
    Ok(Sse::new(all.map(Ok::<_, Infallible>)).keep_alive(keep_alive()))
}

/// Takes up the stream of a command again: what comes behind the event whose id the header `Last-Event-ID` says; all of it
/// without that header. A reader that is still there reads no more. `409`: some of it is not kept any more (1 MiB of what was
/// read is).
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/exec/stream/{exec}", tag = "exec",
    params(TheSandbox, TheExec, InPool, ("last-event-id" = Option<u64>, Header, description = "The id of the last event that came")),
    responses((status = 200, description = "What the command writes", content_type = "text/event-stream"),
        Problems))]
pub(super) async fn exec_again(
    State(api): State<Api>,
    named: Named,
    Path(path): Path<HashMap<String, String>>,
    LastEventId(last_seen): LastEventId,
) -> Result<impl IntoResponse, Refusal> {
    let run = run(&api, &named, &path).await?;
    let rest: std::pin::Pin<Box<dyn Stream<Item = Event> + Send>> =
        Box::pin(run.read(last_seen.unwrap_or(0))?.map(told));
    Ok(Sse::new(rest.map(Ok::<_, Infallible>)).keep_alive(keep_alive()))
}

/// Ends a streamed command with its whole process tree; its stream tells its end. One that has ended is fine.
#[utoipa::path(delete, path = "/v1/sandboxes/{sandbox}/exec/stream/{exec}", tag = "exec",
    params(TheSandbox, TheExec, InPool),
    responses((status = 204), Problems))]
pub(super) async fn exec_end(
    State(api): State<Api>,
    named: Named,
    Path(path): Path<HashMap<String, String>>,
) -> Result<StatusCode, Refusal> {
    run(&api, &named, &path).await?.cancel.cancel();
    Ok(StatusCode::NO_CONTENT)
}

/// The command that a path names. Its sandbox is not woken.
async fn run(api: &Api, named: &Named, path: &HashMap<String, String>) -> Result<Arc<Run>, Refusal> {
    let exec = path.get("exec").map(String::as_str).unwrap_or_default();
    Ok(api.streamed().find(&named.pool(api).await?, &named.sandbox, exec)?)
}

fn told((number, told): (u64, Told)) -> Event {
    let number = Some(number);
    let piece = |bytes: &[u8]| ExecPiece { data: BASE64_STANDARD.encode(bytes) };
    match told {
        Told::Stdout(bytes) => event("stdout", &piece(&bytes), number),
        Told::Stderr(bytes) => event("stderr", &piece(&bytes), number),
        Told::End(answer) => event("end", &answer, number),
        Told::Failed(problem) => event("problem", &problem, number),
    }
}
