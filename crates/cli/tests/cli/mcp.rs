//! `mcp` as a process: how it starts, what it prints, and that nothing is left however it ends.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::machine::{Machine, Ran};

struct Server {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
}

impl Server {
    /// Starts a server with a session in which a sandbox was used.
    fn in_use(machine: &Machine, arguments: &[&str]) -> Self {
        let mut command = machine.command(&[&["mcp"], arguments].concat());
        let mut child = machine.spawn(command.stdin(Stdio::piped()));
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self { child, stdout };
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        server.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        assert_eq!(server.receive()["result"]["serverInfo"]["name"], "eyot");
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!(server.shell("echo $((6*7)); echo kept > file"), "42\n");
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn begin(&mut self, line: &str) {
        let params = json!({ "name": "shell", "arguments": { "command": line, "timeout_ms": 600_000 } });
        self.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    }

    fn shell(&mut self, line: &str) -> String {
        self.begin(line);
        let answer = self.receive();
        answer["result"]["structuredContent"]["stdout"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end and returns the exit code. The output must have been protocol only.
    fn exit_code(mut self) -> Option<i32> {
        let mut line = String::new();
        while self.stdout.read_line(&mut line).unwrap() > 0 {
            serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
            line.clear();
        }
        self.child.wait().unwrap().code()
    }
}

#[test]
fn a_client_that_closes_stdin_ends_the_server_and_its_sandboxes() {
    let machine = Machine::new();
    let mut server = Server::in_use(&machine, &[]);
    assert_ne!(machine.run(&["ls", "-q"]).success(), "");
    drop(server.child.stdin.take());
    assert_eq!(server.exit_code(), Some(0));
    machine.assert_empty();
}

#[test]
fn a_signal_ends_it_in_the_middle_of_a_call_and_nothing_is_left() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let machine = Machine::new();
        let mut server = Server::in_use(&machine, &[]);
        server.begin("sleep 4242");
        server.signal(signal);
        assert_eq!(server.exit_code(), Some(code));
        machine.assert_empty();
    }
}

#[test]
fn sandboxes_are_made_as_the_flags_say() {
    let machine = Machine::new();
    machine.write("shared/note", "from outside");
    let mount = format!("{}:/mnt/in", machine.path_text("shared"));
    let mut server = Server::in_use(&machine, &["--mount", &mount, "-e", "GIVEN=yes"]);
    assert_eq!(server.shell("cat /mnt/in/note; echo; echo $GIVEN"), "from outside\nyes\n");
    drop(server.child.stdin.take());
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn a_folder_is_given_to_a_session_as_the_readme_does_or_where_commands_start() {
    let machine = Machine::new();
    let file = machine.write("project/there", "from the host\n");
    let folder = file.strip_suffix("/there").unwrap();
    let mount = format!("{folder}:/workspace:rw");
    let mut server = Server::in_use(&machine, &["--mount", &mount, "--net", "egress"]);
    assert_eq!(server.shell("cat /workspace/there"), "from the host\n");
    drop(server.child.stdin.take());
    assert_eq!(server.exit_code(), Some(0));
    let mut server = Server::in_use(&machine, &["--mount", &format!("{folder}:/home/user")]);
    assert_eq!(server.shell("cat there"), "from the host\n");
    drop(server.child.stdin.take());
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn what_can_not_be_served_is_a_usage_error_and_says_what_can() {
    let machine = Machine::new();
    let unknown = machine.run(&["mcp", "--toolset", "nope"]);
    assert!(unknown.failure(2).contains("`pool`"), "{unknown:?}");
    let clash = machine.run(&["mcp", "--toolset", "pool", "--toolset", "pool"]);
    let said = clash.failure(2);
    assert!(
        said.contains("the name is taken") && said.contains("`pool` has tools of the same name"),
        "{said}"
    );
    machine.run(&["mcp", "--name", "box"]).failure(2);
    let elsewhere = machine.command(&["mcp", "--mount", "./nope:/x"]).current_dir("/usr").output().unwrap();
    let elsewhere = Ran::from(elsewhere);
    assert_eq!(elsewhere.code, Some(2));
    assert!(elsewhere.stderr.contains("`./nope` of this host, from `/usr`: no such"), "{elsewhere:?}");
    machine.run(&["mcp", "--http", "nonsense"]).failure(2);
    let open = machine.run(&["mcp", "--http", "0.0.0.0:0"]);
    assert!(open.failure(2).contains("--token-file"), "{open:?}");
    let token = machine.write("token", "short\n");
    machine.run(&["mcp", "--http", "127.0.0.1:0", "--token-file", &token]).failure(2);
    assert_eq!(machine.run(&["mcp", "--token-file", &token]).code, Some(2));
    let mut short = machine.command(&["mcp", "--http", "127.0.0.1:0"]);
    let short = Ran::from(short.env("EYOT_MCP_TOKEN", "abc").output().unwrap());
    assert!(short.failure(2).contains("the variable EYOT_MCP_TOKEN: `token` must be"), "{short:?}");
}

#[test]
fn a_port_that_somebody_has_is_refused_with_the_option_that_names_another() {
    let machine = Machine::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    for (words, option) in
        [(["mcp", "--http", &taken], "--http"), (["serve", "--listen", &taken], "--listen")]
    {
        let ran = machine.run(&words);
        let said = ran.failure(125);
        assert!(said.contains(&format!("has this port: give {option} another one")), "{said}");
    }
}

#[test]
fn by_http_it_says_where_it_is_and_shows_a_token_that_it_made_up_once() {
    let machine = Machine::new();
    let mut child = machine.spawn(&mut machine.command(&["mcp", "--http", "0"]));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (place, token) = (lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap());
    assert!(place.starts_with("eyot: MCP at http://127.0.0.1:") && place.ends_with("/mcp"), "{place}");
    let token = token.rsplit(' ').next().unwrap();
    assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{token}");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(lines.next().is_none(), "it said more");
}

#[test]
fn the_help_has_the_lines_for_clients() {
    let help = Machine::new().run(&["mcp", "--help"]).success();
    for line in ["claude mcp add eyot -- eyot mcp", ".cursor/mcp.json", ".vscode/mcp.json", "--allow-origin"]
    {
        assert!(help.contains(line), "{line}: {help}");
    }
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("commands start [default: /home/user]"), "{help}");
    assert!(words.contains("in the folder in which the client starts eyot"), "{help}");
    assert!(!help.contains("--name") && !help.contains("--id "), "it shows what it refuses: {help}");
}
