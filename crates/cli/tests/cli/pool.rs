//! `eyot pool`, and calls of tools that find their sandboxes again.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

use eyot::{Sandbox, SandboxName, SandboxSpec};
use eyot_native::{NativeOptions, NativeProvider};
use rustix::process::{Pid, Signal, kill_process};

use super::machine::{Machine, Ran};

const LIST: [&str; 5] = ["--json", "pool", "ls", "p", "--quiet"];

#[test]
fn a_pool_is_kept_from_one_command_to_the_next() {
    let machine = Machine::new();
    let call = |tool: &str, input: &str| machine.run(&["call", "pool", tool, input, "--pool", "p"]).success();
    call("write_file", r#"{"path": "kept", "content": "x"}"#);
    assert!(call("read_file", r#"{"path": "kept"}"#).contains('x'));
    assert_eq!(machine.run(&["pool", "ls"]).success(), "NAME  SANDBOXES\np     1\n");
    assert_eq!(machine.run(&["pool", "ls", "-q"]).success(), "p\n");
    machine.run(&["pool", "sleep", "p", "default"]).success();
    assert_eq!(machine.run(&LIST).json()[0]["status"], "sleeping");
    assert!(call("read_file", r#"{"path": "kept"}"#).contains('x'));
    assert_eq!(machine.run(&LIST).json()[0]["status"], "running");
    machine.run(&["pool", "rm", "p"]).success();
    assert_eq!(machine.run(&["pool", "ls", "-q"]).success(), "");
    machine.assert_empty();
}

#[test]
fn a_sandbox_of_a_pool_is_made_once_and_what_differs_is_said() {
    let machine = Machine::new();
    let create = ["--json", "pool", "create", "p", "web", "--service", "exec sleep 1000"];
    assert_eq!(machine.run(&create).json()["created"], true);
    let again = machine.run(&["--json", "pool", "create", "p", "web", "--image", "other"]).json();
    assert_eq!((&again["created"], &again["differs"][0]), (&false.into(), &"image".into()));
    let listed = machine.run(&["pool", "ls", "p"]).success();
    assert!(
        listed.lines().nth(1).is_some_and(|line| line.contains("web") && line.contains("running")),
        "{listed}"
    );
    assert!(machine.run(&["events", "--sandbox", "p/web"]).success().contains("created"));
    machine.run(&["pool", "rm", "p", "web"]).success();
    assert!(machine.run(&["pool", "rm", "p", "web"]).failure(125).contains("no sandbox `web`"));
    machine.run(&["pool", "rm", "p"]).success();
}

#[test]
fn a_name_without_a_pool_is_in_the_pool_default_for_every_command() {
    let machine = Machine::new();
    for pool in ["default", "team"] {
        machine.run(&["pool", "create", pool, "dev"]).success();
        machine
            .run(&["exec", &format!("{pool}/dev"), "--", "sh", "-c", &format!("echo {pool} > whose")])
            .success();
    }
    assert_eq!(machine.run(&["exec", "dev", "--", "cat", "whose"]).success(), "default\n");
    let listed = machine.run(&["ls"]).success();
    let names: Vec<&str> = listed.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>(), ["dev", "team/dev"].iter().collect());
    let top = machine.run(&["top", "--once"]).success();
    assert!(top.lines().any(|line| line.starts_with("dev ")) && top.contains("team/dev"), "{top}");
    let events = |name: &str| machine.run(&["events", "--sandbox", name]).success();
    assert!(
        events("dev").contains("default/dev") && !events("dev").contains("team/dev"),
        "{}",
        events("dev")
    );
    assert!(events("team/dev").contains("created") && !events("team/dev").contains("default/dev"));
    machine.run(&["sleep", "dev"]).success();
    assert_eq!(machine.run(&["--json", "pool", "ls", "default"]).json()[0]["status"], "sleeping");
    assert_eq!(machine.run(&["--json", "pool", "ls", "team"]).json()[0]["status"], "running");
    machine.run(&["rm", "dev", "team/dev"]).success();
    machine.assert_empty();
}

#[test]
fn what_create_and_run_make_is_in_the_pool_default_with_its_events() {
    let machine = Machine::new();
    machine.run(&["create", "dev"]).success();
    assert_eq!(machine.run(&["run", "--keep", "--name", "kept", "--", "true"]).code, Some(0));
    machine.run(&["run", "--", "true"]).success();
    let in_pool = machine.run(&["--json", "pool", "ls", "default"]).json();
    let names: BTreeSet<_> = in_pool.as_array().unwrap().iter().map(|entry| entry["name"].as_str()).collect();
    assert_eq!(names, BTreeSet::from([Some("dev"), Some("kept")]));
    machine
        .run(&["call", "pool", "shell", r#"{"sandbox": "dev", "command": "echo tool > /tmp/from"}"#])
        .success();
    assert_eq!(machine.run(&["exec", "dev", "--", "cat", "/tmp/from"]).success(), "tool\n");
    assert!(machine.run(&["create", "dev"]).failure(125).contains("the name `dev` is in use"));
    machine.run(&["rm", "dev"]).success();
    let events = machine.run(&["events", "--sandbox", "default/dev"]).success();
    assert!(events.contains("created") && events.contains("destroyed"), "{events}");
    assert!(machine.run(&["exec", "default/dev", "--", "true"]).failure(125).contains("it was destroyed"));
}

#[test]
fn a_new_sandbox_goes_to_the_pool_of_its_name() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["create", "team/dev"]).success(), "team/dev\n");
    assert_eq!(machine.run(&["create", "default/dev"]).success(), "dev\n");
    let kept = machine.run(&["run", "--keep", "--name", "team/kept", "--", "true"]);
    assert!(kept.code == Some(0) && kept.stderr.contains("kept sandbox team/kept"), "{kept:?}");
    assert_eq!(machine.run(&["exec", "team/dev", "--", "hostname"]).success(), "dev\n");
    assert!(machine.run(&["create", "team/dev"]).failure(125).contains("in use"));
    let again = machine.run(&["create", "team/dev", "--get-or-create"]);
    assert_eq!((again.code, again.text().as_str()), (Some(0), "team/dev\n"), "{again:?}");
    assert_eq!(machine.run(&["create", "a/b/c"]).code, Some(2));
    machine.run(&["rm", "dev", "team/dev", "team/kept"]).success();
    machine.assert_empty();
}

#[test]
fn a_tool_takes_a_name_with_its_pool_or_an_id_and_no_other_pools() {
    let machine = Machine::new();
    let id = machine.run(&["--json", "create", "dev"]).json()["id"].as_str().unwrap().to_owned();
    let shell = |sandbox: &str| {
        let input = serde_json::json!({ "sandbox": sandbox, "command": "hostname" }).to_string();
        machine.run(&["--json", "call", "pool", "shell", &input])
    };
    for named in ["dev", "default/dev", &id] {
        let ran = shell(named);
        assert!(ran.code == Some(0) && ran.text().contains("dev\\n"), "{named}: {ran:?}");
    }
    let elsewhere = shell("team/dev");
    assert_eq!(elsewhere.code, Some(1));
    assert!(elsewhere.text().contains("this pool, which is `default`"), "{elsewhere:?}");
    assert_eq!(machine.run(&["ls", "-q"]).success(), format!("{id}\n"));
    machine.run(&["rm", "dev"]).success();
}

#[test]
fn a_named_sandbox_of_an_earlier_version_is_taken_into_the_pool_default() {
    let machine = Machine::new();
    let id = create_outside_of_pools(&machine, "old");
    assert_eq!(machine.run(&["exec", "old", "--", "echo", "hi"]).success(), "hi\n");
    let again = machine.run(&["--json", "create", "old", "--get-or-create"]);
    assert_eq!(again.json()["id"], id.as_str(), "{again:?}");
    assert_eq!(machine.run(&["exec", "default/old", "--", "echo", "hi"]).success(), "hi\n");
    let other = create_outside_of_pools(&machine, "older");
    assert_eq!(machine.run(&["--json", "inspect", "default/older"]).json()["id"], other.as_str());
    machine.run(&["rm", "old", "older"]).success();
    machine.assert_empty();
}

#[test]
fn a_name_that_two_sandboxes_have_is_refused_and_each_is_found_by_what_the_error_says() {
    let machine = Machine::new();
    machine.run(&["pool", "create", "default", "dev"]).success();
    let alone = create_outside_of_pools(&machine, "dev");
    let refused = machine.run(&["rm", "dev"]);
    let said = refused.failure(125);
    assert!(said.contains("two sandboxes are called `dev`") && said.contains(&alone), "{said}");
    assert!(said.contains("say `default/dev`"), "{said}");
    machine.run(&["rm", "default/dev", &alone]).success();
    machine.assert_empty();
}

/// Makes a sandbox in no pool, as earlier versions of `eyot create` did and a program that uses the
/// provider does. Returns its id.
pub fn create_outside_of_pools(machine: &Machine, name: &str) -> String {
    let name = Some(SandboxName::parse(name).unwrap());
    create_by_provider(machine, SandboxSpec { name, ..SandboxSpec::default() })
}

/// Makes a sandbox in no pool. Returns its id.
pub fn create_by_provider(machine: &Machine, spec: SandboxSpec) -> String {
    let options = NativeOptions { state: machine.state(), ..NativeOptions::default() };
    let provider = NativeProvider::new(options).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let sandbox = runtime.block_on(Sandbox::create(provider.as_ref(), spec)).unwrap();
    sandbox.id().to_string()
}

#[test]
fn a_tree_goes_from_one_sandbox_of_a_pool_to_another_and_its_port_is_seen_from_the_host() {
    let machine = Machine::new();
    let shell = |sandbox: &str, command: &str| {
        let input = serde_json::json!({ "sandbox": sandbox, "command": command }).to_string();
        machine.run(&["call", "pool", "shell", &input, "--pool", "p"]).success()
    };
    shell("a", "mkdir d && echo hello > d/page");
    let slip = machine.run(&["transfer", "--pool", "p", "-r", "nobody:d", "b:x"]);
    assert!(slip.failure(125).contains("there are: `a`"), "{slip:?}");
    assert_eq!(machine.run(&["transfer", "--pool", "p", "-r", "a:d", "b:x"]).success(), "1 file, 6 bytes\n");
    shell(
        "b",
        "cd x; python3 -m http.server 8000 > /dev/null 2>&1 & \
                until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.05; done",
    );
    let mut child = machine.spawn(&mut machine.command(&["browse", "--pool", "p", "b", "8000"]));
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    assert!(super::tools::get(url.trim()).ends_with("hello\n"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    machine.run(&["pool", "rm", "p"]).success();
    machine.assert_empty();
}

#[test]
fn the_toolset_workspace_does_what_its_options_say_and_no_more() {
    let machine = Machine::new();
    let options = r#"{"allow": ["exec_command"], "exec": {"allowedCommands": ["echo"]}}"#;
    let tools = ["tools", "--toolset", "workspace", "--format", "mcp", "--workspace-options", options];
    let listed = machine.run(&tools).json();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["name"]), (1, &"exec_command".into()));
    let call = |input: &str| {
        machine.run(&["call", "workspace", "exec_command", input, "--workspace-options", options])
    };
    assert!(call(r#"{"command": "echo", "args": ["hi"]}"#).success().contains("hi"));
    assert_eq!(call(r#"{"command": "ls"}"#).code, Some(1));
    let elsewhere = ["call", "pool", "shell", "{}", "--workspace-options", options];
    assert!(machine.run(&elsewhere).failure(2).contains("toolset `workspace`"));
    assert_eq!(machine.run(&["tools", "--toolset", "workspace", "--workspace-options", "{"]).code, Some(2));
}

#[test]
fn a_pool_that_is_not_there_is_no_empty_one() {
    let machine = Machine::new();
    for command in [&["pool", "ls", "nope"][..], &["pool", "rm", "nope"], &["pool", "sleep", "nope", "a"]] {
        let ran = machine.run(command);
        let said = ran.failure(125);
        assert!(said.contains("no pool `nope`") && said.contains("eyot pool ls"), "{said}");
    }
    assert_eq!(machine.run(&["pool"]).code, Some(2));
    assert_eq!(machine.run(&["pool", "reconcile"]).success(), "");
}

/// Says hello to its one visitor.
const GREETER: &str = "import socket\n\
                       socket.create_server(('127.0.0.1', 8000)).accept()[0].sendall(b'hello')";

#[test]
fn dial_waits_for_the_service_of_a_sandbox_that_it_woke() {
    let machine = Machine::new();
    // The service listens when it is told to.
    let service = "[ -p go ] || mkfifo go; read line < go; exec python3 greeter.py";
    machine.run(&["pool", "create", "p", "web", "--service", service]).success();
    machine.run(&["write", "p/web", "greeter.py", "--content", GREETER]).success();
    machine.run(&["sleep", "p/web"]).success();
    let mut dial = machine.spawn(&mut machine.command(&["dial", "p/web", "8000"]));
    // Only the dial may wake it.
    while machine.run(&LIST).json()[0]["status"] != "running" && dial.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    machine.run(&["exec", "--timeout", "20s", "p/web", "--", "sh", "-c", "echo > go"]).success();
    let ran = Ran::from(dial.wait_with_output().unwrap());
    assert_eq!(ran.success(), "hello");
    let nothing = machine.run(&["pool", "rm", "p"]);
    assert_eq!(nothing.code, Some(0));
}
