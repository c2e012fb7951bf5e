//! `eyot serve` as a process: its end, its secrets, and thousands of connections without a request.

use std::net::TcpStream;
use std::path::Path;

use eyot_image::testing::{TestImage, TestLayer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde_json::json;

use crate::machine::Machine;
use crate::server::{Connection, Server, figure};

fn exec(command: &str) -> String {
    json!({ "command": command }).to_string()
}

/// Starts a command and waits until it runs. It ends when a line is written to the FIFO `go`.
fn under_way(server: &Server, id: &str) -> Connection {
    let path = format!("/v1/sandboxes/{id}/exec");
    assert_eq!(server.ask("POST", &path, &exec("mkfifo here go")).0, 200);
    let mut connection = server.connect();
    connection.send("POST", &path, &exec("echo > here; read line < go; echo the end"));
    assert_eq!(server.ask("POST", &path, &exec("read line < here")).0, 200);
    connection
}

#[test]
fn on_sigterm_a_command_under_way_ends_with_its_answer_and_nobody_else_gets_in() {
    let machine = Machine::new();
    let mut server = Server::start(&machine, &[], &[], &[]);
    let id = server.sandbox();
    let mut busy = under_way(&server, &id);
    let mut idle = server.connect();
    server.signal(Signal::TERM);
    server.wait_until_closed();
    assert_eq!(idle.answer().0, 0);
    machine.run(&["exec", &id, "--", "sh", "-c", "echo > go"]).success();
    let (status, body) = busy.answer();
    assert!(status == 200 && body.contains("the end"), "{status} {body}");
    assert_eq!(server.ended().0, Some(0));
}

/// Gives the sandboxes of a key no disks of their own, because no slot has one.
const WITHOUT_DISKS: (&str, &str) = ("EYOT_POOL_DISK_MIB", "unlimited");

/// Lists the half-made sandboxes of a state folder.
fn slots(machine: &Machine) -> Vec<std::ffi::OsString> {
    let folder = std::fs::read_dir(machine.state().join("slots")).unwrap();
    folder.map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn the_slots_of_a_server_are_not_listed_and_gone_when_it_has_ended() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let machine = Machine::new();
    let mut server = Server::start(&machine, &[], &["--slots", "2"], &[WITHOUT_DISKS]);
    let first = server.sandbox();
    wait_for_slots(&machine, 2);
    let second = server.sandbox();
    let mut listed: Vec<String> = machine.run(&["ls", "-q"]).success().lines().map(str::to_owned).collect();
    listed.sort();
    let mut made = vec![first, second];
    made.sort();
    assert_eq!(listed, made);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().0, Some(0));
    assert_eq!(slots(&machine), [""; 0]);
}

/// Waits until a server has made this many slots.
fn wait_for_slots(machine: &Machine, count: usize) {
    let changes = inotify::init(CreateFlags::CLOEXEC).unwrap();
    let folder = machine.state().join("slots");
    inotify::add_watch(&changes, folder, WatchFlags::CREATE | WatchFlags::MOVED_TO).unwrap();
    while slots(machine).len() < count {
        let soon = Timespec { tv_sec: 20, tv_nsec: 0 };
        let changed = poll(&mut [PollFd::new(&changes, PollFlags::IN)], Some(&soon)).unwrap();
        assert_eq!(changed, 1, "no slots were made");
        rustix::io::read(&changes, &mut [0; 4096]).unwrap();
    }
}

