//! `--server`: a command prints the same about sandboxes with and without a server.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use eyot::{SandboxSpec, WorkspaceSpec};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::machine::{Machine, Ran};
use super::pool::create_by_provider;

/// The name of the sandbox, with and without a server.
const BOX: &str = "default/box";

/// A machine that serves its sandboxes, with one called `box` in the default pool.
struct Served {
    machine: Machine,
    server: Child,
    url: String,
    id: String,
}

impl Served {
    fn new() -> Self {
        let machine = Machine::new();
        let url = format!("unix:{}", machine.path_text("socket"));
        let serve = ["serve", "--no-keys", "--listen", url.as_str()];
        let mut server = machine.spawn(&mut machine.command(&serve));
        let mut said = String::new();
        BufReader::new(server.stderr.take().unwrap()).read_line(&mut said).unwrap();
        assert!(said.contains("serving at"), "{said}");
        let mut served = Self { machine, server, url, id: String::new() };
        assert_eq!(served.there(&["create", "--name", "box"]).success(), "box\n");
        served.id = served.there(&["ls", "-q"]).success().trim().to_owned();
        served
    }

    fn with_server<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        [&["--server", self.url.as_str()], arguments].concat()
    }

    /// Runs `eyot` over the server.
    fn there(&self, arguments: &[&str]) -> Ran {
        self.machine.run(&self.with_server(arguments))
    }

    /// Runs `eyot` without the server.
    fn here(&self, arguments: &[&str]) -> Ran {
        self.machine.run(arguments)
    }

    /// Runs `eyot` both ways and returns the result, which must be the same.
    #[track_caller]
    fn both(&self, arguments: &[&str]) -> Ran {
        let (there, here) = (self.there(arguments), self.here(arguments));
        let seen = |ran: &Ran| (ran.code, ran.text(), ran.stderr.clone());
        assert_eq!(seen(&there), seen(&here), "{arguments:?}");
        there
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        kill_process(Pid::from_child(&self.server), Signal::TERM).unwrap();
        self.server.wait().unwrap();
    }
}

#[test]
fn snapshots_forks_and_differences_say_the_same_over_a_server() {
    let served = Served::new();
    served.there(&["write", "box", "a", "--content", "one"]).success();
    let taken = served.there(&["snapshot", "box", "--name", "good", "-l", "step=1"]).success();
    assert_eq!(served.both(&["snapshot", "ls", "-q"]).success(), taken);
    served.there(&["exec", "box", "--", "sh", "-c", "echo two > a; echo new > b"]).success();
    let changed = "C /workspace/a\nA /workspace/b\n";
    for sides in [&["box"][..], &["good", "box"], &["default/good", "default/box"], &["good", &served.id]] {
        assert_eq!(served.both(&[&["diff"], sides].concat()).success(), changed, "{sides:?}");
    }
    assert_eq!(served.there(&["fork", "good", "-n", "2"]).success(), "box-1\nbox-2\n");
    assert_eq!(served.there(&["fork", "default/box", "--name", "third"]).success(), "third\n");
    assert_eq!(served.both(&["read", "box-2", "a"]).success(), "one");
    served.there(&["start", "box", "--", "sleep", "1000"]).success();
    let refused = served.both(&["rollback", "box", "good"]);
    assert!(refused.failure(125).contains("`sleep 1000` runs in sandbox `box`"), "{refused:?}");
    let back = served.there(&["rollback", "box", "good", "--stop"]);
    assert!(back.stderr.contains("`sleep 1000` was ended"), "{back:?}");
    assert_eq!(served.both(&["read", "box", "a"]).success(), "one");
    for wrong in [
        &["snapshot", "box", "--name", "good"][..],
        &["snapshot", "nobody"],
        &["rollback", "box", "nothing"],
        &["diff", "nothing", "box"],
        &["fork", "nothing"],
        &["snapshot", "rm", "nothing"],
    ] {
        let (there, here) = (served.there(wrong), served.here(wrong));
        assert!(!there.failure(125).is_empty() && !here.failure(125).is_empty(), "{wrong:?}");
    }
    served.there(&["snapshot", "rm", "default/good"]).success();
    assert_eq!(served.both(&["snapshot", "ls", "-q"]).success(), "");
}

