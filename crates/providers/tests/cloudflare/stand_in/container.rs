//! One container: a native sandbox, with what the vendor's program in it does.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use eyot::{
    Command, Error, ErrorKind, ExecRequest, ExecutionEvent, ExitStatus, PtySize, Result, Sandbox,
    SandboxDriver, SandboxPath,
};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::terminal::StandInTerminal;

/// A container that runs.
pub struct StandInContainer {
    pub sandbox: Sandbox,
    pub driver: Arc<dyn SandboxDriver>,
    terminals: Mutex<HashMap<String, Arc<StandInTerminal>>>,
    sessions: Mutex<BTreeSet<String>>,
}

/// An output of a command, or its end.
pub enum CommandOutput {
    Stdout(String),
    Stderr(String),
    Exit(i32),
    Failed(String),
}

impl StandInContainer {
    pub fn new(sandbox: Sandbox, driver: Arc<dyn SandboxDriver>) -> Self {
        Self { sandbox, driver, terminals: Mutex::default(), sessions: Mutex::default() }
    }

    fn terminals(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<StandInTerminal>>> {
        self.terminals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a line of bash. Its output comes as text, line by line.
    pub fn run(
        &self,
        line: String,
        cwd: String,
        timeout_ms: Option<u64>,
    ) -> mpsc::UnboundedReceiver<CommandOutput> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let driver = Arc::clone(&self.driver);
        tokio::spawn(async move {
            let ran = run_whole(&driver, line, cwd, &sender);
            let ended = match timeout_ms {
                None => ran.await,
                Some(most) => tokio::time::timeout(std::time::Duration::from_millis(most), ran)
                    .await
                    .unwrap_or_else(|_| Err(Error::new(ErrorKind::Timeout, "Command timed out"))),
            };
            let last =
                ended.map_or_else(|error| CommandOutput::Failed(error.to_string()), CommandOutput::Exit);
            // Whoever has gone needs no answer.
            drop(sender.send(last));
        });
        receiver
    }

    /// Returns the terminal of a session, with a program on it from the first time on.
    pub async fn terminal(
        &self,
        session: &str,
        shell: Option<String>,
        size: PtySize,
    ) -> Result<Arc<StandInTerminal>> {
        if let Some(terminal) = self.terminals().get(session) {
            return Ok(Arc::clone(terminal));
        }
        let variables = [("TERM", "xterm-256color"), ("PROMPT_COMMAND", "clear; unset PROMPT_COMMAND")];
        let request = ExecRequest {
            command: Command::Argv(vec![shell.unwrap_or_else(|| "bash".to_owned())]),
            cwd: SandboxPath::parse("/workspace")?.into(),
            env: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            user: None,
            stdin: true,
            pty: Some(size),
        };
        let terminal = Arc::new(StandInTerminal::begin(self.driver.exec(request).await?)?);
        self.terminals().insert(session.to_owned(), Arc::clone(&terminal));
        Ok(terminal)
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session. Returns whether there was none of this name.
    pub fn begin_session(&self, session: &str) -> bool {
        self.sessions().insert(session.to_owned())
    }

    pub fn count_sessions(&self) -> usize {
        self.sessions().len()
    }

    /// Ends a session, with its terminal. Returns whether there was one.
    pub async fn end_session(&self, session: &str) -> bool {
        let was_there = self.sessions().remove(session);
        let ended = self.terminals().remove(session);
        if let Some(terminal) = ended {
            terminal.kill().await;
        }
        was_there
    }

    /// Cuts the streams of every terminal, whose programs go on.
    pub fn cut_terminals(&self) {
        self.terminals().values().for_each(|terminal| terminal.cut());
    }

    pub fn count_terminals(&self) -> usize {
        self.terminals().len()
    }
}

async fn run_whole(
    driver: &Arc<dyn SandboxDriver>,
    line: String,
    cwd: String,
    sender: &mpsc::UnboundedSender<CommandOutput>,
) -> Result<i32> {
    let request = ExecRequest {
        command: Command::Argv(["bash", "--norc", "-c", &line].map(str::to_owned).to_vec()),
        cwd: SandboxPath::parse(&cwd)?.into(),
        env: BTreeMap::new(),
        user: None,
        stdin: false,
        pty: None,
    };
    let mut execution = driver.exec(request).await?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let send = |bytes: &mut Vec<u8>, made: fn(String) -> CommandOutput| {
        for line in String::from_utf8_lossy(&std::mem::take(bytes)).lines().filter(|line| !line.is_empty()) {
            drop(sender.send(made(format!("{line}\n"))));
        }
    };
    while let Some(event) = execution.events.next().await {
        match event? {
            ExecutionEvent::Stdout(bytes) => stdout.extend_from_slice(&bytes),
            ExecutionEvent::Stderr(bytes) => stderr.extend_from_slice(&bytes),
            ExecutionEvent::Exit { status, .. } => {
                send(&mut stdout, CommandOutput::Stdout);
                send(&mut stderr, CommandOutput::Stderr);
                return Ok(match status {
                    ExitStatus::Exited(code) => code,
                    _ => 137,
                });
            }
        }
    }
    Err(Error::new(ErrorKind::Unavailable, "the container is gone"))
}
