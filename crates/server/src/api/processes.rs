//! Started processes. They outlive the call, the connection and the server.

use std::collections::HashMap;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use eyot::wire::{LogPiece, ProcessList, SignalBody, StartBody, StdinBody};
use eyot::{
    Command, Error, LiveProcesses, LogChunk, LogQuery, LogRange, LogStream, ProcessId, ProcessInfo, Signal,
    StartOptions,
};
use futures_util::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::events_stream::events;
use super::extract::{Chosen, JsonBody, LastEventId, TheSandbox, Where, stdin_bytes};
use super::query::Params;
use super::stopping::Stopping;
use crate::problem::{Problems, Refusal};

/// The path parameter `{process}`.
#[derive(IntoParams)]
#[into_params(names("process"), parameter_in = Path)]
pub(super) struct TheProcess(
    /// The process's id, such as `p1`.
    #[param(example = "p1")]
    #[allow(dead_code, reason = "it is read by its name, and stands here for the document")]
    String,
);

fn process(path: &HashMap<String, String>) -> Result<ProcessId, Refusal> {
    let text = path.get("process").map(String::as_str).unwrap_or_default();
    Ok(text.parse::<ProcessId>()?)
}

/// Starts a process that outlives the call.
///
/// The latest part of its output is kept.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/processes", tag = "processes", params(TheSandbox, Where),
    request_body(content = StartBody, example = json!({ "command": "while read -r name; do echo hello $name; done", "stdin_follows": true })),
    responses((status = 201, body = ProcessInfo), Problems))]
pub(super) async fn start(
    Chosen(sandbox): Chosen,
    JsonBody(body): JsonBody<StartBody>,
) -> Result<Response, Refusal> {
    let command = match (body.command, body.argv) {
        (Some(line), None) => Command::Shell(line),
        (None, Some(argv)) => Command::Argv(argv),
        _ => return Err(Error::invalid("command", "or `argv` must be there, and not both").into()),
    };
    let options = StartOptions {
        cwd: body.cwd,
        env: body.env,
        user: body.user,
        stdin: stdin_bytes(body.stdin, body.stdin_base64)?.unwrap_or_default(),
        stdin_follows: body.stdin_follows,
        timeout_ms: body.timeout_ms,
        pty: body.pty,
    };
    let started = sandbox.start(command, options).await?;
    Ok((StatusCode::CREATED, Json(started)).into_response())
}

/// Writes to a started process whose input follows.
///
/// The answer does not wait until it is read. 409: it takes no more input, or has 256 KiB still to read.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/processes/{process}/stdin", tag = "processes",
    params(TheSandbox, TheProcess, Where),
    request_body(content = StdinBody, example = json!({ "stdin": "world\n" })),
    responses((status = 204), Problems))]
pub(super) async fn write_stdin(
    Chosen(sandbox): Chosen,
    Path(path): Path<HashMap<String, String>>,
    JsonBody(body): JsonBody<StdinBody>,
) -> Result<StatusCode, Refusal> {
    let data = stdin_bytes(body.stdin, body.stdin_base64)?.unwrap_or_default();
    sandbox.write_stdin(process(&path)?, data, body.end).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the started processes that are still known.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/processes", tag = "processes", params(TheSandbox, Where),
    responses((status = 200, body = ProcessList), Problems))]
pub(super) async fn list(Chosen(sandbox): Chosen) -> Result<Json<ProcessList>, Refusal> {
    Ok(Json(ProcessList { processes: sandbox.processes().await? }))
}

/// Lists every process that runs in the sandbox, including those that Eyot did not start.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/live", tag = "processes", params(TheSandbox, Where),
    responses((status = 200, body = LiveProcesses), Problems))]
pub(super) async fn live(Chosen(sandbox): Chosen) -> Result<Json<LiveProcesses>, Refusal> {
    Ok(Json(sandbox.live_processes().await?))
}

/// The query of a wait.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WaitQuery {
    /// Does not count as activity: the sandbox may fall asleep meanwhile.
    #[serde(default)]
    observe: bool,
}

/// Waits until a started process has ended.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/processes/{process}/wait", tag = "processes",
    params(TheSandbox, TheProcess, Where, WaitQuery),
    responses((status = 200, body = ProcessInfo), Problems))]
