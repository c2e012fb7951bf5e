//! `tools`, `call`, `transfer` and `browse`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::machine::{Machine, Ran};
use super::server::Server;

#[test]
fn a_toolset_is_printed_in_the_form_that_is_asked_for_and_touches_no_state() {
    let machine = Machine::new();
    let names = |arguments: &[&str], at: &str| {
        let tools = machine.run(&[&["tools"], arguments].concat()).json();
        let tools = tools.as_array().unwrap().clone();
        tools.iter().map(|tool| tool.pointer(at).unwrap().as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = names(&[], "/name");
    assert!(all.contains(&"shell".to_owned()) && all.len() == 8, "{all:?}");
    assert_eq!(names(&["--format", "openai"], "/function/name"), all);
    assert_eq!(names(&["--format", "openai-responses", "--toolset", "pool"], "/name"), all);
    assert_eq!(names(&["--format", "mcp"], "/inputSchema/type"), vec!["object"; 8]);
    let prompt = machine.run(&["tools", "--format", "prompt"]).success();
    assert!(prompt.starts_with("shell(command: string, "), "{prompt}");
    assert!(machine.run(&["tools", "--toolset", "nope"]).failure(2).contains("`pool`"));
    machine.run(&["tools", "--format", "xml"]);
    assert!(!machine.state().exists());
}

#[test]
fn a_call_prints_what_a_model_reads_and_exits_with_1_when_it_is_an_error() {
    let machine = Machine::new();
    let printed = machine.run(&["call", "pool", "shell", r#"{"command":"echo hi"}"#]).success();
    assert_eq!(printed, "{\"exit_code\":0,\"stderr\":\"\",\"stdout\":\"hi\\n\"}\n");
    let whole = machine.run(&["--json", "call", "pool", "shell", r#"{"command":"exit 3"}"#]);
    assert_eq!(whole.code, Some(1));
    let output = whole.json();
    assert_eq!((&output["is_error"], &output["structured"]["exit_code"]), (&true.into(), &3.into()));
    assert!(output["content"][0]["text"].as_str().unwrap().contains("\"exit_code\":3"), "{output}");
    let stdin = machine.run_with_input(&["call", "pool", "shell", "-"], br#"{"command":"pwd"}"#);
    assert!(stdin.success().contains("/home/user"));
}

#[test]
fn a_call_over_a_server_acts_in_the_first_pool_of_the_key() {
    let machine = Machine::new();
    let server = Server::start(&machine, &[], &[], &[]);
    let call = |arguments: &[&str]| {
        let mut command = machine.command(&[&["call", "pool"], arguments].concat());
        command.env("EYOT_SERVER", format!("http://{}", server.address)).env("EYOT_API_KEY", &server.key);
        Ran::from(command.output().unwrap())
    };
    assert!(call(&["shell", r#"{"command": "echo hi"}"#]).success().contains("hi"));
    let members = machine.run(&["pool", "ls", "ours", "--json"]).json();
    assert_eq!(members.as_array().map(Vec::len), Some(1), "{members}");
    assert_eq!(call(&["sandbox_list", "--pool", "elsewhere"]).code, Some(1));
}

#[test]
fn a_call_that_is_wrong_says_what_is_wrong() {
    let machine = Machine::new();
    for (arguments, says) in [
        (["call", "pool", "shell", "{}"], "`command` is missing; it must be a string\n"),
        (["call", "pool", "shell", "{"], "the arguments are not JSON: "),
        (["call", "pool", "bash", "{}"], "there is no tool `bash`; there are: `shell`, "),
    ] {
        let ran = machine.run(&arguments);
        assert!(ran.code == Some(1) && ran.text().starts_with(says), "{ran:?}");
    }
    machine.run(&["call", "nope", "shell", "{}"]).failure(2);
    machine.run(&["call", "pool", "shell", "{}", "--pool", "No Name"]);
    machine.assert_empty();
}

#[test]
fn a_call_that_is_interrupted_kills_its_command_and_prints_the_output_so_far() {
    let machine = Machine::new();
    let call = r#"{"command":"echo begun; touch /tmp/begun; sleep 600","timeout_ms":600000}"#;
    let mut child = machine.spawn(&mut machine.command(&["call", "pool", "shell", call]));
    let sandbox = loop {
        let listed = machine.run(&["ls", "-q"]).success();
        if let Some(id) = listed.lines().next().filter(|_| child.try_wait().unwrap().is_none()) {
            break id.to_owned();
        }
    };
    while machine.run(&["exec", &sandbox, "--", "test", "-e", "/tmp/begun"]).code != Some(0) {}
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(text.contains("\"exit_code\":130") && text.contains("begun\\n"), "{text}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_tree_goes_from_one_sandbox_to_another() {
    let machine = Machine::with_sandbox();
    machine.create("other");
    machine.run(&["write", "box", "d/a/f", "--content", "hello"]).success();
    let refused = machine.run(&["transfer", "box:d", "other:x/y"]);
    assert!(refused.failure(125).contains("hint: -r copies a directory"));
    assert_eq!(machine.run(&["transfer", "-r", "box:d", "other:x/y"]).success(), "1 file, 5 bytes\n");
    assert_eq!(machine.run(&["read", "other", "x/y/a/f"]).success(), "hello");
    let again = machine.run(&["--json", "transfer", "box:d/a/f", "other:/tmp/f"]).json();
    assert_eq!(again, serde_json::json!({ "files": 1, "bytes": 5 }));
    machine.run(&["transfer", "box:d", "other:x/y", "--recursive"]).failure(125);
    assert_eq!(machine.run(&["transfer", "./d", "other:x"]).code, Some(2));
    machine.run(&["transfer", "nobody:d", "other:x"]).failure(125);
}

/// Splits an address of `eyot browse` into host, port and the rest.
fn parts(url: &str) -> (String, u16, String) {
    let (host, rest) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    (host.to_owned(), host.rsplit_once(':').unwrap().1.parse().unwrap(), format!("/{rest}"))
}

/// Requests a path on loopback, with these headers.
fn ask(port: u16, path: &str, headers: &[(&str, &str)]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{lines}\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Returns the page at `/page`, as a browser gets it that opens the address.
pub fn get(url: &str) -> String {
    let (host, port, path) = parts(url);
    let opened = ask(port, &path, &[("Host", &host)]);
    let cookie = opened.lines().find(|line| line.to_lowercase().starts_with("set-cookie: "));
    let cookie = cookie.unwrap_or_else(|| panic!("no cookie: {opened}"));
    let cookie = cookie.split_once(' ').unwrap().1.split(';').next().unwrap();
    ask(port, "/page", &[("Host", &host), ("Cookie", cookie)])
}

/// Returns the JSON that `eyot --json browse` prints.
fn address_of(child: &mut Child) -> Value {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn n3_browse_lets_in_whoever_has_its_address_and_no_rebound_name() {
    let machine = Machine::with_sandbox();
    let serve = "echo hello > page; python3 -m http.server 8000 >/dev/null 2>&1 & \
        until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.05; done";
    machine.run(&["exec", "box", "--", "bash", "-c", serve]).success();
    let mut child = machine.spawn(&mut machine.command(&["--json", "browse", "box", "8000"]));
    let address = address_of(&mut child);
    let (token, url) = (address["token"].as_str().unwrap(), address["url"].as_str().unwrap());
    let (host, port, path) = parts(url);
    let by_path = parts(address["path_url"].as_str().unwrap()).2;
    let by_path = by_path.split('?').next().unwrap().to_owned() + "page";
    let loopback = format!("127.0.0.1:{port}");
    let status = |path: &str, headers: &[(&str, &str)]| ask(port, path, headers)[9..12].to_owned();

    // Another user of this host, who has no token.
    assert_eq!(status("/page", &[("Host", &host)]), "401");
    assert_eq!(status(&by_path, &[("Host", &loopback)]), "401");
    assert_eq!(status("/page", &[("Host", &host), ("Eyot-Preview-Token", &"0".repeat(64))]), "401");
    assert_eq!(status("/page", &[("Host", &loopback)]), "403");
    // A page of the web whose name was rebound to loopback, even with a token.
    for name in [format!("evil.example:{port}"), format!("a.localhost.evil.example:{port}")] {
        assert_eq!(status("/page", &[("Host", &name), ("Eyot-Preview-Token", token)]), "403", "{name}");
        assert_eq!(status(&by_path, &[("Host", &name), ("Eyot-Preview-Token", token)]), "403", "{name}");
    }
    assert_eq!(status("/page", &[("Eyot-Preview-Token", token)]), "403");

    assert!(ask(port, "/page", &[("Host", &host), ("Eyot-Preview-Token", token)]).ends_with("hello\n"));
    assert!(ask(port, &by_path, &[("Host", &loopback), ("Eyot-Preview-Token", token)]).ends_with("hello\n"));
    for name in [loopback, format!("localhost:{port}")] {
        assert_eq!(status("/page", &[("Host", &name), ("Eyot-Preview-Token", &"0".repeat(64))]), "401");
        assert!(ask(port, "/page", &[("Host", &name), ("Eyot-Preview-Token", token)]).ends_with("hello\n"));
    }
    assert!(get(url).ends_with("hello\n"));
    // The token of the address was worth one cookie.
    assert_eq!(status(&path, &[("Host", &host)]), "401");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_port_is_open_on_loopback_until_an_interrupt_and_no_longer_than_its_sandbox() {
    let machine = Machine::with_sandbox();
    let serve = "echo hello > page; python3 -m http.server 8000 >/dev/null 2>&1 & \
        until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.05; done";
    machine.run(&["exec", "box", "--", "bash", "-c", serve]).success();
    for ends_by_itself in [false, true] {
        let mut child = machine.spawn(&mut machine.command(&["--json", "browse", "box", "8000"]));
        let address = address_of(&mut child);
        let url = address["url"].as_str().unwrap().to_owned();
        assert!(get(url.trim()).ends_with("hello\n"));
        if ends_by_itself {
            machine.run(&["rm", "box"]).success();
            let (host, port, path) = parts(url.trim());
            ask(port, &path, &[("Host", &host)]);
            let token = &address["token"];
            ask(port, "/", &[("Host", &host), ("Eyot-Preview-Token", token.as_str().unwrap())]);
            assert_eq!(child.wait().unwrap().code(), Some(125));
        } else {
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(0));
        }
    }
    machine.run(&["browse", "nobody", "80"]).failure(125);
    assert_eq!(machine.run(&["browse", "box", "0"]).code, Some(2));
}

#[test]
fn a_port_without_a_server_is_said_to_have_none() {
    let machine = Machine::with_sandbox();
    let mut child = machine.spawn(&mut machine.command(&["browse", "box", "8000"]));
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("nothing listens on port 8000 of `box` yet"), "{said}");
    assert!(said.contains("eyot start box -- "), "{said}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_a_killed_transfer_leaves_in_a_sandbox_is_removed_by_the_next_one() {
    let machine = Machine::with_sandbox();
    machine.create("other");
    let make = "mkdir endless small && truncate -s 200G endless/file && echo x > small/file";
    machine.run(&["exec", "box", "--", "sh", "-c", make]).success();
    let left = || {
        let names = machine.run(&["exec", "other", "--", "ls", "-A", "/workspace"]).success();
        names.lines().filter(|name| name.starts_with(".eyot-transfer-")).count()
    };
    let mut child = machine.spawn(&mut machine.command(&["transfer", "-r", "box:endless", "other:endless"]));
    while left() == 0 {
        assert_eq!(child.try_wait().unwrap(), None, "it was done too soon");
    }
    // What is in use stays.
    machine.run(&["transfer", "-r", "box:small", "other:one"]).success();
    assert_eq!((left(), child.try_wait().unwrap()), (1, None));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(left(), 1);
    machine.run(&["transfer", "-r", "box:small", "other:two"]).success();
    assert_eq!(left(), 0);
}

#[test]
fn what_a_killed_transfer_leaves_anywhere_is_removed_by_the_next_one_to_another_place() {
    let machine = Machine::with_sandbox();
    machine.create("other");
    let make = "mkdir endless small && truncate -s 200G endless/file && echo x > small/file";
    machine.run(&["exec", "box", "--", "sh", "-c", make]).success();
    let left = || {
        let names =
            machine.run(&["exec", "other", "--", "ls", "-A", "/tmp", "/workspace", "/home/user"]).success();
        names
            .lines()
            .filter(|name| name.starts_with(".eyot-transfer-"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for round in 0..5 {
        let target = ["other:/tmp/endless", "other:/home/user/endless"][round % 2];
        let mut child = machine.spawn(&mut machine.command(&["transfer", "-r", "box:endless", target]));
        // The note, and what it names.
        while left().len() < 2 {
            assert_eq!(child.try_wait().unwrap(), None, "it was done too soon");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        machine.run(&["transfer", "-r", "box:small", &format!("other:sub{round}")]).success();
        assert_eq!(left(), Vec::<String>::new(), "round {round}");
    }
}
