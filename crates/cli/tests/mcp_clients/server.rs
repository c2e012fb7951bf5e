//! A home for the tests, and `eyot mcp --http` in it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use rustix::process::{Pid, Signal, kill_process};

use super::{ensure, program};

/// The program.
pub const EYOT: &str = env!("CARGO_BIN_EXE_eyot");
/// The token of the servers.
pub const TOKEN: &str = "the-token-of-these-tests";

/// A bound for waits that must not hang.
const HANG: Duration = Duration::from_secs(120);

/// A state folder and a home.
pub struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Result<Self, Failed> {
        Ok(Self { folder: tempfile::Builder::new().prefix("eyot-mcp-").tempdir()? })
    }

    /// Runs a command in this home.
    pub fn around<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("HOME", self.folder.path()).env("EYOT_STATE", self.folder.path().join("state"))
    }

    /// Waits until no sandbox is left.
    pub fn until_empty(&self) -> Result<(), Failed> {
        let began = Instant::now();
        loop {
            let listed = self.around(program(EYOT.as_ref()).args(["ls", "-q"])).output()?;
            if listed.status.success() && listed.stdout.is_empty() {
                return Ok(());
            }
            let left = String::from_utf8_lossy(&listed.stdout).into_owned();
            ensure(began.elapsed() < HANG, format!("sandboxes are left: {left}"))?;
            sleep(Duration::from_millis(50));
        }
    }
}

/// A server by HTTP.
pub struct Http {
    child: Child,
    /// The server's address.
    pub url: String,
}

impl Http {
    pub fn start(home: &Home) -> Result<Self, Failed> {
        let mut command = program(EYOT.as_ref());
        home.around(command.args(["mcp", "--http", "127.0.0.1:0"])).env("EYOT_MCP_TOKEN", TOKEN);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let stderr = child.stderr.take().ok_or("no standard error")?;
        BufReader::new(stderr).read_line(&mut line)?;
        let url =
            line.trim().strip_prefix("eyot: MCP at ").ok_or_else(|| format!("it says: {line}"))?.to_owned();
        Ok(Self { child, url })
    }

    /// Stops it as a service manager would.
    pub fn stop(mut self) -> Result<(), Failed> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).ok_or("no process")?;
        kill_process(pid, Signal::TERM)?;
        let status = self.child.wait()?;
        ensure(status.code() == Some(143), format!("{status}"))
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        // Only a test that failed has left it running.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
