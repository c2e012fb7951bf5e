//! The calls of envd on one process.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use eyot::{Error, ErrorKind, PtySize, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::whole;
use super::envd::PATIENCE;
use super::link::Link;

/// A process of envd's. Its calls go by the tag: in another life of the sandbox another process has the number.
#[derive(Debug, Clone)]
pub(super) struct EnvdProcess {
    pub pid: u32,
    pub tag: String,
}

/// The kinds of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputKind {
    Stdin,
    Terminal,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EnvdProcessList {
    processes: Vec<ListedEnvdProcess>,
}

#[derive(Deserialize)]
struct ListedEnvdProcess {
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    tag: String,
}

impl Link {
    /// Gives a process input. Waits while it does not read.
    pub async fn send_input(&self, process: &EnvdProcess, kind: InputKind, bytes: &[u8]) -> Result<()> {
        let name = match kind {
            InputKind::Stdin => "stdin",
            InputKind::Terminal => "pty",
        };
        let message = json!({ "input": { name: STANDARD.encode(bytes) } });
        self.call_process(process, "SendInput", message, None).await
    }

    /// Ends the input of a process.
    pub async fn close_stdin(&self, process: &EnvdProcess) -> Result<()> {
        self.call_process(process, "CloseStdin", json!({}), Some(PATIENCE)).await
    }

    /// Asks a process to end. What it wrote is told, though something holds its output open. One that has ended is fine.
    pub async fn let_go(&self, process: &EnvdProcess) -> Result<()> {
        let message = json!({ "signal": "SIGNAL_SIGTERM" });
        match self.call_process(process, "SendSignal", message, Some(PATIENCE)).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            sent => sent,
        }
    }

    /// Changes the size of a terminal.
    pub async fn resize(&self, process: &EnvdProcess, size: PtySize) -> Result<()> {
        let message = json!({ "pty": { "size": { "cols": size.cols, "rows": size.rows } } });
        self.call_process(process, "Update", message, Some(PATIENCE)).await
    }

    async fn call_process(
        &self,
        process: &EnvdProcess,
        method: &str,
        mut message: Value,
        patience: Option<Duration>,
    ) -> Result<()> {
        message["process"] = json!({ "tag": process.tag });
        match self.call(method, &message, patience).await {
            // Many versions of envd do not find a tag behind another one, but list it.
            Err(missing) if missing.kind() == ErrorKind::NotFound => {
                let pid = self.find_process(&process.tag).await?.ok_or(missing)?;
                message["process"] = json!({ "pid": pid });
                self.call(method, &message, patience).await.map(drop)
            }
            called => called.map(drop),
        }
    }

    /// Returns the number of the process that was started with a tag, if it runs.
    pub async fn find_process(&self, tag: &str) -> Result<Option<u32>> {
        let answer = whole(self.call("List", &json!({}), Some(PATIENCE)).await?).await?;
        let list: EnvdProcessList = serde_json::from_slice(&answer).map_err(|error| {
            Error::new(ErrorKind::Unavailable, "the sandbox's answer can't be read").with_source(error)
        })?;
        Ok(list.processes.into_iter().find(|process| process.tag == tag).map(|process| process.pid))
    }
}
