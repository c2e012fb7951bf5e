//! A machine for one test: an empty state folder, an empty home, and only the environment that the
//! test sets. When it is dropped, its sandboxes are removed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The time after which a command that should have ended is killed, so that its test fails and the others go on.
const DEADLINE: Duration = Duration::from_secs(300);

pub struct Machine {
    folder: TempDir,
}

impl Machine {
    pub fn new() -> Self {
        Self { folder: tempfile::Builder::new().prefix("eyot-cli-").tempdir().unwrap() }
    }

    /// Makes a machine with a sandbox called `box`.
    pub fn with_sandbox() -> Self {
        let machine = Self::new();
        machine.create("box");
        machine
    }

    pub fn create(&self, name: &str) {
        assert_eq!(self.run(&["create", "--name", name]).success(), format!("{name}\n"));
    }

    /// Returns a path on the host that only this test uses.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn path_text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        self.path_text(name)
    }

    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// Returns the command `eyot` with these arguments and no standard input.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).env_clear().stdin(Stdio::null());
        command.env("PATH", "/usr/bin:/bin").env("HOME", self.path("home")).env("EYOT_STATE", self.state());
        command
    }

    /// Returns the same command, run by another program: `program` has that and its arguments.
    pub fn command_by(&self, program: &[&str], arguments: &[&str]) -> Command {
        let inner = self.command(arguments);
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(inner.get_program()).args(inner.get_args());
        command.env_clear().stdin(Stdio::null());
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(end_of(self.spawn(&mut self.command(arguments))))
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = self.spawn(self.command(arguments).stdin(Stdio::piped()));
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        // On a thread of its own: the command may answer before it has read everything, or not read at all.
        let writing = std::thread::spawn(move || stdin.write_all(&input));
        let output = end_of(child);
        drop(writing.join().unwrap());
        Ran::from(output)
    }

    /// Starts a command, with pipes for its output.
    pub fn spawn(&self, command: &mut Command) -> Child {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Returns the first line of what a command prints, which must then end in silence, as `head -1`
    /// makes it.
    #[track_caller]
    pub fn first_line_of(&self, mut child: Child) -> String {
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let id = Pid::from_child(&child);
        let (ended, end) = std::sync::mpsc::channel();
        std::thread::spawn(move || ended.send(child.wait_with_output().unwrap()));
        let output = end.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| {
            kill_process(id, Signal::KILL).unwrap();
            panic!("the command runs on although nobody reads it");
        });
        let ran = Ran::from(output);
        // A shell says the same of a program that a closed pipe has ended.
        assert_eq!(
            (ran.code, ran.stderr.contains("hint") || ran.stderr.contains("pipe")),
            (Some(141), false),
            "{ran:?}"
        );
        line
    }

    /// Asserts that no sandbox is listed.
    pub fn assert_empty(&self) {
        assert_eq!(self.run(&["ls", "-q"]).success(), "");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if Path::new(&self.state()).exists() {
            let removed = self.run(&["-q", "rm", "--all"]);
            if !std::thread::panicking() {
                removed.success();
            }
        }
    }
}

/// The result of a call.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { code: output.status.code(), stdout: output.stdout, stderr }
    }
}

impl Ran {
    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// Returns standard output. The call must have exited with 0, without any complaint.
    #[track_caller]
    pub fn success(&self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self.text()
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the pool and the name of the record that was printed, or of the first one.
    #[track_caller]
    pub fn pool_and_name(&self) -> (serde_json::Value, serde_json::Value) {
        let printed = self.json();
        let record = printed.get(0).unwrap_or(&printed);
        (record["pool"].clone(), record["name"].clone())
    }

    /// Returns standard error. The call must have failed with this code: one sentence, at most one
    /// hint, no backtrace.
    #[track_caller]
    pub fn failure(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        let lines: Vec<&str> = self.stderr.lines().collect();
        assert!(matches!(lines.len(), 1 | 2), "{self:?}");
        assert!(lines[0].starts_with("eyot: "), "{self:?}");
        assert!(lines.get(1).is_none_or(|line| line.starts_with("hint: ")), "{self:?}");
        &self.stderr
    }
}

/// Returns the `eyot` to test: that of the build, or a copy of it that another user can reach.
fn program() -> std::ffi::OsString {
    std::env::var_os("EYOT_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_eyot").into())
}

/// Waits for a command's end, and kills it at the deadline.
fn end_of(child: Child) -> Output {
    let pid = Pid::from_child(&child);
    let (ended, end) = std::sync::mpsc::channel::<()>();
    let watcher = std::thread::spawn(move || {
        if end.recv_timeout(DEADLINE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            eprintln!("killed: it ran for {} s", DEADLINE.as_secs());
            kill_process(pid, Signal::KILL).unwrap();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    watcher.join().unwrap();
    output
}