pub(super) async fn wait(
    Extension(stopping): Extension<Stopping>,
    Chosen(sandbox): Chosen,
    Path(path): Path<HashMap<String, String>>,
    Params(WaitQuery { observe }): Params<WaitQuery>,
) -> Result<Json<ProcessInfo>, Refusal> {
    let process = process(&path)?;
    // The process outlives the server: whoever waits can ask again.
    let ended =
        async { if observe { sandbox.observe_end(process).await } else { sandbox.wait(process).await } };
    Ok(Json(stopping.or(ended).await?))
}

/// The query of a log.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct LogsQuery {
    /// `stdout` or `stderr`; by default both.
    #[param(value_type = Option<String>)]
    stream: Option<LogStream>,
    /// First byte to return, counted from the start of the output; by default 0. A `Last-Event-ID`
    /// header has the same use.
    offset: Option<u64>,
    /// Begins this many bytes before the end instead.
    tail_bytes: Option<u64>,
    /// Begins this many lines before the end instead.
    tail_lines: Option<u64>,
    /// Number of bytes to return at most; by default 1 MiB, with `follow` no limit.
    limit_bytes: Option<u64>,
    /// Keeps the stream open until the process ends.
    #[serde(default)]
    follow: bool,
}

fn piece(chunk: LogChunk) -> LogPiece {
    let LogChunk { stream, offset, stream_offset, data } = chunk;
    LogPiece { stream, offset, stream_offset, data: BASE64_STANDARD.encode(&data) }
}

/// The content of an event about a log.
#[derive(Serialize)]
#[serde(untagged)]
enum LogContent {
    Range(LogRange),
    Piece(LogPiece),
}

/// Reads a process's log as server-sent events `log`.
///
/// The first event says which part of the log follows; the others have the output, each with the
/// offset behind it as its id.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/processes/{process}/logs", tag = "processes",
    params(TheSandbox, TheProcess, Where, LogsQuery),
    responses((status = 200, description = "The log", content_type = "text/event-stream"),
        Problems))]
pub(super) async fn logs(
    Extension(stopping): Extension<Stopping>,
    Chosen(sandbox): Chosen,
    Path(path): Path<HashMap<String, String>>,
    Params(asked): Params<LogsQuery>,
    LastEventId(last_seen): LastEventId,
) -> Result<impl IntoResponse, Refusal> {
    let query = LogQuery {
        stream: asked.stream,
        offset: last_seen.or(asked.offset).unwrap_or(0),
        tail_bytes: asked.tail_bytes.filter(|_| last_seen.is_none()),
        tail_lines: asked.tail_lines.filter(|_| last_seen.is_none()),
        limit_bytes: asked.limit_bytes,
        follow: asked.follow,
    };
    let log = sandbox.logs(process(&path)?, query).await?;
    let begins = futures_util::stream::iter([Ok((LogContent::Range(log.range), None))]);
    let pieces = log.chunks.map_ok(|chunk| {
        let behind = chunk.offset + chunk.data.len() as u64;
        (LogContent::Piece(piece(chunk)), Some(behind))
    });
    let told = begins.chain(pieces).map_ok(|(event, behind)| NumberedEvent { event, behind });
    Ok(events("log", told, |numbered| numbered.behind, asked.follow.then_some(stopping)))
}

#[derive(Serialize)]
struct NumberedEvent {
    #[serde(flatten)]
    event: LogContent,
    #[serde(skip)]
    behind: Option<u64>,
}

/// Sends a signal to a started process's group, or kills the process with all its descendants.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/processes/{process}/signal", tag = "processes",
    params(TheSandbox, TheProcess, Where), request_body(content = SignalBody, example = json!({ "signal": 15 })),
    responses((status = 204), Problems))]
pub(super) async fn signal(
    Chosen(sandbox): Chosen,
    Path(path): Path<HashMap<String, String>>,
    JsonBody(SignalBody { signal }): JsonBody<SignalBody>,
) -> Result<StatusCode, Refusal> {
    sandbox.kill(process(&path)?, signal.map(Signal)).await?;
    Ok(StatusCode::NO_CONTENT)
}
