//! Terminals that outlive a connection: a page that is loaded again finds its shells as they were.
//!
//! Whoever connects hears what was written last (up to [`held::KEPT_BYTES`]), then the event `started`, then what comes. The
//! client's binary messages are what is typed, its text messages [`SocketControl`]s; the server's binary messages are output,
//! its text messages [`SocketEvent`]s, the last of which is `end` or `problem`. Who connects takes the place of who was there.

mod held;

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use eyot::wire::{SocketControl, SocketEvent, TerminalAnswer, TerminalBody, TerminalList};
use eyot::{CancellationToken, Command, Error, ExecOptions, Signal, Stdin};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::mpsc;
use utoipa::IntoParams;

use super::extract::{Chosen, InPool, JsonBody, Named, TheSandbox};
use super::sockets::{Closing, Sink, Source, closing};
use super::state::Api;
use super::stopping::Stopping;
use super::turns::Turn;
use crate::http::own_page::PROTOCOL;
use crate::problem::{Problems, Refusal};
use held::{Piece, Terminal};

pub(super) use held::Terminals;

/// Bash, or sh where there is none.
const SHELL: &str = "if command -v bash >/dev/null 2>&1; then exec bash; else exec sh; fi";
/// The largest message from a client, in bytes.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// How many pieces of [`TYPED_PIECE_BYTES`] may wait for a program that does not read: 256 KiB. Whoever types more waits.
const TYPED_AHEAD: usize = 64;

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
#[utoipa::path(post, path = "/v1/sandboxes/{sandbox}/terminals", tag = "terminals", params(TheSandbox, InPool),
    request_body = TerminalBody,
    responses((status = 201, body = TerminalAnswer), Problems))]
pub(super) async fn open(
    State(api): State<Api>,
    named: Named,
    Chosen(sandbox): Chosen,
    JsonBody(TerminalBody { command, cwd, size }): JsonBody<TerminalBody>,
) -> Result<Response, Refusal> {
    let pool = named.pool(&api).await?;
    api.terminals().check_room(&pool)?;
    let cancel = CancellationToken::new();
    let (typed, receiver) = mpsc::channel::<Bytes>(TYPED_AHEAD);
    let typing = futures_util::stream::unfold(receiver, async |mut receiver| {
        let bytes = receiver.recv().await?;
        Some((Ok(bytes), receiver))
    });
    let options = ExecOptions {
        cwd,
        stdin: Stdin::Stream(Box::pin(typing)),
        pty: Some(size),
        cancel: Some(cancel.clone()),
        // Nobody is told what was kept.
        max_output_bytes: Some(0),
        ..ExecOptions::default()
    };
    let line = command.clone().unwrap_or_else(|| SHELL.to_owned());
    let events = sandbox.exec_stream(Command::Shell(line), options).await?;
    let terminal = Terminal::new(pool, &sandbox, command, events.control(), typed, cancel)?;
    let figures = api.clone();
    let answer = terminal.answer();
    api.terminals().take_up(terminal, events, move |result| figures.metrics().exec_ended(result))?;
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

/// Lists the terminals of a sandbox. It is not woken.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/terminals", tag = "terminals", params(TheSandbox, InPool),
    responses((status = 200, body = TerminalList), Problems))]
pub(super) async fn list(State(api): State<Api>, named: Named) -> Result<Json<TerminalList>, Refusal> {
    let pool = named.pool(&api).await?;
    Ok(Json(TerminalList { terminals: api.terminals().told(&pool, &named.sandbox) }))
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
    let terminal = found(&api, &named, &path).await?;
    api.terminals().forget(&terminal);
    Ok(StatusCode::NO_CONTENT)
}

/// Connects to a terminal by a WebSocket.
pub(super) async fn attach(
    State(api): State<Api>,
    Extension(turn): Extension<Turn>,
    Extension(Stopping { stop, .. }): Extension<Stopping>,
    named: Named,
    Path(path): Path<HashMap<String, String>>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Refusal> {
    let terminal = found(&api, &named, &path).await?;
    let upgrade = upgrade.protocols([PROTOCOL]);
    let upgrade = upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES);
    Ok(upgrade.on_upgrade(async move |socket| {
        let (mut sink, mut source) = socket.split();
        let closing =
            closing(&turn, (&stop, Closing::RESTARTS), carry(&api, &terminal, &mut sink, &mut source)).await;
        closing.close(&mut sink, &mut source).await;
    }))
}

async fn found(api: &Api, named: &Named, path: &HashMap<String, String>) -> Result<Arc<Terminal>, Refusal> {
    let id = path.get("terminal").map(String::as_str).unwrap_or_default();
    Ok(api.terminals().find(&named.pool(api).await?, &named.sandbox, id)?)
}

async fn carry(api: &Api, terminal: &Arc<Terminal>, sink: &mut Sink, source: &mut Source) -> Closing {
    let (told, refusals) = mpsc::channel(8);
    // Apart: who does not read is still heard.
    tokio::select! {
        () = hear(terminal, source, told) => Closing::DONE,
        closing = tell(api, terminal, sink, refusals) => closing,
    }
}

/// Passes on what is typed until the client has gone. While one message waits for a program that does not read, control is
/// heard; a second one is not taken.
async fn hear(terminal: &Terminal, source: &mut Source, told: mpsc::Sender<SocketEvent>) {
    let (mut ahead, mut next) = (Bytes::new(), Bytes::new());
    loop {
        if ahead.is_empty() {
            ahead = std::mem::take(&mut next);
        }
        let message = tokio::select! {
            // Whoever types after the end is told the end.
            () = terminal.typed(&mut ahead), if !ahead.is_empty() => continue,
            message = source.next(), if next.is_empty() => message,
        };
        match message {
            Some(Ok(Message::Binary(bytes))) => next = bytes,
            Some(Ok(Message::Text(text))) => {
                if let Err(error) = act(terminal, &text).await {
                    drop(told.try_send(SocketEvent::Refused(Refusal::from(error).problem())));
                }
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(_)) | Err(_)) | None => return,
        }
    }
}

async fn act(terminal: &Terminal, text: &str) -> eyot::Result<()> {
    match serde_json::from_str(text).map_err(|error| Error::invalid("control", error))? {
        SocketControl::Kill => {
            terminal.cancel.cancel();
            Ok(())
        }
        SocketControl::Signal(number) => terminal.control.signal(Signal(number)).await,
        SocketControl::Resize(size) => terminal.control.resize(size).await,
    }
}

/// Tells what is written. One whose end was told is known no more.
async fn tell(
    api: &Api,
    terminal: &Arc<Terminal>,
    sink: &mut Sink,
    mut refusals: mpsc::Receiver<SocketEvent>,
) -> Closing {
    let mut reading = terminal.read();
    loop {
        let message = tokio::select! {
            Some(refusal) = refusals.recv() => text(&refusal),
            piece = reading.next() => match piece {
                Some(Piece::Started) => text(&SocketEvent::Started),
                Some(Piece::Output(bytes)) => Message::Binary(bytes),
                Some(Piece::End(event)) => {
                    if sink.send(text(&event)).await.is_ok() {
                        api.terminals().forget(terminal);
                    }
                    return Closing::DONE;
                }
                None => return Closing::ELSEWHERE,
            },
        };
        if sink.send(message).await.is_err() {
            return Closing::DONE;
        }
    }
}

fn text(event: &SocketEvent) -> Message {
    Message::Text(serde_json::to_string(event).unwrap_or_default().into())
}
