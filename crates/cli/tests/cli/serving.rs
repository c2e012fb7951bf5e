//! `eyot serve` as a process: its end, its secrets, and thousands of connections without a request.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde_json::json;

use crate::machine::{Machine, Ran};
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
fn a_command_of_a_key_that_is_revoked_says_so() {
    let machine = Machine::new();
    let server = Server::start(&machine, &[], &[], &[]);
    let id = server.sandbox();
    let url = format!("http://{}", server.address);
    let mut command =
        machine.command(&["--server", &url, "exec", &id, "--", "sh", "-c", "echo begun; sleep 1000"]);
    let mut running = machine.spawn(command.env("EYOT_API_KEY", &server.key));
    let mut begun = String::new();
    BufReader::new(running.stdout.take().unwrap()).read_line(&mut begun).unwrap();
    assert_eq!(begun, "begun\n");
    machine.run(&["keys", "revoke", "ours"]).success();
    let ended = Ran::from(running.wait_with_output().unwrap());
    assert!(ended.failure(125).contains("the key was revoked"), "{ended:?}");
}

#[test]
fn what_follows_by_a_key_that_is_revoked_says_so() {
    let machine = Machine::new();
    let server = Server::start(&machine, &[], &[], &[]);
    let id = server.sandbox();
    let url = format!("http://{}", server.address);
    let asked = |words: &[&str]| {
        let mut command = machine.command(&[&["--server", &url][..], words].concat());
        machine.spawn(command.env("EYOT_API_KEY", &server.key))
    };
    let process = Ran::from(
        asked(&["start", &id, "--", "sh", "-c", "echo begun; sleep 1000"]).wait_with_output().unwrap(),
    );
    let process = process.success();
    let following = [asked(&["logs", "-f", &id, process.trim()]), asked(&["events", "--follow"])];
    let begun = following.map(|mut following| {
        let mut output = BufReader::new(following.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        (following, output)
    });
    machine.run(&["keys", "revoke", "ours"]).success();
    for (following, _output) in begun {
        let ended = Ran::from(following.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(125), "{ended:?}");
        assert!(ended.stderr.contains("eyot: the key was revoked"), "{ended:?}");
    }
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
