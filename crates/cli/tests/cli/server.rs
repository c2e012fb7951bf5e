//! A real `eyot serve` with a key, and a minimal HTTP client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::machine::Machine;

pub struct Server {
    child: Child,
    pub address: String,
    pub key: String,
    log: Option<JoinHandle<String>>,
}

impl Server {
    /// Starts a server on a free port. `before` and `after` are arguments before and after `serve`.
    pub fn start(machine: &Machine, before: &[&str], after: &[&str], env: &[(&str, &str)]) -> Self {
        let arguments = [
            before,
            &["serve", "--metrics-key", "ours", "--metrics-key", "other", "--listen", "127.0.0.1:0"],
            after,
        ]
        .concat();
        let mut command = machine.command(&arguments);
        command.envs(env.iter().copied());
        Self::of(machine, command)
    }

    /// Starts a server by another program: see [`Machine::command_by`].
    pub fn start_by(machine: &Machine, program: &[&str]) -> Self {
        let serve = ["serve", "--metrics-key", "ours", "--metrics-key", "other", "--listen", "127.0.0.1:0"];
        let mut command = machine.command_by(program, &serve);
        // What is scarce is up to the test, and no quota is to run out before it.
        for quota in ["MEMORY_MIB", "DISK_MIB", "PROCESSES"] {
            command.env(format!("EYOT_POOL_{quota}"), "unlimited");
        }
        Self::of(machine, command)
    }

    fn of(machine: &Machine, command: Command) -> Self {
        let key = machine.run(&["keys", "create", "ours", "-q"]).text().trim().to_owned();
        Self::with_key(machine, command, key)
    }

    /// Another one on the same state folder, once this one has ended; the key is the same.
    pub fn restart(self, machine: &Machine) -> Self {
        self.restart_with(machine, &[])
    }

    /// The same with more variables.
    pub fn restart_with(self, machine: &Machine, env: &[(&str, &str)]) -> Self {
        let mut command = machine.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.envs(env.iter().copied());
        Self::with_key(machine, command, self.key.clone())
    }

    fn with_key(machine: &Machine, mut command: Command, key: String) -> Self {
        let mut child = machine.spawn(&mut command);
        let stderr = child.stderr.take().unwrap();
        let (told, told_to): (Sender<String>, Receiver<String>) = channel();
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            for line in BufReader::new(stderr).lines() {
                let line = line.unwrap();
                if let Some(address) = line.strip_prefix("eyot: serving at http://") {
                    drop(told.send(address.to_owned()));
                }
                log += &line;
                log.push('\n');
            }
            log
        });
        let address = told_to.recv().expect("it ended at once");
        Self { child, address, key, log: Some(log) }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn connect(&self) -> Connection {
        Connection::open(&self.address, &self.key)
    }

    /// Sends a request on a new connection and returns the answer.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut connection = self.connect();
        connection.send(method, path, body);
        connection.answer()
    }

    /// Creates a sandbox and returns its id.
    pub fn sandbox(&self) -> String {
        let (status, body) = self.ask("POST", "/v1/sandboxes", r#"{"spec":{}}"#);
        assert_eq!(status, 201, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["id"].as_str().unwrap().to_owned()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until the server takes no more connections.
    pub fn wait_until_closed(&self) {
        while TcpStream::connect(&self.address).is_ok() {
            std::thread::yield_now();
        }
    }

    /// Returns the server's exit code, and its whole output.
    pub fn ended(&mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        (code, self.log.take().unwrap().join().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A connection that stays open.
pub struct Connection {
    reader: BufReader<TcpStream>,
    key: String,
}

impl Connection {
    pub fn open(address: &str, key: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { reader: BufReader::new(stream), key: key.to_owned() }
    }

    pub fn send(&mut self, method: &str, path: &str, body: &str) {
        self.send_with(method, path, "", body);
    }

    /// The same with more headers, each with its line end.
    pub fn send_with(&mut self, method: &str, path: &str, headers: &str, body: &str) {
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}", self.key);
        let request = format!("{head}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
        self.reader.get_mut().write_all(request.as_bytes()).unwrap();
    }

    /// Returns the next line; `None`: the connection has ended.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        (self.reader.read_line(&mut line).unwrap_or(0) > 0).then_some(line)
    }

    /// Returns the status and the body of an answer with a length. An answer that breaks off has
    /// the status 0.
    pub fn answer(&mut self) -> (u16, String) {
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).unwrap_or(0) == 0 {
                return (0, String::new());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap();
            } else if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }
}

/// Returns a figure of `/metrics`.
pub fn figure(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}: {metrics}")).parse().unwrap()
}
