//! A process that a call of envd has started: it runs on when that call ends, and its output goes to
//! whoever is connected.
//!
//! As with envd, its end is told when nothing holds its output open any more, or when it is sent a
//! signal. Output that comes while nobody is connected is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use eyot::{Command, ExecControl, ExecEvent, ExecOptions, ExecResult, ExecStream, Outcome, Sandbox};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::input::ProcessStdin;

/// The pieces of output that may wait for a client.
const WAITING_PIECES: usize = 16;
/// The time between two looks at what holds the output of an ended process open.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The longest first line of a process, which has its number, in bytes.
const MAX_LINE_BYTES: usize = 64;

/// A process.
pub(super) struct E2bProcess {
    pub pid: u32,
    pub tag: Option<String>,
    /// The request for it, as `List` tells it.
    pub config: serde_json::Value,
    pub is_pty: bool,
    pub input: ProcessStdin,
    pub control: ExecControl,
    user: Option<String>,
    sandbox: Sandbox,
    /// `None`: no more output comes.
    clients: Mutex<Option<Vec<mpsc::Sender<OutputPiece>>>>,
    /// It was sent a signal: nobody waits for its output any more.
    signaled: CancellationToken,
    fate: watch::Sender<Fate>,
}

/// The state of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fate {
    Runs,
    Ended(ProcessExit),
    /// The sandbox was lost.
    Lost,
}

/// A piece of output.
#[derive(Debug, Clone)]
pub(super) enum OutputPiece {
    Stdout(Bytes),
    Stderr(Bytes),
}

/// The end of a process, in envd's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessExit {
    /// The exit code; -1 if a signal ended it.
    pub exit_code: i32,
    pub exited: bool,
    pub status: String,
}

/// The parts of a new process.
pub(super) struct ProcessParts {
    pub pid: u32,
    pub tag: Option<String>,
    pub config: serde_json::Value,
    pub is_pty: bool,
    pub input: ProcessStdin,
    pub user: Option<String>,
    pub sandbox: Sandbox,
}

impl E2bProcess {
    /// Takes over a command that runs. The output that has come already goes to the first client.
    pub fn take_over(
        new: ProcessParts,
        events: ExecStream,
        first: Bytes,
    ) -> (Arc<Self>, mpsc::Receiver<OutputPiece>) {
        let (sender, receiver) = mpsc::channel(WAITING_PIECES);
        let process = Arc::new(Self {
            pid: new.pid,
            tag: new.tag,
            config: new.config,
            is_pty: new.is_pty,
            input: new.input,
            control: events.control(),
            user: new.user,
            sandbox: new.sandbox,
            clients: Mutex::new(Some(vec![sender])),
            signaled: CancellationToken::new(),
            fate: watch::Sender::new(Fate::Runs),
        });
        tokio::spawn(Arc::clone(&process).pump(events, first));
        (process, receiver)
    }

    /// Connects a client. Output that comes from now on is its own, too.
    pub fn connect(&self) -> mpsc::Receiver<OutputPiece> {
        let (sender, receiver) = mpsc::channel(WAITING_PIECES);
        if let Some(clients) = &mut *self.clients() {
            clients.push(sender);
        }
        receiver
    }

    /// Returns the end, once it has come.
    pub fn end(&self) -> Option<ProcessExit> {
        match &*self.fate.borrow() {
            Fate::Ended(end) => Some(end.clone()),
            Fate::Runs | Fate::Lost => None,
        }
    }

    /// Returns whether it runs.
    pub fn runs(&self) -> bool {
        *self.fate.borrow() == Fate::Runs
    }

    fn clients(&self) -> MutexGuard<'_, Option<Vec<mpsc::Sender<OutputPiece>>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it does not run any more.
    pub async fn ended(&self) {
        let mut fate = self.fate.subscribe();
        // The sender is this process's own.
        drop(fate.wait_for(|fate| *fate != Fate::Runs).await);
    }

    /// Sends the process a signal, and not its children, as envd does.
    pub async fn signal(&self, name: &str) -> eyot::Result<()> {
        self.signaled.cancel();
        let pid = self.pid.to_string();
        let command =
            Command::argv(["/bin/sh", "-c", "kill -s \"$0\" -- \"$1\" 2>/dev/null || :", name, &pid]);
        self.sandbox.exec(command, self.options()).await?;
        Ok(())
    }

    fn options(&self) -> ExecOptions {
        ExecOptions { user: self.user.clone(), cwd: Some("/".to_owned()), ..ExecOptions::default() }
    }

