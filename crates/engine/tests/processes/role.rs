//! A second process: which role it plays, how it is started, heard and ended.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

const ROLE: &str = "EYOT_TEST_ROLE";

/// Plays the role that this process was started in, if it was.
pub fn played() -> bool {
    let Ok(role) = std::env::var(ROLE) else { return false };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match role.as_str() {
        "append" => super::events::append_role(&arguments),
        "take" => super::store::take_role(&arguments),
        "churn" => super::store::churn_role(&arguments),
        "keep" => super::store::keep_role(&arguments),
        "adopt" => super::store::adopt_role(&arguments),
        other => panic!("no role is called `{other}`"),
    }
    true
}

/// Says a line to whoever started us, at once.
pub fn say(line: impl std::fmt::Display) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).unwrap();
}

/// A process in a role; killed when it is dropped.
pub struct Actor {
    child: Child,
    pub says: Lines<BufReader<ChildStdout>>,
}

impl Actor {
    pub fn start(role: &str, folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(ROLE, role).arg(folder).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let says = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, says }
    }

    /// The next line it says.
    pub fn hear(&mut self) -> String {
        self.says.next().expect("it says something").unwrap()
    }

    /// SIGKILL, and what it had said by then.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.says.by_ref().map(Result::unwrap).collect()
    }

    /// Returns what it says to its end, which must be a good one.
    pub fn finish(mut self) -> Vec<String> {
        let said = self.says.by_ref().map(Result::unwrap).collect();
        assert!(self.child.wait().unwrap().success());
        said
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // Most have ended by now, and then there is nothing to kill.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
