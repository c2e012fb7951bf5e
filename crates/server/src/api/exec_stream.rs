//! Commands whose output comes as server-sent events. A connection that breaks need not end the command, nor the end of this
//! server: the sandbox keeps it, and its stream can be taken up again behind the last event that came.

use std::collections::HashMap;
use std::convert::Infallible;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use eyot::wire::{ExecBody, ExecPiece, ExecStarted};
use eyot::{
    Error, ErrorKind, ExecOptions, KeepOptions, KeptAttachment, KeptControl, KeptEvent, KeptInfo, KeptPiece,
    LogStream, Sandbox, Stdin,
};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde::Deserialize;
use utoipa::IntoParams;

use super::events_stream::{event, keep_alive};
use super::exec::{answer, checked, refuse_what_needs_a_socket};
use super::extract::{Chosen, InPool, JsonBody, LastEventId, Named, TheSandbox, Where};
use super::query::Params;
use super::state::Api;
use crate::problem::{Problems, Refusal};

/// The time that a command goes on when nobody reads it, unless the request says.
const LINGER_MS: u64 = 30_000;
/// The longest that it may be.
const MAX_LINGER_MS: u64 = 600_000;

/// The time that a command outlives its connection.
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
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/exec/stream", tag = "exec", request_body(content = ExecBody, example = json!({ "command": "echo hello" })),
    params(TheSandbox, Where, Linger),
    responses((status = 200, description = "What the command writes", content_type = "text/event-stream"),
        Problems))]
pub(super) async fn exec_stream(
    State(api): State<Api>,
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
    let (command, options) = checked(&api, &sandbox, body)?;
    let kept = sandbox.keep(command, keep_options(options, linger_ms)).await?;
    count_end(&api, &sandbox, &kept.info);
    let started = event("started", &ExecStarted { exec: kept.info.id.clone() }, None);
    let all = futures_util::stream::iter([started]).chain(events(kept, 1));
    Ok(Sse::new(all.map(Ok::<_, Infallible>)).keep_alive(keep_alive()))
}

fn keep_options(options: ExecOptions, linger_ms: u64) -> KeepOptions {
    let ExecOptions { cwd, env, user, stdin, timeout_ms, .. } = options;
    let stdin = match stdin {
        Stdin::Bytes(bytes) => bytes,
        Stdin::Closed | Stdin::Stream(_) => Bytes::new(),
    };
    KeepOptions { cwd, env, user, stdin, timeout_ms, pty: None, linger_ms }
}

/// Counts a kept command among those that ended, once it has.
pub(super) fn count_end(api: &Api, sandbox: &Sandbox, kept: &KeptInfo) {
    let (api, sandbox, id) = (api.clone(), sandbox.clone(), kept.id.clone());
    tokio::spawn(async move {
        match sandbox.kept_end(&id).await {
            Ok(kept) => kept.result.iter().for_each(|result| api.metrics().exec_ended(result)),
            Err(error) => tracing::debug!(%error, id, "the end of a kept command is not counted"),
        }
    });
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
    let (sandbox, id) = found(&api, &named, &path).await?;
    let from = last_seen.unwrap_or(0).saturating_add(1);
    let kept = sandbox.attach(&id, Some(from)).await.map_err(|error| match error.kind() {
        ErrorKind::Invalid => Error::invalid("Last-Event-ID", "is a number that no event has had"),
        _ => no_such(error, &id),
    })?;
    Ok(Sse::new(events(kept, from).map(Ok::<_, Infallible>)).keep_alive(keep_alive()))
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
    let (sandbox, id) = found(&api, &named, &path).await?;
    sandbox.control_kept(&id, KeptControl::Kill).await.map_err(|error| no_such(error, &id))?;
    Ok(StatusCode::NO_CONTENT)
}

/// The sandbox of a command that a path names, and the command's id. The sandbox is not woken.
async fn found(
    api: &Api,
    named: &Named,
    path: &HashMap<String, String>,
) -> Result<(Sandbox, String), Refusal> {
    let id = path.get("exec").cloned().unwrap_or_default();
    let sandbox = named.as_it_is(api).await?.filter(|_| id.starts_with("ex_"));
    Ok((sandbox.ok_or_else(|| none(&id))?, id))
}

fn none(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no streamed command `{id}`"))
}

/// The same error, in the words of this part of the API.
fn no_such(error: Error, id: &str) -> Error {
    if error.kind() == ErrorKind::NotFound { none(id) } else { error }
}

/// Events under their numbers.
struct Numbered {
    events: BoxStream<'static, eyot::Result<KeptEvent>>,
    next: u64,
}

/// The events of a command from a number on. Nothing comes where its end has that was told already.
fn events(kept: KeptAttachment, from: u64) -> BoxStream<'static, Event> {
    if from > kept.info.next {
        return futures_util::stream::empty().boxed();
    }
    let numbered = Numbered { events: kept.events, next: from };
    futures_util::stream::unfold(numbered, async |mut numbered| {
        let event = numbered.events.next().await?;
        Some((numbered.told(event), numbered))
    })
    .boxed()
}

impl Numbered {
    fn told(&mut self, told: eyot::Result<KeptEvent>) -> Event {
        match told {
            Ok(KeptEvent::Output(KeptPiece { stream, start, end, data })) => {
                self.next = end;
                let name = match stream {
                    LogStream::Stdout => "stdout",
                    LogStream::Stderr => "stderr",
                };
                event(name, &ExecPiece { data: BASE64_STANDARD.encode(&data) }, Some(start))
            }
            Ok(KeptEvent::End(result)) => event("end", &answer(*result).without_output(), Some(self.next)),
            Err(error) => event("problem", &Refusal::from(error).problem(), Some(self.next)),
        }
    }
}
