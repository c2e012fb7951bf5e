//! The addresses of `eyot serve`: it takes no address or socket that is in use, and lets no client
//! in by mistake.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;

use rustix::process::{Pid, Signal, kill_process};

use crate::machine::Machine;

fn unix(machine: &Machine) -> String {
    format!("unix:{}", machine.path_text("socket"))
}

#[test]
fn a_file_in_the_place_of_the_socket_stays_as_it_is() {
    let machine = Machine::new();
    let url = unix(&machine);
    let path = machine.write("socket", "somebody's");
    let refused = machine.run(&["serve", "--no-keys", "--listen", &url]);
    assert!(refused.failure(125).contains("something else than a socket is there"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "somebody's");

    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    let refused = machine.run(&["serve", "--no-keys", "--listen", &url]);
    assert!(refused.failure(125).contains("something else than a socket is there"));
    assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink());
}

#[test]
fn a_socket_that_somebody_listens_on_is_his_and_a_dead_one_is_replaced() {
    let machine = Machine::new();
    let (url, path) = (unix(&machine), machine.path("socket"));
    let listener = UnixListener::bind(&path).unwrap();
    let refused = machine.run(&["serve", "--no-keys", "--listen", &url]);
    assert!(refused.failure(125).contains("somebody does already"));

    drop(listener);
    assert!(path.exists());
    let mut server = machine.spawn(&mut machine.command(&["serve", "--no-keys", "--listen", &url]));
    let mut said = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, format!("eyot: serving at {url}\n"));
    assert_eq!(machine.run(&["--server", &url, "ls", "-q"]).success(), "");
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn without_keys_nobody_gets_in_from_elsewhere() {
    let machine = Machine::new();
    let everywhere = machine.run(&["serve", "--no-keys", "--listen", "0.0.0.0:0"]);
    assert!(everywhere.failure(2).contains("can be reached from other machines"));
    let others = ["serve", "--no-keys", "--listen", "127.0.0.1:0", "--allow-host", "eyot.example"];
    assert!(machine.run(&others).failure(2).contains("leave one of the two out"));
    let relative = machine.run(&["serve", "--no-keys", "--listen", "unix:socket"]);
    assert!(relative.failure(2).contains("is no absolute path"));
}
