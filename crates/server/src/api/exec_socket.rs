//! A command over a WebSocket: its input, its output as it comes, signals, a terminal's size.
//!
//! The client's first message is text, an [`ExecBody`]. After that its binary messages are standard input (an empty one is end
//! of file), and its text messages [`SocketControl`]s. The server's binary messages are output, led by one byte: 1 for standard
//! output, 2 for standard error. Its text messages are [`SocketEvent`]s; the last one is `end` or `problem`.
//!
//! Of standard input at most [`STDIN_WINDOW`] bytes may be under way beyond what `credit` has given back: so a command that
//! does not read holds up its own input, and no signal. Closing the socket before the end kills the command's process tree.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::Message;
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use eyot::wire::{ExecBody, Problem, STDERR, STDIN_WINDOW, STDOUT, SocketControl, SocketEvent};
use eyot::{Error, ExecControl, ExecEvent, ExecStream, Sandbox, Signal, Stdin};
use futures_util::{SinkExt, Stream, StreamExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::exec::{answer, checked};
use super::extract::{Chosen, TheSandbox, Where};
use super::sockets::{Closing, Sink, Source, Upgrade, closing};
use super::state::Api;
use super::stopping::Stopping;
use super::turns::Turn;
use crate::problem::{Problems, Refusal};

/// The largest message from a client, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// Runs a command over a WebSocket: its input, its output as it comes, signals, a terminal's size.
///
/// The client's first message is text, an `ExecBody`. After that its binary messages are standard
/// input (an empty one ends it), and its text messages are `SocketControl`s. The server's binary
/// messages are output behind one byte, which is 1 for standard output and 2 for standard error;
/// its text messages are `SocketEvent`s, the last of which is `end` or `problem`.
#[utoipa::path(get, path = "/v1/sandboxes/{sandbox}/exec/socket", tag = "exec", params(TheSandbox, Where),
    extensions(("x-websocket" = json!({
        "client": [{ "$ref": "#/components/schemas/ExecBody" }, { "$ref": "#/components/schemas/SocketControl" }],
        "server": [{ "$ref": "#/components/schemas/SocketEvent" }],
    }))),
    responses((status = 101, description = "A WebSocket"), Problems))]
pub(super) async fn exec_socket(
    State(api): State<Api>,
    Extension(turn): Extension<Turn>,
    Extension(Stopping { cut, .. }): Extension<Stopping>,
    Chosen(sandbox): Chosen,
    upgrade: Upgrade,
) -> Response {
    // A command under way may end while the server stops.
    upgrade.of_messages(MAX_MESSAGE_BYTES).on_upgrade(async move |socket| {
        let (mut sink, mut source) = socket.split();
        let closing =
            closing(&turn, (&cut, Closing::STOPS), carry(&api, &sandbox, &mut sink, &mut source)).await;
        closing.close(&mut sink, &mut source).await;
    })
}

async fn carry(api: &Api, sandbox: &Sandbox, sink: &mut Sink, source: &mut Source) -> Closing {
    let last = match begin(api, sandbox, source).await {
        Ok(Some(begun)) => run(api, begun, sink, source).await,
        Ok(None) => None,
        Err(error) => Some(SocketEvent::Problem(Refusal::from(error).problem())),
    };
    if let Some(last) = last
        && send(sink, &last).await.is_none()
    {
        tracing::debug!("a client has gone before it was told the end");
    }
    Closing::DONE
}

/// A command that was started, and where its input goes.
struct Begun {
    events: ExecStream,
    cancel: CancellationToken,
    input: Option<mpsc::UnboundedSender<Bytes>>,
    credit: mpsc::UnboundedReceiver<usize>,
    /// What came before it ran.
    early: Vec<Message>,
}

