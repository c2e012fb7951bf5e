//! Every surface over sandboxes in memory: a server, the command line with it, the tools of every toolset, pools, MCP.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use eyot_tools::{WorkspaceTool, toolset_names};
use serde_json::{Value, json};

use super::machine::{Machine, Ran};
use super::memory_server::MemoryServer;

/// The calls of one toolset in one sandbox: the tool, its arguments, and what a model then reads in the answer.
type Calls = &'static [(&'static str, &'static str, &'static str)];

/// The longest wait for the output of a process.
const PATIENCE: Duration = Duration::from_secs(20);

const POOL: Calls = &[
    ("shell", r#"{"command":"echo $((6*7)) > f && cat f && id -un"}"#, r#""stdout":"42\nuser\n""#),
    ("read_file", r#"{"path":"f"}"#, r#""content":"42\n""#),
    ("write_file", r#"{"path":"d/g","content":"one\n"}"#, r#""ok":true"#),
    ("glob", r#"{"pattern":"**/*"}"#, r#""d/g""#),
    ("sandbox_create", r#"{"sandbox":"other"}"#, r#""created":true"#),
    ("sandbox_list", "{}", r#""name":"other""#),
    (
        "transfer",
        r#"{"from_sandbox":"default","from_path":"d","to_sandbox":"other","to_path":"x","recursive":true}"#,
        r#""files":1"#,
    ),
    ("browse", r#"{"port":8000}"#, "memory does not support browse"),
];

const CODING: Calls = &[
    ("write", r#"{"path":"a.txt","content":"one\ntwo\n"}"#, "wrote 8 bytes"),
    ("read", r#"{"path":"a.txt"}"#, "one\ntwo"),
    ("edit", r#"{"path":"a.txt","oldText":"two","newText":"three"}"#, "Successfully edited"),
    ("bash", r#"{"command":"cat a.txt | sort -r"}"#, "three\none"),
    ("grep", r#"{"pattern":"^thr"}"#, "a.txt:2:three"),
    ("glob", r#"{"pattern":"*.txt"}"#, "a.txt"),
];

const ANTHROPIC: Calls = &[
    ("bash", r#"{"command":"cd /tmp; X=5; echo $X"}"#, "5"),
    ("bash", r#"{"command":"pwd; echo $X"}"#, "/tmp\n5"),
    ("bash", r#"{"restart":true}"#, "restarted"),
    (
        "str_replace_based_edit_tool",
        r#"{"command":"create","path":"/home/user/b.txt","file_text":"a\nb\n"}"#,
        "created",
    ),
    (
        "str_replace_based_edit_tool",
        r#"{"command":"str_replace","path":"/home/user/b.txt","old_str":"b","new_str":"c"}"#,
        "has been edited",
    ),
    ("str_replace_based_edit_tool", r#"{"command":"view","path":"/home/user/b.txt"}"#, "2\tc"),
];

const WORKSPACE: Calls = &[
    ("exec_command", r#"{"command":"tr","args":["a-z","A-Z"],"input":"hi"}"#, "HI"),
    ("write_file", r#"{"path":"w.txt","content":"w"}"#, "Wrote w.txt"),
    ("read_file", r#"{"path":"w.txt"}"#, r#""content":"w""#),
    ("list_files", "{}", "w.txt"),
];

const CHECKPOINTS: Calls = &[
    ("checkpoint", r#"{"name":"kept"}"#, r#"{"checkpoint":"kept"}"#),
    ("diff", "{}", r#"{"changes":[]}"#),
    ("restore", r#"{"checkpoint":"kept"}"#, r#"{"ok":true}"#),
];

/// The tools of `workspace` that are asked for. Those of ports are refused, as there are none.
const PROCESSES: Calls = &[
    ("start_process", r#"{"command":"sh","args":["-c","echo begun; sleep 600"]}"#, "p1"),
    ("list_processes", "{}", "p1"),
    ("read_process_logs", r#"{"processId":"p1"}"#, "begun"),
    ("stop_process", r#"{"processId":"p1"}"#, "p1"),
];

#[track_caller]
fn call_all(served: &MemoryServer, toolset: &str, calls: Calls) {
    for (tool, input, read) in calls {
        let answer = served.there(&["call", toolset, tool, input, "--pool", toolset]);
        assert!(answer.text().contains(read), "{toolset} {tool}: {answer:?}");
        assert_eq!(answer.code, Some(i32::from(read.contains("does not support"))), "{tool}: {answer:?}");
    }
}

#[test]
fn every_tool_of_every_toolset_works_in_memory() {
    let served = MemoryServer::new();
    let toolsets = [
        ("pool", POOL),
        ("coding", CODING),
        ("workspace", WORKSPACE),
        ("anthropic", ANTHROPIC),
        ("checkpoints", CHECKPOINTS),
    ];
    let named: BTreeSet<&str> = toolsets.iter().map(|(name, _)| *name).collect();
    assert_eq!(named, toolset_names().into_iter().collect());
    for (toolset, calls) in toolsets {
        let declared = served.machine.run(&["tools", "--toolset", toolset, "--format", "mcp"]).json();
        let declared: BTreeSet<&str> =
            declared.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(calls.iter().map(|(tool, ..)| *tool).collect::<BTreeSet<_>>(), declared, "{toolset}");
        call_all(&served, toolset, calls);
    }
}

#[test]
fn inspect_says_that_commands_in_memory_are_interpreted() {
    let served = MemoryServer::new();
    let page = served.there(&["inspect", "web"]).success();
    assert!(page.contains("  commands         interpreted by Eyot itself: none is a process\n"), "{page}");
    assert!(!page.contains("host users") && !page.contains("shared with the host"), "{page}");
}

#[test]
fn the_tools_of_processes_work_in_memory_and_those_of_ports_are_refused() {
    let machine = Machine::new();
    let asked: Vec<&str> = PROCESSES.iter().map(|(tool, ..)| *tool).collect();
    let options = json!({ "allow": asked }).to_string();
    let words = ["--provider", "memory", "mcp", "--toolset", "workspace", "--workspace-options"];
    let mut session = Session::begin(&machine, &[&words[..], &[&options]].concat());
    for (tool, input, read) in PROCESSES {
        let arguments: Value = serde_json::from_str(input).unwrap();
        let has_it = |answer: &Value| answer["content"][0]["text"].as_str().unwrap().contains(read);
        let asked = json!({ "name": tool, "arguments": arguments });
        let began = Instant::now();
        let mut answer = session.ask("tools/call", asked.clone());
        // The log is empty until the process has printed something.
        while *tool == "read_process_logs" && !has_it(&answer) && began.elapsed() < PATIENCE {
            answer = session.ask("tools/call", asked.clone());
        }
        assert!(has_it(&answer), "{tool}: {answer}");
        assert_ne!(answer["isError"], true, "{tool}: {answer}");
    }
    assert_eq!(session.end(), Some(0));
    let ports = json!({ "allow": [WorkspaceTool::ListPorts], "ports": [80] }).to_string();
    let refused = machine.run(&[&words[..], &[&ports]].concat());
    assert!(refused.code != Some(0) && refused.stderr.contains("does not support"), "{refused:?}");
}

#[test]
fn commands_files_and_processes_work_over_a_server_in_memory() {
    let served = MemoryServer::new();
    let ran = served.there(&[
        "exec",
        "web",
        "-e",
        "A=b",
        "-w",
        "/tmp",
        "--",
        "sh",
        "-c",
        "echo $A; pwd >&2; exit 3",
    ]);
    assert_eq!((ran.code, ran.text().as_str(), ran.stderr.as_str()), (Some(3), "b\n", "/tmp\n"));
    assert_eq!(served.there(&["exec", "web", "--timeout", "200ms", "--", "sleep", "60"]).code, Some(124));
    let input = served
        .machine
        .run_with_input(&["--server", &served.url, "exec", "-i", "web", "--", "sort"], b"b\na\n");
    assert_eq!(input.success(), "a\nb\n");

    served.there(&["write", "web", "d/f", "--content", "hello"]).success();
    assert_eq!(served.there(&["read", "web", "d/f"]).success(), "hello");
    assert_eq!(served.there(&["glob", "web", "**/f"]).success(), "/workspace/d/f\n");
    assert_eq!(served.there(&["grep", "web", "hel+o"]).success(), "/workspace/d/f:1:hello\n");
    served.machine.write("tree/a/z", "from the host");
    let (up, down) = (served.machine.path_text("tree"), served.machine.path_text("down"));
    served.there(&["cp", &up, "web:tree"]).success();
    served.there(&["cp", "web:tree", &down]).success();
    assert_eq!(std::fs::read_to_string(served.machine.path("down/a/z")).unwrap(), "from the host");

    assert_eq!(served.there(&["start", "web", "--", "sh", "-c", "echo begun; sleep 600"]).success(), "p1\n");
    assert!(served.there(&["ps", "web"]).success().contains("running"));
    let refused = served.there(&["kill", "web", "p1"]);
    assert!(refused.failure(125).contains("hint: `--tree` kills it"), "{refused:?}");
    served.there(&["kill", "--tree", "web", "p1"]).success();
    assert_eq!(served.there(&["wait", "web", "p1"]).code, Some(137));
    assert_eq!(served.there(&["logs", "web", "p1"]).success(), "begun\n");

    served.there(&["sleep", "web"]).success();
    assert_eq!(served.there(&["exec", "web", "--", "cat", "d/f"]).success(), "hello");
    let facts = served.there(&["--json", "inspect", "web"]).json();
    assert_eq!((&facts["provider"], &facts["status"]), (&json!("memory"), &json!("running")));
    assert!(served.there(&["events"]).success().contains("exec_ended"));
    served.there(&["rm", "web"]).success();
    assert_eq!(served.there(&["ls", "-q"]).success(), "");
}

#[test]
fn what_memory_has_not_is_refused_by_its_name_and_makes_nothing() {
    let served = MemoryServer::new();
    let before = served.there(&["ls", "-q"]).success();
    for words in [
        &["create", "--image", "debian", "x"][..],
        &["create", "--net", "egress", "x"],
        &["create", "--mount", "/tmp:/mnt", "x"],
        &["exec", "web", "--user", "root", "--", "id"],
        &["dial", "web", "80"],
        &["browse", "web", "80"],
        &["preview", "web", "80"],
        &["net", "web"],
        &["image", "pull", "debian"],
    ] {
        let refused = served.there(words);
        let said = refused.failure(125);
        assert!(said.contains("memory does not support") && said.contains("hint: "), "{words:?}: {said}");
    }
    assert_eq!(served.there(&["ls", "-q"]).success(), before);
}

#[test]
fn a_pool_in_memory_makes_lists_and_removes_its_sandboxes() {
    let served = MemoryServer::new();
    assert_eq!(served.there(&["pool", "create", "p", "a"]).success(), "a\n");
    served.there(&["call", "pool", "shell", r#"{"sandbox":"b","command":"true"}"#, "--pool", "p"]).success();
    let listed = served.there(&["--json", "pool", "ls", "p"]).json();
    let names: Vec<&Value> = listed.as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    served.there(&["write", "p/a", "f", "--content", "x"]).success();
    assert_eq!(served.there(&["transfer", "--pool", "p", "a:f", "c:f"]).success(), "1 file, 1 bytes\n");
    assert_eq!(served.there(&["read", "p/c", "f"]).success(), "x");
    served.there(&["pool", "rm", "p"]).success();
    assert_eq!(served.there(&["pool", "ls", "-q"]).success(), "default\n");
}

#[test]
fn an_mcp_client_has_the_tools_in_memory_by_itself_and_over_a_server() {
    let served = MemoryServer::new();
    for words in [&["--provider", "memory", "mcp"][..], &["--server", &served.url, "mcp", "--pool", "mcp"]] {
        let mut session = Session::begin(&served.machine, words);
        let tools = session.ask("tools/list", json!({}));
        assert!(tools["tools"].as_array().unwrap().len() > 5, "{tools}");
        for (line, stdout) in [("echo kept > f", ""), ("cat f; id -un", "kept\nuser\n")] {
            let answer =
                session.ask("tools/call", json!({ "name": "shell", "arguments": { "command": line } }));
            assert_eq!(answer["structuredContent"]["stdout"], stdout, "{words:?}: {answer}");
        }
        assert_eq!(session.end(), Some(0));
    }
}

#[test]
fn the_mcp_of_a_server_has_the_tools_in_memory() {
    let served = MemoryServer::new();
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let begun =
        post(&served, "", &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    let session = begun.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id:"));
    let session = format!("{}\r\n", session.unwrap_or_else(|| panic!("{begun}")));
    post(&served, &session, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let params = json!({ "name": "shell", "arguments": { "command": "echo $((6*7)); id -un" } });
    let said = post(
        &served,
        &session,
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }),
    );
    assert!(said.contains(r#""stdout":"42\nuser\n""#), "{said}");
}

/// Sends a message to the server's MCP, and returns the whole answer, head and body.
fn post(served: &MemoryServer, headers: &str, message: &Value) -> String {
    let mut stream = UnixStream::connect(served.url.strip_prefix("unix:").unwrap()).unwrap();
    let body = message.to_string();
    let accept = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
    let head = format!(
        "{accept}{headers}Host: localhost\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    write!(stream, "POST /mcp HTTP/1.1\r\n{head}\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_sandbox_in_the_memory_of_one_process_is_its_alone_as_long_as_it_runs() {
    let served = MemoryServer::new();
    served.there(&["write", "web", "f", "--content", "mine"]).success();
    served.there(&["create", "api"]).success();
    let is_refused = |ran: Ran| {
        let said = format!("{}{}", ran.text(), ran.stderr);
        assert!(ran.code != Some(0) && said.contains("in the memory of process"), "{ran:?}");
    };
    // Native, and other processes over memory, of the same state folder.
    is_refused(served.machine.run(&["pool", "create", "default", "web"]));
    let taken = served.machine.run(&["create", "web"]);
    assert!(taken.failure(125).contains("the name `web` is in use"), "{taken:?}");
    assert!(taken.stderr.contains("hint: the one of that name is in the memory of process"), "{taken:?}");
    let listed = served.machine.run(&["ls"]);
    assert!(listed.code == Some(0) && listed.stderr.contains(" and 1 more are in the memory"), "{listed:?}");
    let shell = r#"{"sandbox":"web","command":"ls"}"#;
    is_refused(served.machine.run(&["--provider", "memory", "call", "pool", "shell", shell]));
    let other = ["--provider", "memory", "call", "pool", "shell", r#"{"command":"ls"}"#, "--pool", "other"];
    served.machine.run(&other).success();
    assert_eq!(served.there(&["read", "web", "f"]).success(), "mine");

    // Its name is free once the process has ended.
    let machine = served.end();
    assert_eq!(machine.run(&["create", "web"]).success(), "web\n");
    assert_eq!(machine.run(&["exec", "web", "--", "ls"]).success(), "");
    let gone = machine.run(&["rm", "api"]);
    assert!(gone.failure(125).contains("there is no sandbox `api`"), "{gone:?}");
    machine.run(&["pool", "rm", "-f", "default"]).success();
}

/// A session of an MCP client with a program that it has started.
pub(super) struct Session {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    asked: u64,
}

impl Session {
    pub(super) fn begin(machine: &Machine, words: &[&str]) -> Self {
        let mut command = machine.command(words);
        let mut child = machine.spawn(command.stdin(Stdio::piped()));
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut session = Self { child, stdout, asked: 0 };
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        session.ask("initialize", params);
        session.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        session
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Asks, and returns the result.
    #[track_caller]
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params });
        self.send(&request);
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!((&answer["id"], answer.get("error")), (&json!(self.asked), None), "{answer}");
        answer["result"].clone()
    }

    /// Kills the server of the session.
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the client's side, and returns the exit code.
    pub(super) fn end(mut self) -> Option<i32> {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code()
    }
}
