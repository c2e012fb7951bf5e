//! Terminals that outlive a connection and this server: a page that is loaded again finds its shells as they were. The sandbox
//! keeps them.
//!
//! Whoever connects hears what was written last (up to 256 KiB), then the event `started`, then what comes. The
//! client's binary messages are what is typed, its text messages [`SocketControl`]s; the server's binary messages are output,
//! its text messages [`SocketEvent`]s, the last of which is `end` or `problem`. Who connects takes the place of who was there.

use std::collections::HashMap;

use axum::extract::ws::Message;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use eyot::wire::{SocketControl, SocketEvent, TerminalAnswer, TerminalBody, TerminalList};
use eyot::{
    Error, ErrorKind, ExecutionInput, KeepOptions, KeptAttachment, KeptControl, KeptEvent, KeptInfo,
    KeptPiece, Sandbox, Signal,
};
use futures_util::stream::BoxStream;
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use utoipa::IntoParams;

use super::exec::answer;
use super::exec_stream::count_end;
use super::extract::{Chosen, InPool, JsonBody, Named, TheSandbox, Where};
use super::sockets::{Closing, Sink, Source, Upgrade, closing};
use super::state::Api;
use super::stopping::Stopping;
use super::turns::Turn;
use crate::http::own_page::PROTOCOL;
use crate::problem::{Problems, Refusal};

/// Bash, or sh where there is none.
const SHELL: &str = "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi";
/// The largest message from a client, in bytes.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// The time that one goes on to which nobody is connected.
const LINGER_MS: u64 = 600_000;

/// A terminal.
#[derive(IntoParams)]
#[into_params(names("terminal"), parameter_in = Path)]
pub(super) struct TheTerminal(
    /// Its id.
    #[allow(dead_code, reason = "it is read by its name, and stands here for the document")]
    String,
);

/// Opens a terminal. It is connected to by a WebSocket, `/terminals/{terminal}/socket`, as often as one likes; one to which
/// nobody was connected for 10 minutes ends with all that runs in it.
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/terminals", tag = "terminals", params(TheSandbox, Where),
    request_body(content = TerminalBody, example = json!({ "size": { "rows": 24, "cols": 80 } })),
    responses((status = 201, body = TerminalAnswer), Problems))]
pub(super) async fn open(
    State(api): State<Api>,
    Chosen(sandbox): Chosen,
    JsonBody(TerminalBody { command, cwd, size }): JsonBody<TerminalBody>,
) -> Result<Response, Refusal> {
    let line = command.unwrap_or_else(|| SHELL.to_owned());
    let options = KeepOptions { cwd, pty: Some(size), linger_ms: LINGER_MS, ..KeepOptions::default() };
    // Nobody is connected yet.
    let KeptAttachment { info, .. } = sandbox.keep(line, options).await?;
    count_end(&api, &sandbox, &info);
    Ok((StatusCode::CREATED, Json(TerminalAnswer { attached: false, ..told(info) })).into_response())
}

fn told(info: KeptInfo) -> TerminalAnswer {
    let KeptInfo { id, command, started_ms, is_attached: attached, .. } = info;
    TerminalAnswer { id, command: Some(command).filter(|command| command != SHELL), started_ms, attached }
}

/// Lists the terminals of a sandbox. It is not woken.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/terminals", tag = "terminals", params(TheSandbox, InPool),
    responses((status = 200, body = TerminalList), Problems))]
pub(super) async fn list(State(api): State<Api>, named: Named) -> Result<Json<TerminalList>, Refusal> {
    let kept = match named.as_it_is(&api).await? {
        Some(sandbox) => sandbox.kept_commands().await?,
        None => Vec::new(),
    };
    let terminals = kept.into_iter().filter(|kept| kept.is_terminal).map(told).collect();
    Ok(Json(TerminalList { terminals }))
}

/// Ends a terminal with all that runs in it.
#[utoipa::path(delete, path = "/v1/sandboxes/{sandbox}/terminals/{terminal}", tag = "terminals",
    params(TheSandbox, TheTerminal, InPool),
    responses((status = 204), Problems))]