#[test]
fn every_command_about_sandboxes_says_the_same_over_a_server() {
    let served = Served::new();
    let id = served.id.as_str();
    served
        .there(&["exec", id, "--", "sh", "-c", "mkdir d && echo hello > d/page && echo 1 > d/one"])
        .success();
    served.there(&["start", id, "--", "sh", "-c", "echo out; echo err >&2; exit 3"]).success();
    served.there(&["wait", id, "p1"]);
    let at = |path: &str| format!("{id}:{path}");
    let (page, copy) = (at("d/page"), at("d/copy"));
    let commands: [&[&str]; 26] = [
        &["start", BOX, "--", "nosuch"],
        &["start", BOX, "--", "/etc"],
        &["exec", BOX, "--", "sh", "-c", "echo out; echo err >&2; exit 5"],
        &["exec", id, "--", "echo", "by id"],
        &["exec", BOX, "--timeout", "100ms", "--", "sleep", "600"],
        &["read", BOX, "d/page"],
        &["read", BOX, "nothing"],
        &["glob", BOX, "**/*"],
        &["--json", "glob", BOX, "**/*"],
        &["grep", BOX, "hel+o"],
        &["--json", "ps", BOX],
        &["logs", BOX, "p1"],
        &["wait", BOX, "p1"],
        &["kill", BOX, "p1"],
        &["kill", BOX, "p99"],
        &["net", BOX],
        &["cp", &page, "-"],
        &["transfer", &page, &copy],
        &["transfer", "-r", "--pool", "default", "nobody:d", "box:x"],
        &["pool", "ls"],
        &["pool", "ls", "default"],
        &["--json", "pool", "ls", "default"],
        &["pool", "ls", "nope"],
        &["--json", "pool", "create", "default", "box"],
        &["call", "pool", "shell", r#"{"sandbox": "box", "command": "cat d/page"}"#],
        &["--json", "call", "pool", "shell", r#"{"sandbox": "box", "command": "exit 3"}"#],
    ];
    for command in commands {
        served.both(command);
    }
    for wrong in
        [["call", "pool", "shell", "{}"], ["call", "pool", "shell", "{"], ["call", "pool", "bash", "{}"]]
    {
        assert_eq!(served.both(&wrong).code, Some(1));
    }
}

#[test]
fn a_sandbox_of_a_pool_is_listed_by_the_name_that_it_was_given() {
    let served = Served::new();
    let (there, here) = (served.there(&["ls"]).success(), served.here(&["ls"]).success());
    let row = |table: &str| {
        let row = table.lines().nth(1).unwrap().split_whitespace().map(str::to_owned);
        row.take(3).collect::<Vec<_>>()
    };
    assert_eq!(row(&there), ["box", &served.id, "running"]);
    assert_eq!(row(&here), ["box", &served.id, "running"]);
    let json = served.here(&["--json", "ls"]).json();
    assert_eq!((&json[0]["name"], &json[0]["pool"]), (&"box".into(), &"default".into()));
    for by_name in ["box", "default/box", &served.id] {
        assert_eq!(served.both(&["exec", by_name, "--", "echo", "hi"]).success(), "hi\n");
    }
    assert!(served.both(&["exec", "nope/box", "--", "true"]).failure(125).contains("no pool `nope`"));
    served.both(&["sleep", "default/box"]).success();
    assert_eq!(row(&served.here(&["ls"]).success())[2], "sleeping");
    served.both(&["wake", "default/box"]).success();
    served.here(&["rm", "default/box"]).success();
    assert_eq!(served.there(&["ls", "-q"]).success(), "");
}

#[test]
fn what_one_makes_all_others_find_under_the_same_name() {
    let served = Served::new();
    assert_eq!(served.here(&["create", "mine"]).success(), "mine\n");
    let id = served.here(&["--json", "inspect", "mine"]).json()["id"].as_str().unwrap().to_owned();
    for named in ["mine", "default/mine", &id] {
        assert_eq!(served.both(&["exec", named, "--", "hostname"]).success(), "mine\n");
        let tool = json!({ "sandbox": named, "command": "hostname" }).to_string();
        assert!(served.both(&["call", "pool", "shell", &tool]).success().contains("mine"));
        for ran in [served.here(&["--json", "inspect", named]), served.there(&["--json", "inspect", named])] {
            assert_eq!(ran.json()["id"], id.as_str(), "{named}");
        }
        let events = served.both(&["events", "--sandbox", named]).success();
        assert!(events.contains("created") && !events.contains("box"), "{named}: {events}");
        let preview = served.there(&["preview", named, "8000"]);
        assert!(preview.code == Some(0) && preview.text().contains("http://8000-"), "{preview:?}");
        assert!(
            preview.stderr.contains("no port, since the server was asked over a unix socket"),
            "{preview:?}"
        );
    }
    assert!(served.here(&["top", "--once"]).success().lines().any(|line| line.starts_with("mine ")));
    assert_eq!(served.there(&["create", "team/theirs"]).success(), "team/theirs\n");
    assert_eq!(served.both(&["exec", "team/theirs", "--", "hostname"]).success(), "theirs\n");
    let tool = ["call", "pool", "sandbox_list", "{}", "--pool", "team"];
    assert!(served.both(&tool).success().contains("theirs"));
    served.there(&["rm", "default/mine"]).success();
    served.here(&["rm", "team/theirs"]).success();
    assert_eq!(served.both(&["ls", "-q"]).success(), format!("{}\n", served.id));
}

#[test]
fn a_persistent_workspace_is_the_same_one_here_and_there() {
    let served = Served::new();
    let with = |workspace: &str| ["create".to_owned(), "--workspace".to_owned(), workspace.to_owned()];
    let write = |run: &dyn Fn(&[&str]) -> Ran, workspace: &str, text: &str| {
        let name = run(&with(workspace).each_ref().map(String::as_str)).success();
        run(&["write", name.trim(), "file", "--content", text]).success();
        run(&["rm", name.trim()]).success();
    };
    let read = |run: &dyn Fn(&[&str]) -> Ran, workspace: &str| {
        let name = run(&with(workspace).each_ref().map(String::as_str)).success();
        let text =
            run(&["exec", name.trim(), "--", "sh", "-c", "cat file 2>/dev/null || echo nothing"]).success();
        run(&["rm", name.trim()]).success();
        text
    };
    let (here, there) =
        (|arguments: &[&str]| served.here(arguments), |arguments: &[&str]| served.there(arguments));
    write(&here, "by-us", "ours");
    assert_eq!(read(&there, "by-us"), "ours");
    write(&there, "by-server", "theirs");
    assert_eq!(read(&here, "by-server"), "theirs");
    // What an earlier version of the server made has the name of its pool before it.
    let workspace = WorkspaceSpec::Persistent { id: "default.old".into(), destroy_on_session_destroy: false };
    let id = create_by_provider(&served.machine, SandboxSpec { workspace, ..SandboxSpec::default() });
    served.here(&["write", &id, "file", "--content", "old"]).success();
    served.here(&["rm", &id]).success();
    assert_eq!((read(&here, "old"), read(&there, "old")), ("old".to_owned(), "old".to_owned()));
    assert_eq!(served.here(&["run", "--workspace", "old", "--", "cat", "file"]).success(), "old");
    // No name leads to another pool's.
    let made = served.there(&["create", "team/dev", "--workspace", "by-us"]).success();
    assert!(served.there(&["read", made.trim(), "file"]).failure(125).contains("file"));
    served.there(&["write", made.trim(), "file", "--content", "of the team"]).success();
    assert_eq!(read(&there, "team.by-us"), "nothing\n");
    served.there(&["rm", made.trim()]).success();
}

#[test]
fn pools_live_and_end_over_a_server() {
    let served = Served::new();
    let create = ["--json", "pool", "create", "p", "web", "--service", "exec sleep 1000"];
    assert_eq!(served.there(&create).json()["created"], true);
    let again = served.both(&["--json", "pool", "create", "p", "web", "--image", "other"]).json();
    assert_eq!((&again["created"], &again["differs"][0]), (&false.into(), &"image".into()));
    let path = served.there(&["pool", "create", "p", "host", "--image", "/etc"]);
    assert!(path.failure(125).contains("path on the server's host"));
    served
        .there(&["call", "pool", "write_file", r#"{"path": "f", "content": "x"}"#, "--pool", "p"])
        .success();
    let copied = served.there(&["transfer", "--pool", "p", "default:f", "web:g"]).success();
    assert_eq!(copied, "1 file, 1 bytes\n");
    served.there(&["pool", "sleep", "p", "web"]).success();
    let listed = served.both(&["--json", "pool", "ls", "p"]).json();
    assert_eq!((&listed[1]["name"], &listed[1]["status"]), (&"web".into(), &"sleeping".into()));
    served.there(&["pool", "rm", "p", "web"]).success();
    assert!(served.there(&["pool", "rm", "p", "web"]).failure(125).contains("no sandbox `web`"));
    served.there(&["pool", "rm", "p"]).success();
    assert_eq!(served.both(&["pool", "ls"]).success(), "NAME     SANDBOXES\ndefault  1\n");
}

#[test]
fn events_are_read_and_followed_over_a_server() {
    let served = Served::new();
    served.there(&["exec", "box", "--", "echo", "hi"]).success();
    let lines = served.both(&["--json", "events"]).success();
    assert!(lines.contains(r#""kind":"exec_ended""#), "{lines}");
    served.both(&["events", "--sandbox", "box", "--limit", "1"]).success();
    served.both(&["events", "--from", "2"]).success();
    let follow = served.with_server(&["--quiet", "--json", "events", "--follow", "--limit", "3"]);
    let followed = served.machine.run(&follow).success();
    assert_eq!(followed.lines().collect::<Vec<_>>(), lines.lines().take(3).collect::<Vec<_>>());
    served.here(&["events", "--verify"]).success();
    assert!(served.there(&["events", "--verify"]).failure(2).contains("on the host where it lies"));
}

#[test]
fn top_and_inspect_look_over_a_server() {
    let served = Served::new();
    served.there(&["start", "box", "--", "sleep", "86471"]).success();
    let table = served.there(&["top", "box", "--once"]).success();
    assert!(table.lines().any(|line| line.ends_with("sleep 86471")), "{table}");
    let json: Value =
        serde_json::from_str(served.there(&["top", "--once", "--json"]).success().trim()).unwrap();
    assert_eq!((&json["name"], &json["status"]), (&"box".into(), &"running".into()));
    let facts = served.there(&["--json", "inspect", "box"]).json();
    let own = served.here(&["--json", "inspect", &served.id]).json();
    for fact in ["id", "status", "isolation", "workdir"] {
        assert_eq!(facts[fact], own[fact], "{fact}");
    }
}

#[test]
fn every_record_over_a_server_names_its_pool() {
    let served = Served::new();
    let named = |arguments: &[&str]| served.there(arguments).pool_and_name();
    let team = (json!("team"), json!("dev"));
    assert_eq!(named(&["--json", "create", "team/dev"]), team);
    assert_eq!(named(&["--json", "inspect", "team/dev"]), team);
    assert_eq!(named(&["--json", "update", "team/dev", "--ttl", "1h"]), team);
    assert_eq!(named(&["--json", "ls"]), (json!("default"), json!("box")));
    for page in [served.there(&["inspect", "team/dev"]), served.here(&["inspect", "team/dev"])] {
        let page = page.success();
        assert!(page.starts_with("dev\n") && page.contains("  pool             team\n"), "{page}");
    }
}

#[test]
fn a_port_of_a_pools_sandbox_is_seen_over_a_server() {
    let served = Served::new();
    served.there(&["exec", "box", "--", "sh", "-c", "echo hello > page"]).success();
    served.there(&["start", "box", "--", "python3", "-m", "http.server", "8000"]).success();
    let ready = "until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.05; done";
    served.there(&["exec", "box", "--", "bash", "-c", ready]).success();
    let browse = served.with_server(&["browse", "--pool", "default", "box", "8000"]);
    let mut child = served.machine.spawn(&mut served.machine.command(&browse));
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let seen = super::tools::get(url.trim());
    assert!(seen.ends_with("hello\n"), "{seen}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_stopped_server_does_not_hold_a_command_past_its_deadline() {
    let served = Served::new();
    let run = served.with_server(&["exec", "--timeout", "2s", "box", "--", "sh", "-c", "echo up; sleep 100"]);
    let mut child = served.machine.spawn(&mut served.machine.command(&run));
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "up\n");
    let server = Pid::from_child(&served.server);
    kill_process(server, Signal::STOP).unwrap();
    let stopped = Instant::now();
    let ended = child.wait().unwrap();
    kill_process(server, Signal::CONT).unwrap();
    // Beyond the deadline it may wait for an answer for 750 ms; it held it for five seconds more.
    assert!(stopped.elapsed() < Duration::from_secs(5), "{:?}", stopped.elapsed());
    assert!(!ended.success());
}

#[test]
fn a_deadline_that_a_client_keeps_is_in_the_events_as_one() {
    let served = Served::new();
    let ran = served.there(&["exec", "--timeout", "300ms", "box", "--", "sleep", "100"]);
    assert_eq!(ran.code, Some(124), "{ran:?}");
    let events = served.there(&["--json", "events", "--sandbox", "box"]).success();
    let ended = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ended: Vec<Value> = ended.filter(|event| event["kind"] == "exec_ended").collect();
    let outcomes: Vec<&Value> = ended.iter().map(|event| &event["outcome"]).collect();
    assert_eq!(outcomes, ["timed_out"], "{events}");
}

#[test]
fn an_mcp_client_uses_a_pool_of_a_server() {
    let served = Served::new();
    let arguments = served.with_server(&["mcp", "--pool", "default"]);
    let mut child = served.machine.spawn(served.machine.command(&arguments).stdin(Stdio::piped()));
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut ask = |message: Value| writeln!(stdin, "{message}").unwrap();
    let mut hear = || {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    };
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    ask(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    assert_eq!(hear()["result"]["serverInfo"]["name"], "eyot");
    ask(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let arguments = json!({ "sandbox": "box", "command": "echo kept > file; cat file" });
    let params = json!({ "name": "shell", "arguments": arguments });
    ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    assert_eq!(hear()["result"]["structuredContent"]["stdout"], "kept\n");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(served.there(&["read", "box", "file"]).success(), "kept\n");
}

#[test]
fn what_is_about_this_host_is_refused_for_a_server_and_says_why() {
    let machine = Machine::new();
    let options = r#"{"allow": ["read_file"]}"#;
    let commands: [&[&str]; 10] = [
        &["doctor"],
        &["verify"],
        &["bench"],
        &["serve"],
        &["keys", "ls"],
        &["image", "prune"],
        &["pool", "reconcile"],
        &["events", "--verify"],
        &["mcp"],
        &["call", "workspace", "read_file", "{}", "--workspace-options", options],
    ];
    for command in commands {
        let ran = machine.run(&[&["--server", "http://127.0.0.1:9"], command].concat());
        let said = ran.failure(2);
        assert!(said.contains("server") && said.contains("hint: "), "{command:?}: {said}");
    }
    assert!(!machine.state().exists(), "a refusal has made something");
    // An empty one is none, whatever the environment says.
    let mut command = machine.command(&["--server", "", "image", "ls", "-q"]);
    assert_eq!(Ran::from(command.env("EYOT_SERVER", "http://127.0.0.1:9").output().unwrap()).success(), "");
}

#[test]
fn a_sandbox_of_a_server_is_updated_and_got_again() {
    let served = Served::new();
    served.there(&["update", "box", "--ttl", "1h", "--label", "team=search"]).success();
    let listed = served.there(&["ls", "-q", "--label", "team=search"]).success();
    assert_eq!(listed.trim(), served.id);
    let facts = served.there(&["--json", "inspect", "box"]).json();
    assert_eq!(facts["spec"]["lifecycle"]["ttl_ms"], 3_600_000);
    served.there(&["stop", "box"]).success();
    assert_eq!(served.there(&["-q", "create", "box", "--get-or-create"]).success(), "box\n");
    assert_eq!(served.there(&["-q", "create", "other", "-m", "64m"]).success(), "other\n");
    assert!(served.there(&["inspect", "other"]).success().contains("64 MiB"));
}
