//! `tools`, `call`, `transfer` and `browse`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use rustix::process::{Pid, Signal, kill_process};

use super::machine::Machine;

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
    assert!(refused.failure(125).contains("is a directory"));
    assert_eq!(machine.run(&["transfer", "-r", "box:d", "other:x/y"]).success(), "1 file, 5 bytes\n");
    assert_eq!(machine.run(&["read", "other", "x/y/a/f"]).success(), "hello");
    let again = machine.run(&["--json", "transfer", "box:d/a/f", "other:/tmp/f"]).json();
    assert_eq!(again, serde_json::json!({ "files": 1, "bytes": 5 }));
    machine.run(&["transfer", "box:d", "other:x/y", "--recursive"]).failure(125);
    assert_eq!(machine.run(&["transfer", "./d", "other:x"]).code, Some(2));
    machine.run(&["transfer", "nobody:d", "other:x"]).failure(125);
}

pub fn get(url: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    stream.write_all(b"GET /page HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_port_is_open_on_loopback_until_an_interrupt_and_no_longer_than_its_sandbox() {
    let machine = Machine::with_sandbox();
    let serve = "echo hello > page; python3 -m http.server 8000 >/dev/null 2>&1 & \
        until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.05; done";
    machine.run(&["exec", "box", "--", "bash", "-c", serve]).success();
    for ends_by_itself in [false, true] {
        let mut child = machine.spawn(&mut machine.command(&["browse", "box", "8000"]));
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(get(url.trim()).ends_with("hello\n"));
        if ends_by_itself {
            machine.run(&["rm", "box"]).success();
            drop(TcpStream::connect(url.trim().strip_prefix("http://").unwrap()).unwrap());
            assert_eq!(child.wait().unwrap().code(), Some(125));
        } else {
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(0));
        }
    }
    machine.run(&["browse", "nobody", "80"]).failure(125);
    assert_eq!(machine.run(&["browse", "box", "0"]).code, Some(2));
}