pub(super) async fn end(
    State(api): State<Api>,
    named: Named,
    Path(path): Path<HashMap<String, String>>,
) -> Result<StatusCode, Refusal> {
    let (sandbox, id) = found(&api, &named, &path).await?;
    sandbox.control_kept(&id, KeptControl::Forget).await.map_err(|error| no_such(error, &id))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Connects to a terminal by a WebSocket.
///
/// The server sends what was written last (up to 256 KiB), the event `started`, then what comes.
/// The client's binary messages are what is typed, its text messages are `SocketControl`s. The
/// server's binary messages are output, its text messages are `SocketEvent`s, the last of which is
/// `end` or `problem`. A terminal has one viewer: a new connection closes the one before.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/terminals/{terminal}/socket", tag = "terminals",
    params(TheSandbox, TheTerminal, InPool),
    extensions(("x-websocket" = json!({
        "client": [{ "$ref": "#/components/schemas/SocketControl" }],
        "server": [{ "$ref": "#/components/schemas/SocketEvent" }],
    }))),
    responses((status = 101, description = "A WebSocket"), Problems))]
pub(super) async fn attach(
    State(api): State<Api>,
    Extension(turn): Extension<Turn>,
    Extension(Stopping { stop, .. }): Extension<Stopping>,
    upgrade: Upgrade,
    named: Named,
    Path(path): Path<HashMap<String, String>>,
) -> Result<Response, Refusal> {
    let (sandbox, id) = found(&api, &named, &path).await?;
    let kept = sandbox.attach(&id, None).await.map_err(|error| no_such(error, &id))?;
    let upgrade = upgrade.of_messages(MAX_MESSAGE_BYTES).protocols([PROTOCOL]);
    Ok(upgrade.on_upgrade(async move |socket| {
        let (mut sink, mut source) = socket.split();
        let closing =
            closing(&turn, (&stop, Closing::RESTARTS), carry(&sandbox, kept, &mut sink, &mut source)).await;
        closing.close(&mut sink, &mut source).await;
    }))
}

/// The sandbox of a terminal that a path names, and the terminal's id. The sandbox is not woken.
async fn found(
    api: &Api,
    named: &Named,
    path: &HashMap<String, String>,
) -> Result<(Sandbox, String), Refusal> {
    let id = path.get("terminal").cloned().unwrap_or_default();
    let sandbox = named.as_it_is(api).await?.filter(|_| id.starts_with("tm_"));
    Ok((sandbox.ok_or_else(|| none(&id))?, id))
}

fn none(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no terminal `{id}`"))
}

/// The same error, in the words of this part of the API.
fn no_such(error: Error, id: &str) -> Error {
    if error.kind() == ErrorKind::NotFound { none(id) } else { error }
}

async fn carry(sandbox: &Sandbox, kept: KeptAttachment, sink: &mut Sink, source: &mut Source) -> Closing {
    let KeptAttachment { info, events, input } = kept;
    let (refused, refusals) = mpsc::channel(8);
    let (typed, keys) = mpsc::channel(1);
    let client = TerminalClient { sandbox, id: &info.id, typed, refused };
    let screen = TerminalScreen { sandbox, started_at: Some(info.next), info: &info, events };
    // Apart: who does not read is still heard.
    tokio::select! {
        () = client.hear(source) => Closing::DONE,
        closing = screen.show(sink, refusals) => closing,
        () = type_all(input, keys) => Closing::DONE,
    }
}

/// Types what comes, and never returns. What the program does not read any more, since it has ended, is dropped: whoever types
/// after the end is told the end.
async fn type_all(mut input: Option<Box<dyn ExecutionInput>>, mut keys: mpsc::Receiver<Bytes>) {
    while let Some(bytes) = keys.recv().await {
        if let Some(keyboard) = &mut input
            && let Err(error) = keyboard.write(bytes).await
        {
            tracing::debug!(%error, "a terminal does not read what is typed");
            input = None;
        }
    }
    std::future::pending().await
}

/// A client that is connected, as it is heard.
struct TerminalClient<'a> {
    sandbox: &'a Sandbox,
    id: &'a str,
    typed: mpsc::Sender<Bytes>,
    refused: mpsc::Sender<SocketEvent>,
}

