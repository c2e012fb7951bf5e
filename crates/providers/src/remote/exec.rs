//! A command over a WebSocket. The server's `exec_socket` describes the messages.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use eyot::wire::{ExecAnswer, ExecBody, STDERR, STDIN_WINDOW, STDOUT, SocketControl, SocketEvent};
use eyot::{
    Command, Error, ErrorKind, ExecRequest, Execution, ExecutionControl, ExecutionEvent, ExecutionInput,
    ExitStatus, Outcome, PtySize, Result, Signal,
};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::http::{ServerClient, Socket, TargetSandbox, meant};

/// The size of one message with standard input, in bytes.
const PIECE_BYTES: usize = 64 * 1024;
/// The signal that ends a killed process tree.
const SIGKILL: i32 = 9;

/// Runs a command.
pub(super) async fn exec(
    server: &ServerClient,
    target: &TargetSandbox,
    request: ExecRequest,
) -> Result<Execution> {
    let wants_input = request.stdin;
    let mut query = Vec::new();
    if let Some(beneath) = &request.cwd.beneath {
        query.push(("beneath", beneath.as_str()));
    }
    let url = server.url(&["v1", "sandboxes", &target.id, "exec", "socket"], &query)?;
    let mut socket = server.socket(target, url).await?;
    let body = serde_json::to_string(&body(&request))
        .map_err(|error| Error::new(ErrorKind::Internal, "write a command down").with_source(error))?;
    socket.send(Message::Text(body.into())).await.map_err(|error| broken(error, target))?;
    let (sink, mut source) = socket.split();
    started(target, &mut source).await?;
    let (messages, queue) = mpsc::unbounded_channel();
    let over = CancellationToken::new();
    tokio::spawn(send_all(sink, queue, over.clone()));
    let window = Arc::new(Semaphore::new(STDIN_WINDOW));
    let heard = Arc::new(Notify::new());
    let control =
        Arc::new(RemoteControl { messages: messages.clone(), over: over.clone(), heard: Arc::clone(&heard) });
    let input =
        wants_input.then(|| RemoteInput { messages, window: Arc::clone(&window), over: over.clone() });
    let _over = over.drop_guard();
    let state = EventReader { source, target: target.clone(), window, heard, is_over: false, _over };
    Ok(Execution {
        events: futures_util::stream::unfold(state, next).boxed(),
        input: input.map(|input| Box::new(input) as Box<dyn ExecutionInput>),
        control,
    })
}

fn body(request: &ExecRequest) -> ExecBody {
    let (command, argv) = match &request.command {
        Command::Shell(line) => (Some(line.clone()), None),
        Command::Argv(argv) => (None, Some(argv.clone())),
    };
    ExecBody {
        command,
        argv,
        cwd: Some(request.cwd.path.to_string()),
        env: request.env.clone(),
        user: request.user.clone(),
        // The handle on this side has the deadline, and keeps what is kept.
        timeout_ms: Some(u64::MAX),
        max_output_bytes: Some(0),
        stdin: None,
        stdin_base64: None,
        stdin_follows: request.stdin,
        pty: request.pty,
    }
}

fn broken(error: impl std::error::Error + Send + Sync + 'static, target: &TargetSandbox) -> Error {
    let message = format!("the connection to sandbox `{}` broke", target.name);
    Error::new(ErrorKind::Unavailable, message)
        .with_hint("does the server still run? A command whose client is gone is killed")
        .with_source(error)
}

/// The server closed the connection before the command's end: for the reason in its close frame, if there is one.
fn closed(target: &TargetSandbox, frame: Option<&CloseFrame>) -> Error {
    let message = format!("the server closed the connection to sandbox `{}`", target.name);
    let reason = frame.map(|frame| frame.reason.as_str()).filter(|reason| !reason.is_empty());
    let message = match reason {
        Some(reason) => format!("{message}: {reason}"),
        None => message,
    };
    Error::new(ErrorKind::Unavailable, message)
}

/// Waits until the command runs, or fails to start.
async fn started(target: &TargetSandbox, source: &mut SplitStream<Socket>) -> Result<()> {
    loop {
        match source.next().await {
            Some(Ok(Message::Text(text))) => match event(&text)? {
                SocketEvent::Started => return Ok(()),
                SocketEvent::Problem(problem) => return Err(meant(target, problem)),
                other => return Err(unexpected(&other)),
            },
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(frame))) => return Err(closed(target, frame.as_ref())),
            Some(Ok(_)) | None => return Err(closed(target, None)),
            Some(Err(error)) => return Err(broken(error, target)),
        }
    }
}

fn event(text: &str) -> Result<SocketEvent> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(ErrorKind::Unavailable, "the server's message can't be read").with_source(error)
    })
}

fn unexpected(event: &SocketEvent) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the server says {event:?} where that can't be"))
}

/// Sends queued messages until the reader of events is gone.
async fn send_all(
    mut sink: SplitSink<Socket, Message>,
    mut queue: mpsc::UnboundedReceiver<Message>,
    over: CancellationToken,
) {
    let sending = async {
        while let Some(message) = queue.recv().await {
            if sink.send(message).await.is_err() {
                return;
            }
        }
        std::future::pending().await
    };
    tokio::select! {
        () = sending => {}
        () = over.cancelled() => {}
    }
    if let Err(error) = sink.close().await {
        tracing::trace!(%error, "a connection was closed by its other end");
    }
}