#[test]
fn an_image_is_removed_while_a_server_keeps_slots() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let machine = Machine::new();
    let image = TestImage::new(&[TestLayer::default().file("bin/sh", "#!")]);
    image.write_layout(&machine.path("layout"), Some("app:1")).unwrap();
    machine.run(&["image", "import", &machine.path_text("layout")]).success();
    let server = Server::start(&machine, &[], &["--slots", "2"], &[WITHOUT_DISKS]);
    let of_image = json!({ "spec": { "image": "app:1", "name": "of-image" } }).to_string();
    server.sandbox();
    wait_for_slots(&machine, 2);
    assert_eq!(server.ask("POST", "/v1/sandboxes", &of_image).0, 201);
    assert!(machine.run(&["image", "rm", "app:1"]).failure(125).contains("ours/of-image"));
    machine.run(&["rm", "ours/of-image"]).success();
    assert_eq!(machine.run(&["--json", "image", "rm", "app:1"]).json()["layers"], 1);
    assert_eq!(machine.run(&["image", "ls", "-q"]).success(), "");
    assert_eq!(server.ask("POST", "/v1/sandboxes", &of_image).0, 404);
    let id = server.sandbox();
    assert_eq!(server.ask("POST", &format!("/v1/sandboxes/{id}/exec"), &exec("true")).0, 200);
}

#[test]
fn more_slots_than_64_are_refused_and_so_are_slots_of_another_provider() {
    let machine = Machine::new();
    let ran = machine.run(&["serve", "--slots", "65"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("`65` is not a number of slots; write one from 0 to 64"), "{ran:?}");
    let ran = machine.run(&["--provider", "docker", "serve", "--slots", "64"]);
    assert!(ran.failure(2).contains("only the provider native has slots"), "{ran:?}");
}

#[test]
fn a_second_sigterm_ends_it_at_once() {
    let machine = Machine::new();
    let mut server = Server::start(&machine, &[], &[], &[]);
    let id = server.sandbox();
    let mut busy = under_way(&server, &id);
    server.signal(Signal::TERM);
    server.wait_until_closed();
    server.signal(Signal::TERM);
    assert_eq!(server.ended().0, Some(143));
    assert_eq!(busy.answer().0, 0);
}

#[test]
fn a_command_that_outlasts_the_drain_is_cut_and_event_streams_hold_nobody_up() {
    let machine = Machine::new();
    let mut server = Server::start(&machine, &[], &["--drain-timeout", "300ms"], &[]);
    let id = server.sandbox();
    let mut busy = under_way(&server, &id);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().0, Some(0));
    assert_eq!(busy.answer().0, 0);

    let machine = Machine::new();
    let mut server = Server::start(&machine, &[], &["--drain-timeout", "1h"], &[]);
    let mut following = server.connect();
    following.send("GET", "/v1/events?follow=true", "");
    assert_eq!(following.answer().0, 200);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().0, Some(0));
}

/// Tells whether the text is in any file below the folder.
fn is_kept(folder: &Path, text: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            is_kept(&entry.path(), text)
        } else {
            kind.is_file() && contains(&std::fs::read(entry.path()).unwrap_or_default(), text)
        }
    })
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn n7_a_key_is_in_no_log_error_event_environment_sandbox_or_file() {
    const MODEL_KEY: &str = "sk-model-key-of-the-servers-owner";
    let machine = Machine::new();
    // Every file is read below: none is to be the large image of a disk.
    let env = [("ANTHROPIC_API_KEY", MODEL_KEY), ("EYOT_POOL_DISK_MIB", "unlimited")];
    let mut server = Server::start(&machine, &["--verbose", "--verbose"], &[], &env);
    let key = server.key.clone();
    let wrong = "eyot_0000wrong0000key0000of0000somebody0000";
    let id = server.sandbox();
    let mut told = Vec::new();
    let path = format!("/v1/sandboxes/{id}");
    let looking = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'; exit 3";
    for (method, rest, body) in [
        ("POST", "/exec", &*exec(looking)),
        ("POST", "/exec", "{"),
        ("POST", "/processes", r#"{"command":"sleep 4243"}"#),
        ("GET", "?show_env=true", ""),
        ("GET", "/processes", ""),
        ("GET", "/files?path=nope", ""),
        ("POST", "/sleep", ""),
        ("POST", "/exec", &*exec(looking)),
    ] {
        told.push(server.ask(method, &format!("{path}{rest}"), body).1);
    }
    for path in ["/v1/nothing", "/v1/sandboxes/nobody", "/metrics", "/v1/pools"] {
        told.push(server.ask("GET", path, "").1);
        let mut stranger = Connection::open(&server.address, wrong);
        stranger.send("GET", path, "");
        told.push(stranger.answer().1);
    }
    told.push(String::from_utf8(machine.run(&["events", "--json"]).stdout).unwrap());
    assert!(told[0].contains("PATH=") && told.iter().any(|told| told.contains("sandbox_id")), "{told:?}");
    let in_processes = std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let is_servers = entry.file_name().to_string_lossy() == server.pid().to_string();
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        [read("environ"), read("cmdline")].iter().any(|bytes| {
            contains(bytes, &key)
                || contains(bytes, wrong)
                || (!is_servers && is_sandboxs(&entry.path()) && contains(bytes, MODEL_KEY))
        })
    });
    assert!(!in_processes);
    server.signal(Signal::TERM);
    let (_, log) = server.ended();
    assert!(log.lines().count() > 1, "it logged nothing: {log}");
    told.push(log);
    for secret in [&key[5..], &wrong[5..], MODEL_KEY] {
        for told in &told {
            assert!(!told.contains(secret), "{told}");
        }
        assert!(!is_kept(&machine.state(), secret), "{secret} is in the state folder");
    }
}

