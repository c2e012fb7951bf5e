//! One sandbox of the stand-in: a native one, with the terminals and sessions of the toolbox in it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use axum::response::Response;
use eyot::{
    Bytes, Command, ExecRequest, Execution, ExecutionEvent, ExitStatus, Result, SandboxDriver, SandboxId,
    SandboxPath, SandboxProvider,
};
use eyot_native::NativeProvider;
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::machines::refusal;
use super::sessions::StandInSession;
use super::terminal::StandInTerminal;

/// The home of the user of commands.
pub const HOME: &str = "/root";

/// One sandbox.
pub struct Machine {
    pub id: String,
    pub name: String,
    pub blocks_network: bool,
    asked: Value,
    created_at: String,
    labels: Mutex<BTreeMap<String, String>>,
    state: Mutex<String>,
    inside: Mutex<Option<(SandboxId, Arc<dyn SandboxDriver>)>>,
    pub terminals: Mutex<HashMap<String, Arc<StandInTerminal>>>,
    pub sessions: Mutex<HashMap<String, Arc<StandInSession>>>,
}

/// The output of a command that has ended, and its exit code.
#[derive(Default)]
pub struct CommandOutput {
    pub stdout: Vec<u8>,
    /// Both streams as they came.
    pub both: Vec<u8>,
    pub code: i32,
}

pub fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Machine {
    pub fn new(
        id: String,
        name: String,
        labels: BTreeMap<String, String>,
        asked: &Value,
        created_at: String,
    ) -> Self {
        Self {
            id,
            name,
            blocks_network: asked["networkBlockAll"] == true,
            asked: asked.clone(),
            created_at,
            labels: Mutex::new(labels),
            state: Mutex::new("creating".to_owned()),
            inside: Mutex::default(),
            terminals: Mutex::default(),
            sessions: Mutex::default(),
        }
    }

    pub fn is(&self, state: &str) -> bool {
        *locked(&self.state) == state
    }

    pub fn set(&self, state: &str) {
        *locked(&self.state) = state.to_owned();
    }

    /// Begins a change from a state, or from every one in which nothing is under way. Returns whether it may.
    pub fn begin(&self, from: &str, during: &str) -> bool {
        let mut state = locked(&self.state);
        let may = if from.is_empty() {
            ["started", "stopped", "error"].contains(&state.as_str())
        } else {
            *state == from
        };
        if may {
            *state = during.to_owned();
        }
        may
    }

    pub fn set_labels(&self, labels: BTreeMap<String, String>) {
        *locked(&self.labels) = labels;
    }

    pub fn has_labels(&self, wanted: &BTreeMap<String, String>) -> bool {
        let labels = locked(&self.labels);
        wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
    }

    /// Uses a native sandbox that has just been made, or woken.
    pub async fn take_over(&self, id: SandboxId, native: &NativeProvider) {
        let driver = native.open(id.as_str()).await.expect("a native sandbox that runs").driver;
        *locked(&self.inside) = Some((id, driver));
    }

    pub fn native_id(&self) -> Option<SandboxId> {
        locked(&self.inside).as_ref().map(|inside| inside.0.clone())
    }

    /// Returns the variables that every command has.
    pub fn variables(&self) -> BTreeMap<String, String> {
        serde_json::from_value(self.asked["env"].clone()).unwrap_or_default()
    }

    /// Returns the variables of a command.
    pub fn with_variables(&self, of_command: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all = self.variables();
        all.extend(of_command);
        all
    }

    /// Returns the driver of the native sandbox. One that does not run has no toolbox.
    pub fn driver(&self) -> Result<Arc<dyn SandboxDriver>, Response> {
        let stopped = || refusal(StatusCode::BAD_REQUEST, "sandbox is not running");
        let inside = locked(&self.inside);
        inside.as_ref().filter(|_| self.is("started")).map(|inside| Arc::clone(&inside.1)).ok_or_else(stopped)
    }

    pub async fn end_terminals(&self) {
        let ended = std::mem::take(&mut *locked(&self.terminals));
        for terminal in ended.values() {
            terminal.kill().await;
        }
    }

    /// Ends the connections to every terminal, whose programs go on.
    pub fn cut_terminals(&self) {
        locked(&self.terminals).values().for_each(|terminal| terminal.cut());
    }

    pub fn count_terminals(&self) -> usize {
        locked(&self.terminals).len()
    }

    pub fn described(&self) -> Value {
        let or = |field: &str, usual: Value| match &self.asked[field] {
            Value::Null => usual,
            value => value.clone(),
        };
        json!({
            "id": self.id, "name": self.name, "organizationId": "org", "target": or("target", json!("us")),
            "user": "root", "env": or("env", json!({})), "labels": *locked(&self.labels),
            "public": false, "networkBlockAll": self.blocks_network,
            "snapshot": or("snapshot", json!("stand-in")), "cpu": 1, "gpu": 0, "memory": 1, "disk": 3,
            "state": *locked(&self.state), "createdAt": self.created_at, "updatedAt": self.created_at,
            "autoStopInterval": or("autoStopInterval", json!(15)),
            "autoArchiveInterval": or("autoArchiveInterval", json!(10080)),
            "autoDeleteInterval": or("autoDeleteInterval", json!(-1)),
            "kvm": false, "volumes": [],
        })
    }
}

/// Starts a command.
pub async fn start(
    driver: &Arc<dyn SandboxDriver>,
    argv: &[&str],
    cwd: &str,
    env: BTreeMap<String, String>,
    stdin: bool,
) -> Result<Execution> {
    let request = ExecRequest {
        command: Command::Argv(argv.iter().map(|argument| (*argument).to_owned()).collect()),
        cwd: SandboxPath::parse(cwd)?.into(),
        env,
        user: None,
        stdin,
        pty: None,
    };
    driver.exec(request).await
}

/// Runs a command, with input, to its end.
pub async fn run(
    driver: &Arc<dyn SandboxDriver>,
    argv: &[&str],
    cwd: &str,
    env: BTreeMap<String, String>,
    input: Option<Bytes>,
) -> Result<CommandOutput> {
    let Execution { mut events, input: mut keyboard, control: _control } =
        start(driver, argv, cwd, env, input.is_some()).await?;
    if let (Some(keyboard), Some(input)) = (&mut keyboard, input) {
        keyboard.write(input).await?;
    }
    drop(keyboard);
    let mut output = CommandOutput::default();
    while let Some(event) = events.next().await {
        match event? {
            ExecutionEvent::Stdout(bytes) => {
                output.stdout.extend_from_slice(&bytes);
                output.both.extend_from_slice(&bytes);
            }
            ExecutionEvent::Stderr(bytes) => output.both.extend_from_slice(&bytes),
            ExecutionEvent::Exit { status, .. } => {
                output.code = match status {
                    ExitStatus::Exited(code) => code,
                    _ => -1,
                };
            }
        }
    }
    Ok(output)
}