/// Reads what to run and starts it; `None` if the client has gone.
async fn begin(api: &Api, sandbox: &Sandbox, source: &mut Source) -> Result<Option<Begun>, Error> {
    let body = loop {
        match source.next().await {
            Some(Ok(Message::Text(text))) => break text,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Binary(_))) => {
                return Err(Error::invalid("body", "must come first, as text"));
            }
            _ => return Ok(None),
        }
    };
    let body: ExecBody = serde_json::from_str(&body).map_err(|error| Error::invalid("body", error))?;
    let follows = body.stdin_follows;
    let (command, mut options) = checked(api, sandbox, body)?;
    let cancel = CancellationToken::new();
    options.cancel = Some(cancel.clone());
    let (credit_given, credit) = mpsc::unbounded_channel();
    let mut input = None;
    if follows {
        if !matches!(options.stdin, Stdin::Closed) {
            return Err(Error::invalid("stdin_follows", "can't be there beside `stdin` or `stdin_base64`"));
        }
        // Bounded by the window, which the reader holds the client to.
        let (sender, receiver) = mpsc::unbounded_channel::<Bytes>();
        input = Some(sender);
        options.stdin = Stdin::Stream(Box::pin(stdin(receiver, credit_given)));
    }
    // A sandbox that does not answer must not keep a client that has gone.
    let mut early = Vec::new();
    let events = tokio::select! {
        biased;
        events = sandbox.exec_stream(command, options) => events?,
        () = gone(source, &mut early) => return Ok(None),
    };
    Ok(Some(Begun { events, cancel, input, credit, early }))
}

/// Returns once the client has gone. Keeps what it sends meanwhile; beyond the window of standard input nothing more is
/// read.
async fn gone(source: &mut Source, early: &mut Vec<Message>) {
    let mut kept = 0;
    while kept <= STDIN_WINDOW {
        match source.next().await {
            Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            Some(Ok(message @ (Message::Binary(_) | Message::Text(_)))) => {
                kept += message_bytes(&message);
                early.push(message);
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
        }
    }
    std::future::pending().await
}

/// What it costs to keep a message.
fn message_bytes(message: &Message) -> usize {
    const OWN: usize = 64;
    match message {
        Message::Binary(bytes) => bytes.len() + OWN,
        Message::Text(text) => text.len() + OWN,
        _ => OWN,
    }
}

/// The pieces as the command takes them; what it has taken may come again.
fn stdin(
    receiver: mpsc::UnboundedReceiver<Bytes>,
    credit: mpsc::UnboundedSender<usize>,
) -> impl futures_util::Stream<Item = eyot::Result<Bytes>> + Send {
    let state = (receiver, credit, 0_usize);
    futures_util::stream::unfold(state, async |(mut receiver, credit, taken)| {
        // Asked for the next piece: the one before was written.
        if taken > 0 && credit.send(taken).is_err() {
            return None;
        }
        let bytes = receiver.recv().await?;
        let taken = bytes.len();
        Some((Ok(bytes), (receiver, credit, taken)))
    })
}

/// Carries both ways until the command or the client ends. What is to be said last; `None` if the client has gone, and with
/// the events goes the command.
async fn run(api: &Api, begun: Begun, sink: &mut Sink, source: &mut Source) -> Option<SocketEvent> {
    let Begun { events, cancel, input, credit, early } = begun;
    let messages = futures_util::stream::iter(early.into_iter().map(Ok)).chain(source);
    let (told, refusals) = mpsc::channel(8);
    let window = Arc::new(AtomicUsize::new(STDIN_WINDOW));
    let reader = Reader {
        control: events.control(),
        cancel,
        input,
        window: Arc::clone(&window),
        told,
        has_expired: false,
    };
    let writer = Writer { events, credit, window, refusals };
    // Apart: a client that does not read is still heard.
    tokio::select! {
        broken = reader.read(messages) => broken.map(SocketEvent::Problem),
        last = writer.write(api, sink) => last,
    }
}

/// What comes from the client.
struct Reader {
    control: ExecControl,
    cancel: CancellationToken,
    input: Option<mpsc::UnboundedSender<Bytes>>,
    /// How much more input may come.
    window: Arc<AtomicUsize>,
    told: mpsc::Sender<Problem>,
    /// The command is being ended for its client's deadline: a kill adds nothing.
    has_expired: bool,
}

impl Reader {
    /// Reads until the client has gone, or breaks a rule, which is to be said last.
    async fn read(mut self, messages: impl Stream<Item = Result<Message, axum::Error>>) -> Option<Problem> {
        let mut messages = std::pin::pin!(messages);
        while let Some(Ok(message)) = messages.next().await {
            match message {
                Message::Binary(bytes) if bytes.is_empty() => self.input = None,
                Message::Binary(bytes) => {
                    let spent = self.window.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
                        left.checked_sub(bytes.len())
                    });
                    if spent.is_err() {
                        let reason = format!(
                            "is beyond the window: {STDIN_WINDOW} bytes more than `credit` gave back"
                        );
                        return Some(Refusal::from(Error::invalid("stdin", reason)).problem());
                    }
                    // Whoever writes to a command that does not read any more is told by its end.
                    if let Some(input) = &self.input {
                        drop(input.send(bytes));
                    }
                }
                Message::Text(text) => {
                    if let Err(error) = self.act(&text).await {
                        drop(self.told.try_send(Refusal::from(error).problem()));
                    }
                }
                Message::Ping(_) | Message::Pong(_) => {}
                Message::Close(_) => return None,
            }
        }
        None
    }

    async fn act(&mut self, text: &str) -> eyot::Result<()> {
        match serde_json::from_str(text).map_err(|error| Error::invalid("control", error))? {
            SocketControl::Kill => {
                if !self.has_expired {
                    self.cancel.cancel();
                }
                Ok(())
            }
            SocketControl::Expire => {
                self.has_expired = true;
                self.control.expire();
                Ok(())
            }
            SocketControl::Signal(number) => self.control.signal(Signal(number)).await,
            SocketControl::Resize(size) => self.control.resize(size).await,
        }
    }
}

