//! The service `process.Process` of envd.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use eyot::{Command, ExecOptions, PtySize, Sandbox};
use futures_util::{Stream, StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::E2bApi;
use super::connect::{self, Code, Envelopes, RpcError};
use super::gateway::GatewayEntry;
use super::input::ProcessStdin;
use super::process_table::Selector;
use super::started::{E2bProcess, OutputPiece, ProcessExit, ProcessParts, first_line};

/// The time between two signs of life in a stream without output, unless the client names another.
const KEEPALIVE: Duration = Duration::from_secs(90);
/// Tells the process's number, then becomes the command.
const WRAPPER: &str = "echo $$; exec \"$@\"";
/// The directory in which relative ones begin.
pub(super) const HOME: &str = "/home/user";

type Answer = Result<Response, RpcError>;

/// Returns the routes.
pub(super) fn routes() -> Router<E2bApi> {
    Router::new()
        .route("/process.Process/Start", post(start))
        .route("/process.Process/Connect", post(connect))
        .route("/process.Process/List", post(list))
        .route("/process.Process/Update", post(update))
        .route("/process.Process/SendInput", post(send_input))
        .route("/process.Process/StreamInput", post(stream_input))
        .route("/process.Process/CloseStdin", post(close_stdin))
        .route("/process.Process/SendSignal", post(send_signal))
}

#[derive(Deserialize)]
struct StartRequest {
    process: ProcessConfig,
    pty: Option<Pty>,
    tag: Option<String>,
    stdin: Option<bool>,
}

#[derive(Deserialize)]
struct ProcessConfig {
    #[serde(default)]
    cmd: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    envs: BTreeMap<String, String>,
    cwd: Option<String>,
}

#[derive(Deserialize)]
struct Pty {
    size: TerminalSize,
}

#[derive(Deserialize)]
struct TerminalSize {
    #[serde(default)]
    cols: u16,
    #[serde(default)]
    rows: u16,
}

impl From<Pty> for PtySize {
    fn from(pty: Pty) -> Self {
        Self { rows: pty.size.rows, cols: pty.size.cols }
    }
}

/// Returns an absolute path: a relative one begins at the user's home.
pub(super) fn absolute(path: &str) -> String {
    match path.strip_prefix('~') {
        Some(rest) => format!("{HOME}/{rest}"),
        None if path.starts_with('/') => path.to_owned(),
        None => format!("{HOME}/{path}"),
    }
}

async fn start(Extension(entered): Extension<GatewayEntry>, headers: HeaderMap, body: Bytes) -> Answer {
    let request: StartRequest = connect::read(&Envelopes::only(&body)?)?;
    let timeout_ms = connect::timeout_ms(&headers)?;
    let (process, output) = started(&entered, request).await?;
    entered.record.processes.add(&process);
    if let Some(timeout_ms) = timeout_ms {
        tokio::spawn(end_in_time(Arc::clone(&process), Duration::from_millis(timeout_ms)));
    }
    Ok(connect::stream(events(process, output, keepalive(&headers))))
}

async fn started(
    entered: &GatewayEntry,
    request: StartRequest,
) -> Result<(Arc<E2bProcess>, mpsc::Receiver<OutputPiece>), RpcError> {
    let StartRequest { process, pty, tag, stdin } = request;
    let config =
        json!({ "cmd": process.cmd, "args": process.args, "envs": process.envs, "cwd": process.cwd });
    let has_input = pty.is_some() || stdin.unwrap_or(true);
    let (input, stdin) = if has_input { ProcessStdin::open() } else { ProcessStdin::none() };
    let mut env = entered.record.variables.clone();
    env.extend(process.envs);
    let pty: Option<PtySize> = pty.map(Into::into);
    let options = ExecOptions {
        cwd: Some(absolute(&process.cwd.unwrap_or_default())),
        env,
        user: entered.user.clone(),
        stdin,
        pty,
        ..ExecOptions::default()
    };
    let wrapper = ["/bin/sh", "-c", WRAPPER, "sh"].map(str::to_owned);
    let argv = wrapper.into_iter().chain([process.cmd]).chain(process.args);
    let sandbox: Sandbox = entered.record.sandbox();
    let wrong = |error: eyot::Error| match error.kind() {
        eyot::ErrorKind::NotFound | eyot::ErrorKind::TooLarge => {
            RpcError::new(Code::InvalidArgument, error.to_string())
        }
        _ => RpcError::from(error),
    };
    let mut events = sandbox.exec_stream(Command::argv(argv), options).await.map_err(wrong)?;
    let (line, first) = match first_line(&mut events).await? {
        Ok(read) => read,
        Err(ended) => {
            let message = format!("error starting process: it ended with {:?}", ended.outcome);
            return Err(RpcError::new(Code::InvalidArgument, message));
        }
    };
    let no_number = |_| RpcError::new(Code::Internal, "the process told no number");
    let pid = line.parse().map_err(no_number)?;
    let is_pty = pty.is_some();
    let user = entered.user.clone();
    let new = ProcessParts { pid, tag, config, is_pty, input, user, sandbox };
    Ok(E2bProcess::take_over(new, events, first))
}

/// Kills a process that has not ended in time, as envd does, which goes by the deadline of the call.
async fn end_in_time(process: Arc<E2bProcess>, timeout: Duration) {
    if tokio::time::timeout(timeout, process.ended()).await.is_err()
        && let Err(error) = process.signal("KILL").await
    {
        tracing::debug!(%error, pid = process.pid, "a process could not be ended in time");
    }
}

fn keepalive(headers: &HeaderMap) -> Duration {
    let seconds = headers.get("keepalive-ping-interval").and_then(|value| value.to_str().ok());
    seconds.and_then(|text| text.parse().ok()).filter(|s| *s > 0).map_or(KEEPALIVE, Duration::from_secs)
}

/// Returns the events of a process: its number, its output, its end.
fn events(
    process: Arc<E2bProcess>,
    output: mpsc::Receiver<OutputPiece>,
    keepalive: Duration,
) -> impl Stream<Item = Result<Value, RpcError>> {
    let number = event(json!({ "start": { "pid": process.pid } }));
    let is_pty = process.is_pty;
    let pieces = stream::unfold(output, move |mut output| async move {
        let told = match tokio::time::timeout(keepalive, output.recv()).await {
            Ok(Some(piece)) => event(data(piece, is_pty)),
            Ok(None) => return None,
            Err(_) => event(json!({ "keepalive": {} })),
        };
        Some((Ok(told), output))
    });
    let end = stream::once(async move {
        // The output has ended: the end is there, or there is none.
        match process.end() {
            Some(end) => Ok(event(json!({ "end": told_end(&end) }))),
            None => Err(RpcError::new(Code::Unavailable, "the connection to the sandbox was lost")),
        }
    });
    stream::once(async { Ok(number) }).chain(pieces).chain(end)
}

fn event(event: Value) -> Value {
    json!({ "event": event })
}

fn data(piece: OutputPiece, is_pty: bool) -> Value {
    let (name, bytes) = match &piece {
        OutputPiece::Stdout(bytes) | OutputPiece::Stderr(bytes) if is_pty => ("pty", bytes),
        OutputPiece::Stdout(bytes) => ("stdout", bytes),
        OutputPiece::Stderr(bytes) => ("stderr", bytes),
    };
    json!({ "data": { name: STANDARD.encode(bytes) } })
}

fn told_end(end: &ProcessExit) -> Value {
    let mut told = json!({ "exitCode": end.exit_code, "exited": end.exited, "status": end.status });
    if end.exit_code != 0 {
        told["error"] = json!(end.status);
    }
    told
}

#[derive(Deserialize)]
struct OfProcess {
    process: Selector,
    pty: Option<Pty>,
    input: Option<InputBytes>,
    signal: Option<Value>,
}

#[derive(Deserialize)]
struct InputBytes {
    stdin: Option<String>,
    pty: Option<String>,
}

async fn connect(Extension(entered): Extension<GatewayEntry>, headers: HeaderMap, body: Bytes) -> Answer {
    let request: OfProcess = connect::read(&Envelopes::only(&body)?)?;
    let process = entered.record.processes.find(&request.process)?;
    let output = process.connect();
    Ok(connect::stream(events(process, output, keepalive(&headers))))
}

async fn list(Extension(entered): Extension<GatewayEntry>) -> Answer {
    let told = |process: Arc<E2bProcess>| {
        let mut told = json!({ "config": process.config, "pid": process.pid });
        if let Some(tag) = &process.tag {
            told["tag"] = json!(tag);
        }
        told
    };
    let processes: Vec<_> = entered.record.processes.running().into_iter().map(told).collect();
    Ok(connect::answer(json!({ "processes": processes })))
}

async fn update(Extension(entered): Extension<GatewayEntry>, body: Bytes) -> Answer {
    let request: OfProcess = connect::read(&body)?;
    let process = entered.record.processes.find_running(&request.process)?;
    if let Some(pty) = request.pty {
        if !process.is_pty {
            return Err(RpcError::new(Code::Internal, "tty not assigned to process"));
        }
        process.control.resize(pty.into()).await?;
    }
    Ok(connect::answer(json!({})))
}

async fn give(process: &E2bProcess, input: Option<InputBytes>) -> Result<(), RpcError> {
    let text = match input {
        Some(InputBytes { pty: Some(text), .. }) if process.is_pty => text,
        Some(InputBytes { stdin: Some(text), .. }) if !process.is_pty => text,
        Some(InputBytes { stdin: None, pty: None }) | None => {
            return Err(RpcError::new(Code::Unimplemented, "the request has no input"));
        }
        Some(_) => {
            let message = "the input of a terminal is `pty`, and that of another process `stdin`";
            return Err(RpcError::new(Code::Internal, message));
        }
    };
    let wrong = |error| RpcError::new(Code::InvalidArgument, format!("the input is no base64: {error}"));
    process.input.write(STANDARD.decode(text).map_err(wrong)?.into()).await
}

async fn send_input(Extension(entered): Extension<GatewayEntry>, body: Bytes) -> Answer {
    let request: OfProcess = connect::read(&body)?;
    let process = entered.record.processes.find_running(&request.process)?;
    give(&process, request.input).await?;
    Ok(connect::answer(json!({})))
}

#[derive(Deserialize)]
struct StreamedInput {
    start: Option<OfProcess>,
    data: Option<StreamedData>,
}

#[derive(Deserialize)]
struct StreamedData {
    input: Option<InputBytes>,
}

async fn stream_input(Extension(entered): Extension<GatewayEntry>, body: Body) -> Response {
    let ended = take_input(&entered, body).await.map(|()| json!({}));
    connect::stream(stream::iter([ended]))
}

async fn take_input(entered: &GatewayEntry, body: Body) -> Result<(), RpcError> {
    let mut bytes = body.into_data_stream();
    let (mut envelopes, mut process) = (Envelopes::default(), None);
    while let Some(piece) = bytes.next().await {
        let cut = |error| RpcError::new(Code::InvalidArgument, format!("the input was cut off: {error}"));
        envelopes.push(&piece.map_err(cut)?);
        while let Some(message) = envelopes.next()? {
            let message: StreamedInput = connect::read(&message)?;
            if let Some(start) = message.start {
                process = Some(entered.record.processes.find_running(&start.process)?);
            }
            let no_process = || RpcError::new(Code::InvalidArgument, "the input names no process first");
            if let Some(data) = message.data {
                give(process.as_ref().ok_or_else(no_process)?, data.input).await?;
            }
        }
    }
    Ok(())
}

async fn close_stdin(Extension(entered): Extension<GatewayEntry>, body: Bytes) -> Answer {
    let request: OfProcess = connect::read(&body)?;
    let process = entered.record.processes.find_running(&request.process)?;
    if process.is_pty {
        let message = "cannot close stdin for PTY process; send Ctrl+D (0x04) instead";
        return Err(RpcError::new(Code::Internal, message));
    }
    process.input.close().await;
    Ok(connect::answer(json!({})))
}

/// The longest wait for the end of a process that was killed.
const KILL_NOTED_WITHIN: Duration = Duration::from_secs(1);

async fn send_signal(Extension(entered): Extension<GatewayEntry>, body: Bytes) -> Answer {
    let request: OfProcess = connect::read(&body)?;
    let process = entered.record.processes.find_running(&request.process)?;
    let name = match request.signal {
        Some(Value::String(name)) if name == "SIGNAL_SIGKILL" => "KILL",
        Some(Value::String(name)) if name == "SIGNAL_SIGTERM" => "TERM",
        other => {
            let message = format!("invalid signal: {}", other.unwrap_or_default());
            return Err(RpcError::new(Code::Unimplemented, message));
        }
    };
    process.signal(name).await?;
    if name == "KILL" {
        // Whoever asks next finds it gone, as with envd. Its output may be held open for longer.
        drop(tokio::time::timeout(KILL_NOTED_WITHIN, process.ended()).await);
    }
    Ok(connect::answer(json!({})).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_begins_at_home() {
        assert_eq!(absolute("a/b"), "/home/user/a/b");
        assert_eq!(absolute("~/a"), "/home/user//a");
        assert_eq!(absolute("/srv"), "/srv");
    }
}