struct EventReader {
    source: SplitStream<Socket>,
    target: TargetSandbox,
    window: Arc<Semaphore>,
    /// See [`RemoteControl::heard`].
    heard: Arc<Notify>,
    is_over: bool,
    _over: DropGuard,
}

async fn next(mut reading: EventReader) -> Option<(Result<ExecutionEvent>, EventReader)> {
    if reading.is_over {
        return None;
    }
    let event = loop {
        match reading.source.next().await {
            Some(Ok(Message::Binary(bytes))) => match output(bytes) {
                Some(event) => break Ok(event),
                None => continue,
            },
            Some(Ok(Message::Text(text))) => match event(&text) {
                Ok(SocketEvent::Credit(bytes)) => reading.window.add_permits(bytes),
                Ok(SocketEvent::Refused(problem)) => {
                    tracing::debug!(reason = problem.reason, "a signal or a size was refused");
                }
                Ok(SocketEvent::End(answer)) => break ended(&answer),
                Ok(SocketEvent::Problem(problem)) => break Err(meant(&reading.target, problem)),
                Ok(other) => break Err(unexpected(&other)),
                Err(error) => break Err(error),
            },
            Some(Ok(Message::Pong(_))) => reading.heard.notify_one(),
            Some(Ok(Message::Ping(_) | Message::Frame(_))) => {}
            Some(Ok(Message::Close(frame))) => break Err(closed(&reading.target, frame.as_ref())),
            None => break Err(closed(&reading.target, None)),
            Some(Err(error)) => break Err(broken(error, &reading.target)),
        }
    };
    reading.is_over = matches!(event, Err(_) | Ok(ExecutionEvent::Exit { .. }));
    Some((event, reading))
}

fn output(mut bytes: Bytes) -> Option<ExecutionEvent> {
    let stream = *bytes.first()?;
    let piece = bytes.split_off(1);
    match stream {
        STDOUT => Some(ExecutionEvent::Stdout(piece)),
        STDERR => Some(ExecutionEvent::Stderr(piece)),
        _ => None,
    }
}

/// Reads the end of a command. If the server could not confirm the kill, that is an error.
fn ended(answer: &ExecAnswer) -> Result<ExecutionEvent> {
    if answer.may_still_be_running {
        let message = "the server could not confirm the kill: the command may still be running";
        return Err(Error::new(ErrorKind::Unavailable, message));
    }
    Ok(ExecutionEvent::Exit { status: status(answer.outcome), output_open: answer.output_open })
}

fn status(outcome: Outcome) -> ExitStatus {
    match outcome {
        Outcome::Exited(code) => ExitStatus::Exited(code),
        Outcome::Signaled(signal) => ExitStatus::Signaled(signal),
        Outcome::OutOfMemory => ExitStatus::OutOfMemory,
        // By us, or by the server's own deadline.
        Outcome::TimedOut | Outcome::Cancelled => ExitStatus::Signaled(SIGKILL),
    }
}

/// A command's standard input.
struct RemoteInput {
    messages: mpsc::UnboundedSender<Message>,
    window: Arc<Semaphore>,
    over: CancellationToken,
}

#[async_trait]
impl ExecutionInput for RemoteInput {
    async fn write(&mut self, mut bytes: Bytes) -> Result<()> {
        let gone = || Error::new(ErrorKind::Unavailable, "the command does not read any more");
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
            let count = u32::try_from(piece.len()).map_err(|_| gone())?;
            let permits = tokio::select! {
                permits = self.window.acquire_many(count) => permits.map_err(|_| gone())?,
                () = self.over.cancelled() => return Err(gone()),
            };
            // The server gives them back.
            permits.forget();
            self.messages.send(Message::Binary(piece)).map_err(|_| gone())?;
        }
        Ok(())
    }
}

impl Drop for RemoteInput {
    fn drop(&mut self) {
        // End of file; a command that has ended needs none.
        if self.messages.send(Message::Binary(Bytes::new())).is_err() {
            tracing::trace!("a command ended before its input");
        }
    }
}

/// A command's control.
struct RemoteControl {
    messages: mpsc::UnboundedSender<Message>,
    over: CancellationToken,
    /// Notified when the server has read everything that was sent before the last ping.
    heard: Arc<Notify>,
}

impl RemoteControl {
    fn send(&self, control: SocketControl) -> Result<()> {
        let text = serde_json::to_string(&control)
            .map_err(|error| Error::new(ErrorKind::Internal, "write a control down").with_source(error))?;
        let ended = || Error::new(ErrorKind::NotFound, "the command does not run");
        if self.over.is_cancelled() {
            Err(ended())
        } else {
            self.messages.send(Message::Text(text.into())).map_err(|_| ended())
        }
    }
}

#[async_trait]
impl ExecutionControl for RemoteControl {
    async fn expire(&self) -> Result<()> {
        // An older server does not know this, and gets the kill all the same.
        drop(self.send(SocketControl::Expire));
        self.kill().await
    }

    async fn kill(&self) -> Result<()> {
        // Killing what has ended is fine.
        if self.send(SocketControl::Kill).is_err() || self.messages.send(Message::Ping(Bytes::new())).is_err()
        {
            return Ok(());
        }
        // The order is taken once the server answers: one that is stopped takes none.
        tokio::select! {
            () = self.heard.notified() => {}
            () = self.over.cancelled() => {}
        }
        Ok(())
    }

    async fn signal(&self, Signal(number): Signal) -> Result<()> {
        self.send(SocketControl::Signal(number))
    }

    async fn resize(&self, size: PtySize) -> Result<()> {
        self.send(SocketControl::Resize(size))
    }
}
