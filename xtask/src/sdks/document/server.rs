//! `eyot serve` on native, with a key and a sandbox `fuzzed`, on a state folder of its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

use super::super::Ground;
use crate::log;
use crate::process::output;

/// A server, which ends with this, and its sandboxes with it.
pub(super) struct Server {
    process: Child,
    eyot: PathBuf,
    /// A folder for files of the run.
    pub(super) folder: PathBuf,
    /// `http://127.0.0.1:PORT`
    pub(super) url: String,
    /// Opens the pool `default`.
    pub(super) key: String,
}

impl Server {
    /// Starts one.
    pub(super) fn start(ground: &Ground) -> Result<Self, String> {
        let folder = ground.temporary().join(format!("eyot-document-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
        let eyot = |arguments: &[&str]| -> Command {
            let mut command = ground.program(&ground.eyot);
            command.arg("--state").arg(folder.join("state")).args(arguments);
            command
        };
        let key = output(&mut eyot(&["--json", "keys", "create", "document", "--pool", "default"]))?;
        let key: serde_json::Value = serde_json::from_str(&key).map_err(|error| error.to_string())?;
        let key = key["secret"].as_str().ok_or("`eyot keys create` told no secret")?.to_owned();
        let mut command = eyot(&["serve", "--listen", "127.0.0.1:0"]);
        let mut process =
            command.stderr(Stdio::piped()).spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let said = process.stderr.take().ok_or("the server has no standard error")?;
        let mut server = Self { process, eyot: ground.eyot.clone(), url: String::new(), key, folder };
        server.url = announced(said)?;
        server.make_sandbox(ground)?;
        Ok(server)
    }

    fn make_sandbox(&self, ground: &Ground) -> Result<(), String> {
        let mut command = ground.program(&self.eyot);
        command.env("EYOT_SERVER", &self.url).env("EYOT_API_KEY", &self.key);
        output(command.args(["--quiet", "create", "--name", "fuzzed", "--ttl", "1h"])).map(drop)
    }

    /// Returns an error if the server has ended.
    pub(super) fn still_runs(&mut self) -> Result<(), String> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("the server has ended: {status}")),
            Err(error) => Err(format!("look after the server: {error}")),
        }
    }
}

/// The address that a server says it is at. What it says afterwards is passed on.
fn announced(said: ChildStderr) -> Result<String, String> {
    let mut said = BufReader::new(said);
    let mut line = String::new();
    while said.read_line(&mut line).map_err(|error| format!("read what the server says: {error}"))? > 0 {
        if let Some((_, url)) = line.trim_end().split_once("serving at ") {
            let url = url.to_owned();
            let log = log::copy().map_err(|error| error.to_string())?;
            std::thread::spawn(move || pass_on(&mut said, log));
            return Ok(url);
        }
        line.clear();
    }
    Err("the server ended before it said where it is".to_owned())
}

fn pass_on(said: &mut impl Read, log: Option<File>) {
    let copied = match log {
        Some(mut log) => std::io::copy(said, &mut log),
        None => std::io::copy(said, &mut std::io::stderr()),
    };
    if let Err(error) = copied {
        eprintln!("xtask: what the server says is lost: {error}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.process.kill().and_then(|()| self.process.wait()) {
            eprintln!("xtask: end the server: {error}");
        }
        let mut remove = Command::new(&self.eyot);
        remove.arg("--state").arg(self.folder.join("state")).args(["--quiet", "rm", "--all"]);
        if let Err(error) = output(&mut remove) {
            eprintln!("xtask: remove the server's sandboxes: {error}");
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("xtask: remove {}: {error}", self.folder.display());
        }
    }
}
