//! `serve --parent-pid`: a server that a program started for itself ends with that program, also when it is killed.

use std::io::{BufRead, BufReader};
use std::process::Command;

use super::machine::Machine;

#[test]
fn a_server_ends_with_its_parent_even_when_that_is_killed_and_its_sandboxes_stay() {
    let machine = Machine::with_sandbox();
    let mut parent = Command::new("sleep").arg("86473").spawn().unwrap();
    let (socket, pid) = (machine.path("socket"), parent.id().to_string());
    let url = format!("unix:{}", machine.path_text("socket"));
    let serve = ["serve", "--no-keys", "--listen", &url, "--parent-pid", &pid];
    let mut server = machine.spawn(&mut machine.command(&serve));
    let mut said = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("serving at"), "{said}");
    machine.run(&["--server", &url, "create", "--name", "theirs"]).success();
    // SIGKILL: nothing runs in it that could end the server. It is not even waited for yet.
    parent.kill().unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    parent.wait().unwrap();
    assert!(!socket.exists(), "the socket's file stays");
    assert_eq!(machine.run(&["ls", "-q"]).success().lines().count(), 2);
}

#[test]
fn a_server_for_a_process_that_is_gone_does_not_start() {
    let machine = Machine::new();
    let mut parent = Command::new("true").spawn().unwrap();
    let pid = parent.id().to_string();
    parent.wait().unwrap();
    let url = format!("unix:{}", machine.path_text("socket"));
    let serve = ["serve", "--no-keys", "--listen", &url, "--parent-pid", &pid];
    assert!(machine.run(&serve).failure(2).contains("no such process"));
    assert!(!machine.path("socket").exists());
    assert_eq!(machine.run(&["serve", "--parent-pid", "0"]).code, Some(2));
}