/// Tells whether a process belongs to a sandbox: it has another root.
fn is_sandboxs(process: &Path) -> bool {
    let namespace = |path: &Path| std::fs::read_link(path.join("ns/pid")).ok();
    namespace(process).is_some_and(|theirs| Some(theirs) != namespace(Path::new("/proc/self")))
}

#[test]
fn n5_idle_connections_without_number_are_bounded_and_others_are_served() {
    idle_connections(1_000, 256);
}

mod soak {
    #[test]
    #[ignore = "cargo xtask soak load"]
    fn n5_ten_thousand_idle_connections_are_bounded_and_others_are_served() {
        super::idle_connections(10_000, 4096);
    }
}

/// Opens `many` connections to a server that has places for `places`.
fn idle_connections(many: u64, places: u32) {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    // Other tests of this process have some open.
    let most = limit.maximum.unwrap_or(u64::MAX).saturating_sub(1000).min(many);
    let machine = Machine::new();
    let mut server = Server::start(&machine, &[], &["--max-connections", &places.to_string()], &[]);
    let id = server.sandbox();
    let path = format!("/v1/sandboxes/{id}/exec");
    let mut idle = Vec::new();
    for count in 1..=most {
        idle.push(TcpStream::connect(&server.address).unwrap());
        if count % (many / 10) == 0 {
            assert_eq!(server.ask("POST", &path, &exec("true")).0, 200);
        }
    }
    println!("{most} idle connections");
    let metrics = server.ask("GET", "/metrics", "").1;
    let (open, memory) =
        (figure(&metrics, "eyot_http_connections"), figure(&metrics, "eyot_process_resident_memory_bytes"));
    println!("the server has {open} and {:.0} MiB", memory / 1048576.0);
    assert!(open <= f64::from(places) && memory < 256.0 * 1048576.0, "{metrics}");
    drop(idle);
    assert_eq!(server.ask("POST", &path, &exec("true")).0, 200);
    server.signal(Signal::TERM);
    assert_eq!(server.ended().0, Some(0));
}

#[test]
fn an_option_that_names_a_key_that_is_not_there_is_noted() {
    let machine = Machine::new();
    let options = ["--metrics-key", "nobody", "--image-key", "ours", "--image-key", "noone"];
    let mut server = Server::start(&machine, &[], &options, &[]);
    server.signal(Signal::TERM);
    let log = server.ended().1;
    for (name, option) in [("nobody", "--metrics-key"), ("noone", "--image-key")] {
        let note = format!("there is no key `{name}`, which {option} names: eyot keys create {name}");
        assert!(log.contains(&note), "{log}");
    }
    assert!(!log.contains("no key `ours`"), "{log}");
}
