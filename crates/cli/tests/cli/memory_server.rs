//! A server over memory, for the tests of one machine.

use std::io::{BufRead, BufReader};
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use super::machine::{Machine, Ran};

/// A machine with a server of sandboxes in memory. When it is dropped, the server ends, and they with it.
pub struct MemoryServer {
    server: ServerProcess,
    pub machine: Machine,
    pub url: String,
}

/// A server that ends when it is dropped.
struct ServerProcess(Child);

impl Drop for ServerProcess {
    fn drop(&mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        self.0.wait().unwrap();
    }
}

impl MemoryServer {
    /// Starts the server, with a sandbox called `web` in the pool `default`.
    pub fn new() -> Self {
        let machine = Machine::new();
        let url = format!("unix:{}", machine.path_text("memory.sock"));
        let serve = ["--provider", "memory", "serve", "--no-keys", "--listen", url.as_str()];
        let mut server = machine.spawn(&mut machine.command(&serve));
        let mut said = String::new();
        BufReader::new(server.stderr.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("serving at"), "{said}");
        let served = Self { server: ServerProcess(server), machine, url };
        assert_eq!(served.there(&["create", "--name", "web"]).success(), "web\n");
        served
    }

    /// Runs `eyot` with the server.
    pub fn there(&self, arguments: &[&str]) -> Ran {
        self.machine.run(&[&["--server", self.url.as_str()], arguments].concat())
    }

    /// Runs a script in the server's sandbox `web`.
    #[track_caller]
    pub fn script(&self, script: &str) -> String {
        self.there(&["exec", "web", "--", "sh", "-c", script]).success()
    }

    /// Ends the server, and returns the machine.
    pub fn end(self) -> Machine {
        drop(self.server);
        self.machine
    }
}
