//! A terminal of a container. Its program goes on when whoever was connected has gone, and its last output is kept for who
//! comes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use eyot::{Bytes, Error, ErrorKind, Execution, ExecutionControl, ExecutionEvent, PtySize, Result};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::sync::{broadcast, mpsc};

use super::container::StandInContainer;

/// The most bytes of output that are kept.
const KEPT_BYTES: usize = 256 << 10;

/// A terminal with a program on it.
pub struct StandInTerminal {
    control: Arc<dyn ExecutionControl>,
    input: mpsc::UnboundedSender<Bytes>,
    shared: Arc<Mutex<TerminalOutput>>,
    cuts: broadcast::Sender<()>,
}

#[derive(Default)]
struct TerminalOutput {
    kept: VecDeque<u8>,
    listeners: Vec<mpsc::UnboundedSender<Bytes>>,
}

impl StandInTerminal {
    /// Takes a program over that was just started on a terminal.
    pub fn begin(execution: Execution) -> Result<Self> {
        let Execution { mut events, input, control } = execution;
        let mut input = input.ok_or_else(|| Error::new(ErrorKind::Internal, "a terminal without input"))?;
        let (sender, mut typed) = mpsc::unbounded_channel::<Bytes>();
        let shared = Arc::<Mutex<TerminalOutput>>::default();
        tokio::spawn(async move {
            while let Some(bytes) = typed.recv().await {
                if input.write(bytes).await.is_err() {
                    return;
                }
            }
        });
        let output = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                match event {
                    Ok(ExecutionEvent::Stdout(bytes) | ExecutionEvent::Stderr(bytes)) => put(&output, &bytes),
                    Ok(ExecutionEvent::Exit { .. }) | Err(_) => return,
                }
            }
        });
        Ok(Self { control, input: sender, shared, cuts: broadcast::channel(1).0 })
    }

    pub fn type_in(&self, bytes: Bytes) {
        // A program that has ended reads nothing.
        drop(self.input.send(bytes));
    }

    pub async fn resize(&self, size: PtySize) {
        drop(self.control.resize(size).await);
    }

    pub async fn kill(&self) {
        drop(self.control.kill().await);
    }

    /// Returns the kept output, and what comes after it.
    pub fn listen(&self) -> (Bytes, mpsc::UnboundedReceiver<Bytes>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut output = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        output.listeners.push(sender);
        (output.kept.iter().copied().collect::<Vec<u8>>().into(), receiver)
    }

    /// Ends every connection to the terminal, and not its program.
    pub fn cut(&self) {
        drop(self.cuts.send(()));
    }

    pub fn cuts(&self) -> broadcast::Receiver<()> {
        self.cuts.subscribe()
    }
}

fn put(output: &Mutex<TerminalOutput>, bytes: &Bytes) {
    let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
    output.kept.extend(bytes);
    let past = output.kept.len().saturating_sub(KEPT_BYTES);
    output.kept.drain(..past);
    output.listeners.retain(|listener| listener.send(bytes.clone()).is_ok());
}

/// Answers a WebSocket with the terminal of a session.
pub fn serve(
    upgrade: WebSocketUpgrade,
    container: Arc<StandInContainer>,
    session: String,
    shell: Option<String>,
    size: PtySize,
) -> Response {
    upgrade.on_upgrade(async move |mut socket| match container.terminal(&session, shell, size).await {
        Ok(terminal) => carry(socket, &terminal).await,
        Err(error) => {
            let said = json!({ "type": "error", "message": error.to_string() });
            drop(socket.send(Message::Text(said.to_string().into())).await);
        }
    })
}

async fn carry(socket: WebSocket, terminal: &StandInTerminal) {
    let (mut sink, mut source) = socket.split();
    let (kept, mut output) = terminal.listen();
    let mut cuts = terminal.cuts();
    let outward = async {
        if !kept.is_empty() && sink.send(Message::Binary(kept)).await.is_err() {
            return;
        }
        if sink.send(Message::Text(r#"{"type":"ready"}"#.into())).await.is_err() {
            return;
        }
        while let Some(bytes) = output.recv().await {
            if sink.send(Message::Binary(bytes)).await.is_err() {
                return;
            }
        }
        // The vendor's says nothing of a program that has ended, and keeps the connection.
        std::future::pending::<()>().await;
    };
    let inward = async {
        while let Some(Ok(message)) = source.next().await {
            match message {
                Message::Binary(bytes) => terminal.type_in(bytes),
                Message::Text(text) => {
                    let asked: Value = serde_json::from_str(&text).unwrap_or_default();
                    let number =
                        |name: &str| asked[name].as_u64().and_then(|number| u16::try_from(number).ok());
                    if let (Some(rows), Some(cols)) = (number("rows"), number("cols")) {
                        terminal.resize(PtySize { rows, cols }).await;
                    }
                }
                Message::Close(_) => return,
                Message::Ping(_) | Message::Pong(_) => {}
            }
        }
    };
    tokio::select! {
        () = outward => {}
        () = inward => {}
        _ = cuts.recv() => {}
    }
}