/// What goes to the client.
struct Writer {
    events: ExecStream,
    credit: mpsc::UnboundedReceiver<usize>,
    window: Arc<AtomicUsize>,
    refusals: mpsc::Receiver<Problem>,
}

impl Writer {
    /// Writes until the command's end, which is to be said last.
    async fn write(mut self, api: &Api, sink: &mut Sink) -> Option<SocketEvent> {
        send(sink, &SocketEvent::Started).await?;
        loop {
            tokio::select! {
                biased;
                Some(bytes) = self.credit.recv() => {
                    self.window.fetch_add(bytes, Ordering::AcqRel);
                    send(sink, &SocketEvent::Credit(bytes)).await?;
                }
                Some(refusal) = self.refusals.recv() => send(sink, &SocketEvent::Refused(refusal)).await?,
                event = self.events.next() => match event? {
                    Ok(ExecEvent::Stdout(bytes)) => send_output(sink, STDOUT, &bytes).await?,
                    Ok(ExecEvent::Stderr(bytes)) => send_output(sink, STDERR, &bytes).await?,
                    Ok(ExecEvent::End(result)) => {
                        api.metrics().exec_ended(&result);
                        return Some(SocketEvent::End(Box::new(answer(result))));
                    }
                    Err(error) => return Some(SocketEvent::Problem(Refusal::from(error).problem())),
                },
            }
        }
    }
}

/// `None` if the client has gone.
async fn send(sink: &mut Sink, event: &SocketEvent) -> Option<()> {
    let text = serde_json::to_string(event).ok()?;
    sink.send(Message::Text(text.into())).await.ok()
}

async fn send_output(sink: &mut Sink, stream: u8, bytes: &Bytes) -> Option<()> {
    let mut message = BytesMut::with_capacity(bytes.len() + 1);
    message.put_u8(stream);
    message.put_slice(bytes);
    sink.send(Message::Binary(message.freeze())).await.ok()
}
