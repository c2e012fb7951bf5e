//! `eyot serve` where something that it needs is scarce: it does without, or reports what is
//! missing, and always answers.

use std::net::TcpStream;

use rustix::process::Signal;
use serde_json::json;

use crate::machine::{Machine, Ran};
use crate::server::{Connection, Server, figure};

/// Runs the following command where the kernel refuses every inotify instance.
const WITHOUT_INOTIFY: [&str; 4] = ["unshare", "-Ur", "sh", "-c"];
const NO_INSTANCES: &str = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"";

#[test]
fn a_server_without_inotify_serves_tells_events_and_ends_what_a_revoked_key_began() {
    let machine = Machine::new();
    let mut server = Server::start_by(&machine, &[&WITHOUT_INOTIFY[..], &[NO_INSTANCES]].concat());
    assert_eq!(server.ask("GET", "/v1/health", "").0, 200);
    let mut following = server.connect();
    following.send("GET", "/v1/events?follow=true", "");
    // Another process makes it: only a look at the log tells the server.
    machine.run(&["pool", "create", "ours", "box"]).success();
    while !following.line().expect("the stream ended").contains(r#""kind":"created""#) {}
    machine.run(&["keys", "revoke", "ours"]).success();
    while following.line().is_some() {}
    assert_eq!(server.ask("GET", "/v1/health", "").0, 200);
    server.signal(Signal::TERM);
    let (code, log) = server.ended();
    assert_eq!(code, Some(0));
    assert!(log.contains("fs.inotify.max_user_instances"), "no warning says why: {log}");
}

#[test]
fn events_are_followed_without_inotify() {
    let machine = Machine::new();
    let follow = ["events", "--follow", "--limit", "1", "--quiet", "--json"];
    let by = [&WITHOUT_INOTIFY[..], &[NO_INSTANCES]].concat();
    let following = machine.spawn(&mut machine.command_by(&by, &follow));
    machine.run(&["pool", "create", "p", "box"]).success();
    let followed = Ran::from(following.wait_with_output().unwrap());
    assert!(followed.success().contains(r#""kind":"created""#), "{followed:?}");
}

#[test]
fn a_server_with_too_few_files_does_not_start_and_says_how_many_it_needs() {
    let machine = Machine::new();
    let by = ["prlimit", "--nofile=64:64"];
    let refused = Ran::from(machine.command_by(&by, &["serve", "--listen", "127.0.0.1:0"]).output().unwrap());
    let said = refused.failure(125);
    let needed = said.split("at least ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let needed: u64 = needed.parse().unwrap_or_else(|_| panic!("{said}"));
    assert!(
        said.contains("open files are needed, and 64 are allowed") && said.contains("ulimit -n"),
        "{said}"
    );
    // The number is right: with so many it serves.
    let server = Server::start_by(&machine, &["prlimit", &format!("--nofile={needed}:{needed}")]);
    let id = server.sandbox();
    let ran = server.ask("POST", &format!("/v1/sandboxes/{id}/exec"), r#"{"command":"true"}"#);
    assert_eq!(ran.0, 200, "{ran:?}");
}

#[test]
fn a_server_with_few_files_answers_and_makes_sandboxes_whatever_clients_hold() {
    const FILES: f64 = 256.0;
    let machine = Machine::new();
    let mut server = Server::start_by(&machine, &["prlimit", "--nofile=256:256"]);
    let sandboxes: Vec<String> = (0..50).map(|_| server.sandbox()).collect();
    let other = machine.run(&["keys", "create", "other", "-q"]).text().trim().to_owned();
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    // One key asks for all that there is.
    let mut busy: Vec<Connection> = Vec::new();
    for id in sandboxes.iter().chain(&sandboxes) {
        let mut connection = server.connect();
        connection.send("POST", &format!("/v1/sandboxes/{id}/exec"), r#"{"command":"sleep 1000"}"#);
        busy.push(connection);
    }
    assert_eq!(server.ask("GET", "/v1/health", "").0, 200);
    let mut another = Connection::open(&server.address, &other);
    another.send("POST", "/v1/sandboxes", &json!({ "spec": {} }).to_string());
    let (status, made) = another.answer();
    assert_eq!(status, 201, "{made}");
    another.send("GET", "/metrics", "");
    let metrics = another.answer().1;
    assert!(figure(&metrics, "eyot_process_open_fds") < FILES, "{metrics}");
    drop((idle, busy));
    server.signal(Signal::TERM);
    server.signal(Signal::TERM);
    let log = server.ended().1;
    assert!(log.contains("the limit of open files leaves") && !log.contains("can't be taken"), "{log}");
}

/// Runs shell lines as an ordinary user with the state folder on a separate disk of this size. `$0` is
/// eyot.
fn on_a_disk_of(size: &str, machine: &Machine, lines: &str) -> Ran {
    std::fs::create_dir_all(machine.state()).unwrap();
    let script = format!(
        "mount -t tmpfs -o size={size},mode=0700 small \"$EYOT_STATE\" &&
         exec setpriv --inh-caps=-all --ambient-caps=-all sh -c '{lines}' \"$0\""
    );
    let by =
        ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--keep-caps", "--mount", "sh", "-c"];
    Ran::from(machine.command_by(&[&by[..], &[&script]].concat(), &[]).output().unwrap())
}

#[test]
fn a_disk_that_is_full_is_said_to_be_so_and_what_was_there_is_kept() {
    let machine = Machine::new();
    let ran = on_a_disk_of(
        "4m",
        &machine,
        "$0 -q keys create first >/dev/null &&
         dd if=/dev/zero of=\"$EYOT_STATE/fill\" bs=4096 2>/dev/null;
         $0 keys create second; echo $?; $0 keys create third; echo $?;
         rm \"$EYOT_STATE/fill\" && $0 keys create fourth -q >/dev/null && $0 keys ls",
    );
    assert!(ran.text().starts_with("125\n125\n"), "{ran:?}");
    let told = ran.stderr.matches("no space is left on the disk of the state folder").count();
    assert_eq!((told, ran.stderr.contains("I/O")), (2, false), "{ran:?}");
    let text = ran.text();
    let keys = |name: &str| text.lines().any(|line| line.starts_with(name));
    assert!(keys("first") && keys("fourth") && !keys("second") && !keys("third"), "{ran:?}");
}

#[test]
fn a_disk_that_is_full_to_its_last_block_leaves_the_store_room_to_take_things_away() {
    let machine = Machine::new();
    let ran = on_a_disk_of(
        "20m",
        &machine,
        "$0 -q keys create first >/dev/null && ls \"$EYOT_STATE/eyot.db.spare\" >&2;
         dd if=/dev/zero of=\"$EYOT_STATE/fill\" bs=4096 2>/dev/null;
         $0 -q keys revoke first; echo $?;
         rm \"$EYOT_STATE/fill\"; $0 keys ls; ls \"$EYOT_STATE/eyot.db.spare\" >&2",
    );
    assert!(ran.text().starts_with("0\n"), "{ran:?}");
    assert_eq!(ran.stderr.matches("eyot.db.spare\n").count(), 2, "{ran:?}");
}

#[test]
fn a_create_that_fails_on_a_full_disk_leaves_neither_a_sandbox_nor_a_pool() {
    let machine = Machine::new();
    // With a few KiB left, a create fails at each of its steps in turn.
    let ran = on_a_disk_of(
        "24m",
        &machine,
        "$0 -q create first >/dev/null || exit 99
         for left in $(seq 4 4 80); do
             rm -f \"$EYOT_STATE/fill\"; $0 pool ls >/dev/null
             free=$(df -k --output=avail \"$EYOT_STATE\" | tail -n 1)
             head -c $(( (free - left) * 1024 )) /dev/zero >\"$EYOT_STATE/fill\"
             $0 -q create p$left/a >/dev/null && $0 -q rm p$left/a && $0 -q pool rm p$left
             $0 ls -q | wc -l; $0 pool ls -q | grep p
         done; rm \"$EYOT_STATE/fill\"; $0 -q rm first",
    );
    assert_eq!(ran.text(), "1\n".repeat(20), "{ran:?}");
    assert!(ran.stderr.contains("no space is left on the disk of the state folder"), "{ran:?}");
}

#[test]
fn a_create_whose_image_is_not_there_leaves_no_pool() {
    let machine = Machine::new();
    machine.run(&["create", "--image", "nosuch:1", "--pull", "never", "team/a"]).failure(125);
    let call =
        ["call", "--pool", "other", "pool", "sandbox_create", r#"{"sandbox": "b", "image": "nosuch:1"}"#];
    assert_eq!(machine.run(&call).code, Some(1));
    assert_eq!(machine.run(&["pool", "ls", "-q"]).text(), "");
}
