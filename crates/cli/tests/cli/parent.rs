//! `serve --parent-pid`: a server that a program started for itself ends with that program, even if
//! that is killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

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

/// Makes a folder as clients make it for the socket of a server that they start.
fn client_folder(machine: &Machine, name: &str) -> std::path::PathBuf {
    use std::os::unix::fs::DirBuilderExt;
    let folder = machine.path(name);
    std::fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
    std::fs::write(folder.join("server.log"), "").unwrap();
    folder
}

/// Starts a client and its server, and waits until the server is up.
fn server_of_client(machine: &Machine, folder: &std::path::Path) -> (Child, Child) {
    let parent = Command::new("sleep").arg("86474").spawn().unwrap();
    let url = format!("unix:{}/server.sock", folder.display());
    let serve = ["serve", "--no-keys", "--listen", &url, "--parent-pid", &parent.id().to_string()];
    let mut server = machine.spawn(&mut machine.command(&serve));
    let mut said = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("serving at"), "{said}");
    (server, parent)
}

#[test]
fn the_folder_of_a_client_that_is_killed_goes_with_its_server_or_with_the_next_one() {
    let machine = Machine::new();
    let (killed, own, other) =
        ["eyot-killed", "eyot-own", "eyot-other"].map(|name| client_folder(&machine, name)).into();
    std::fs::write(other.join("somebody's file"), "").unwrap();
    let (mut server, mut parent) = server_of_client(&machine, &killed);
    // Both are killed, the server first: nothing removes the folder.
    server.kill().unwrap();
    server.wait().unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(killed.join("server.sock").exists());
    let (mut server, mut parent) = server_of_client(&machine, &own);
    assert!(!killed.exists() && own.exists());
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(!own.exists() && other.join("somebody's file").exists());
}