    async fn pump(self: Arc<Self>, mut events: ExecStream, first: Bytes) {
        if !first.is_empty() {
            self.send(OutputPiece::Stdout(first)).await;
        }
        let mut end = None;
        while let Some(event) = events.next().await {
            match event {
                Ok(ExecEvent::Stdout(bytes)) => self.send(OutputPiece::Stdout(bytes)).await,
                Ok(ExecEvent::Stderr(bytes)) => self.send(OutputPiece::Stderr(bytes)).await,
                Ok(ExecEvent::End(result)) => end = Some(result),
                // The sandbox is gone: its clients are cut off without an end.
                Err(error) => tracing::debug!(%error, pid = self.pid, "a process was lost"),
            }
        }
        if end.as_ref().is_some_and(|result| result.output_open) {
            self.wait_until_nothing_holds_it().await;
        }
        self.fate.send_replace(end.map_or(Fate::Lost, |result| Fate::Ended(ProcessExit::of(&result))));
        self.clients().take();
    }

    /// Waits until every process of its group has ended, or it is sent a signal.
    async fn wait_until_nothing_holds_it(&self) {
        let group = format!("-{}", self.pid);
        while !self.signaled.is_cancelled() {
            let command = Command::argv(["/bin/sh", "-c", "kill -s 0 -- \"$0\" 2>/dev/null", &group]);
            let looked = self.sandbox.exec(command, self.options()).await;
            if !looked.is_ok_and(|looked| looked.success()) {
                return;
            }
            drop(tokio::time::timeout(LOOK_AGAIN, self.signaled.cancelled()).await);
        }
    }

    async fn send(&self, output: OutputPiece) {
        let clients = self.clients().clone().unwrap_or_default();
        for client in clients {
            if client.send(output.clone()).await.is_err()
                && let Some(clients) = &mut *self.clients()
            {
                clients.retain(|other| !other.same_channel(&client));
            }
        }
    }
}

impl ProcessExit {
    fn of(result: &ExecResult) -> Self {
        match result.outcome {
            Outcome::Exited(code) => {
                Self { exit_code: code, exited: true, status: format!("exit status {code}") }
            }
            Outcome::Signaled(number) => Self::signaled(number),
            Outcome::OutOfMemory | Outcome::TimedOut | Outcome::Cancelled => Self::signaled(9),
        }
    }

    fn signaled(number: i32) -> Self {
        let name = match number {
            1 => "hangup",
            2 => "interrupt",
            3 => "quit",
            4 => "illegal instruction",
            5 => "trace/breakpoint trap",
            6 => "aborted",
            7 => "bus error",
            8 => "floating point exception",
            9 => "killed",
            10 => "user defined signal 1",
            11 => "segmentation fault",
            12 => "user defined signal 2",
            13 => "broken pipe",
            14 => "alarm clock",
            15 => "terminated",
            other => return Self::named(format!("signal {other}")),
        };
        Self::named(name.to_owned())
    }

    fn named(name: String) -> Self {
        Self { exit_code: -1, exited: false, status: format!("signal: {name}") }
    }
}

/// Reads the first line that a process writes to its standard output. Returns what came after it;
/// `Err` has the end of a process that wrote none.
pub(super) async fn first_line(events: &mut ExecStream) -> eyot::Result<Result<(String, Bytes), ExecResult>> {
    let mut read = Vec::new();
    while let Some(event) = events.next().await {
        match event? {
            ExecEvent::Stdout(bytes) => read.extend_from_slice(&bytes),
            ExecEvent::Stderr(_) => {}
            ExecEvent::End(result) => return Ok(Err(result)),
        }
        if let Some(split) = split_line(&read)? {
            return Ok(Ok(split));
        }
    }
    Err(eyot::Error::new(eyot::ErrorKind::Unavailable, "the process was lost at its start"))
}

/// Splits the first line off, once it is there.
fn split_line(read: &[u8]) -> eyot::Result<Option<(String, Bytes)>> {
    match read.iter().take(MAX_LINE_BYTES).position(|byte| *byte == b'\n') {
        Some(at) => {
            let line = String::from_utf8_lossy(&read[..at]).trim().to_owned();
            Ok(Some((line, Bytes::copy_from_slice(&read[at + 1..]))))
        }
        None if read.len() >= MAX_LINE_BYTES => {
            Err(eyot::Error::new(eyot::ErrorKind::Internal, "the process told no number"))
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_as_long_as_the_limit_is_read_and_one_byte_more_is_refused() {
        let line = "7".repeat(MAX_LINE_BYTES - 1);
        let (number, rest) = split_line(format!("{line}\nrest").as_bytes()).unwrap().unwrap();
        assert_eq!((number, &rest[..]), (line.clone(), &b"rest"[..]));
        assert!(split_line(line.as_bytes()).unwrap().is_none());
        assert!(split_line(format!("7{line}\n").as_bytes()).is_err());
        assert!(split_line(format!("7{line}").as_bytes()).is_err());
    }
}
