//! A terminal of a sandbox, with a shell on it. What it prints goes to whoever is connected, who is thrown out if it does not
//! read fast enough, as at the vendor's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use eyot::{
    Bytes, Command, Error, ErrorKind, ExecRequest, Execution, ExecutionControl, ExecutionEvent, ExitStatus,
    PtySize, Result, SandboxDriver, SandboxPath,
};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::sync::{broadcast, mpsc, watch};

use super::machine::{Machine, locked};

/// The pieces of output that may wait for a client.
const WAITING_PIECES: usize = 256;
/// The most bytes in a piece of output: what a kernel gives of a terminal at once.
const PIECE_BYTES: usize = 4096;
/// The vendor's code for a client that is too slow.
const POLICY_VIOLATION: u16 = 1008;
const NORMAL: u16 = 1000;
const INTERNAL: u16 = 1011;

/// The request for a terminal.
pub struct NewTerminal {
    pub name: String,
    pub cwd: String,
    pub env: BTreeMap<String, String>,
    pub size: PtySize,
}

/// A terminal with a shell on it.
pub struct StandInTerminal {
    control: Arc<dyn ExecutionControl>,
    input: mpsc::UnboundedSender<Bytes>,
    clients: Mutex<Vec<mpsc::Sender<Bytes>>>,
    ended: watch::Sender<Option<i32>>,
    cuts: broadcast::Sender<()>,
}

/// Begins a terminal.
pub async fn begin(machine: &Arc<Machine>, driver: &Arc<dyn SandboxDriver>, new: NewTerminal) -> Result<()> {
    let mut env = new.env;
    env.entry("TERM".to_owned()).or_insert_with(|| "xterm-256color".to_owned());
    let request = ExecRequest {
        command: Command::Argv(["bash", "-i", "-l"].map(str::to_owned).to_vec()),
        cwd: SandboxPath::parse(&new.cwd)?.into(),
        env,
        user: None,
        stdin: true,
        pty: Some(new.size),
    };
    let Execution { mut events, input, control } = driver.exec(request).await?;
    let mut input = input.ok_or_else(|| Error::new(ErrorKind::Internal, "a terminal without input"))?;
    let (sender, mut typed) = mpsc::unbounded_channel::<Bytes>();
    let (ended, cuts) = (watch::Sender::new(None), broadcast::channel(1).0);
    let terminal =
        Arc::new(StandInTerminal { control, input: sender, clients: Mutex::default(), ended, cuts });
    locked(&machine.terminals).insert(new.name.clone(), Arc::clone(&terminal));
    tokio::spawn(async move {
        while let Some(bytes) = typed.recv().await {
            if input.write(bytes).await.is_err() {
                return;
            }
        }
    });
    let machine = Arc::clone(machine);
    tokio::spawn(async move {
        let mut code = -1;
        while let Some(event) = events.next().await {
            match event {
                Ok(ExecutionEvent::Stdout(bytes) | ExecutionEvent::Stderr(bytes)) => terminal.print(&bytes),
                Ok(ExecutionEvent::Exit { status: ExitStatus::Exited(exited), .. }) => code = exited,
                Ok(ExecutionEvent::Exit { .. }) | Err(_) => {}
            }
        }
        locked(&machine.terminals).remove(&new.name);
        locked(&terminal.clients).clear();
        terminal.ended.send_replace(Some(code));
    });
    Ok(())
}

impl StandInTerminal {
    fn print(&self, bytes: &Bytes) {
        for piece in bytes.chunks(PIECE_BYTES) {
            let piece = Bytes::copy_from_slice(piece);
            locked(&self.clients).retain(|client| client.try_send(piece.clone()).is_ok());
        }
    }

    pub async fn kill(&self) {
        drop(self.control.kill().await);
    }

    pub async fn resize(&self, size: PtySize) {
        drop(self.control.resize(size).await);
    }

    /// Ends every connection, and not the shell.
    pub fn cut(&self) {
        drop(self.cuts.send(()));
    }
}

/// Carries what is typed and printed, until either side ends.
pub async fn carry(socket: WebSocket, terminal: &StandInTerminal, tells_exit: bool) {
    let (mut sink, mut source) = socket.split();
    let (sender, mut output) = mpsc::channel(WAITING_PIECES);
    locked(&terminal.clients).push(sender);
    let (mut ended, mut cuts) = (terminal.ended.subscribe(), terminal.cuts.subscribe());
    let outward = async {
        let connected = json!({ "type": "control", "status": "connected" }).to_string();
        sink.send(Message::Text(connected.into())).await?;
        while let Some(bytes) = output.recv().await {
            sink.send(Message::Binary(bytes)).await?;
        }
        // Its sender is gone when the shell has ended, or because this client was too slow.
        let late =
            tokio::time::timeout(std::time::Duration::from_millis(200), ended.wait_for(Option::is_some));
        let code = late.await.ok().and_then(|code| code.ok().and_then(|code| *code));
        let (close, reason) = match code {
            None => (POLICY_VIOLATION, "slow consumer".to_owned()),
            Some(code) => {
                if tells_exit {
                    let told = json!({ "type": "control", "status": "exited", "exitCode": code });
                    sink.send(Message::Text(told.to_string().into())).await?;
                }
                (if code == 0 { NORMAL } else { INTERNAL }, json!({ "exitCode": code }).to_string())
            }
        };
        sink.send(Message::Close(Some(CloseFrame { code: close, reason: reason.into() }))).await
    };
    let inward = async {
        while let Some(Ok(message)) = source.next().await {
            match message {
                Message::Binary(bytes) => drop(terminal.input.send(bytes)),
                Message::Text(text) => drop(terminal.input.send(Bytes::copy_from_slice(text.as_bytes()))),
                Message::Close(_) => return,
                Message::Ping(_) | Message::Pong(_) => {}
            }
        }
    };
    tokio::select! {
        _ = outward => {}
        () = inward => {}
        _ = cuts.recv() => {}
    }
}