impl TerminalClient<'_> {
    /// Passes on what is typed until the client has gone. While one message waits for a program that does not read, control
    /// is heard; a second one is not taken.
    async fn hear(self, source: &mut Source) {
        let (mut ahead, mut next) = (Bytes::new(), Bytes::new());
        loop {
            if ahead.is_empty() {
                ahead = std::mem::take(&mut next);
            }
            let message = tokio::select! {
                room = self.typed.reserve(), if !ahead.is_empty() => {
                    let Ok(room) = room else { return };
                    room.send(std::mem::take(&mut ahead));
                    continue;
                }
                message = source.next(), if next.is_empty() => message,
            };
            match message {
                Some(Ok(Message::Binary(bytes))) => next = bytes,
                Some(Ok(Message::Text(text))) => {
                    if let Err(error) = self.act(&text).await {
                        drop(self.refused.try_send(SocketEvent::Refused(Refusal::from(error).problem())));
                    }
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            }
        }
    }

    async fn act(&self, text: &str) -> eyot::Result<()> {
        let control = match serde_json::from_str(text).map_err(|error| Error::invalid("control", error))? {
            SocketControl::Kill | SocketControl::Expire => KeptControl::Kill,
            SocketControl::Signal(number) => KeptControl::Signal(Signal(number)),
            SocketControl::Resize(size) => KeptControl::Resize(size),
        };
        self.sandbox.control_kept(self.id, control).await
    }
}

/// The output of a terminal for a client.
struct TerminalScreen<'a> {
    sandbox: &'a Sandbox,
    info: &'a KeptInfo,
    events: BoxStream<'static, eyot::Result<KeptEvent>>,
    /// Up to here it is what was there before; `None`: the client was told that what follows is new. It need not answer what a
    /// program asked long ago.
    started_at: Option<u64>,
}

impl TerminalScreen<'_> {
    /// Shows what is written. A terminal whose end was told is forgotten.
    async fn show(mut self, sink: &mut Sink, mut refusals: mpsc::Receiver<SocketEvent>) -> Closing {
        self.started(sink, self.info.first).await;
        loop {
            let told = tokio::select! {
                Some(refusal) = refusals.recv() => sink.send(text(&refusal)).await,
                event = self.events.next() => match event {
                    Some(Ok(KeptEvent::Output(KeptPiece { end, data, .. }))) => {
                        let told = sink.send(Message::Binary(data)).await;
                        self.started(sink, end).await;
                        told
                    }
                    Some(Ok(KeptEvent::End(result))) => {
                        self.started(sink, u64::MAX).await;
                        let last = SocketEvent::End(Box::new(answer(*result).without_output()));
                        return tell_end(self.sandbox, &self.info.id, sink, last).await;
                    }
                    Some(Err(error)) => {
                        let last = SocketEvent::Problem(Refusal::from(error).problem());
                        return tell_end(self.sandbox, &self.info.id, sink, last).await;
                    }
                    None => return Closing::ELSEWHERE,
                },
            };
            if told.is_err() {
                return Closing::DONE;
            }
        }
    }

    /// Tells the client once that what was there before was shown: all before this position was.
    async fn started(&mut self, sink: &mut Sink, shown: u64) {
        if self.started_at.take_if(|at| *at <= shown).is_some()
            && sink.send(text(&SocketEvent::Started)).await.is_err()
        {
            tracing::debug!("a client has gone before it was told that its terminal is there");
        }
    }
}

/// Tells a client the last of a terminal, which is forgotten once the client has heard it.
async fn tell_end(sandbox: &Sandbox, id: &str, sink: &mut Sink, last: SocketEvent) -> Closing {
    if sink.send(text(&last)).await.is_ok()
        && let Err(error) = sandbox.control_kept(id, KeptControl::Forget).await
    {
        tracing::debug!(%error, "a terminal that ended was forgotten already");
    }
    Closing::DONE
}

fn text(event: &SocketEvent) -> Message {
    Message::Text(serde_json::to_string(event).unwrap_or_default().into())
}
