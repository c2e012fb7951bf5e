//! Streamed commands and terminals over the end of a server: the next one on the same state folder finds them as they are.

use std::io::{Read, Write};
use std::net::TcpStream;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::server::{Connection, Server};

/// A server-sent event.
#[derive(Debug)]
struct Event {
    name: String,
    id: Option<u64>,
    data: Value,
}

impl Event {
    fn text(&self) -> String {
        let bytes = BASE64_STANDARD.decode(self.data["data"].as_str().unwrap()).unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

/// The next event of an answer; lines that belong to no event are skipped.
fn next_event(connection: &mut Connection) -> Event {
    let (mut name, mut id, mut data) = (None, None, None);
    loop {
        let line = connection.line().expect("the stream has ended");
        assert!(!line.starts_with("HTTP/1.1 4"), "{line}");
        let field = |name: &str| line.strip_prefix(name).map(|rest| rest.trim().to_owned());
        name = field("event:").or(name);
        id = field("id:").map(|id| id.parse().unwrap()).or(id);
        data = field("data:").map(|data| serde_json::from_str(&data).unwrap()).or(data);
        if let (Some(name), Some(data), true) = (&name, &data, line.trim().is_empty()) {
            return Event { name: name.clone(), id, data: Value::clone(data) };
        }
    }
}

/// A terminal's WebSocket, as little of it as a test needs: one frame for each message, and none over 64 KiB.
struct Socket(TcpStream);

impl Socket {
    fn open(server: &Server, path: &str) -> Self {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.key
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Self(stream)
    }

    /// Types a few keys. The mask is zero, which changes nothing.
    fn send(&mut self, keys: &str) {
        let length = u8::try_from(keys.len()).unwrap();
        assert!(length < 126);
        let frame = [&[0x82, 0x80 | length, 0, 0, 0, 0], keys.as_bytes()].concat();
        self.0.write_all(&frame).unwrap();
    }

    fn next(&mut self) -> Vec<u8> {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                self.0.read_exact(&mut length).unwrap();
                usize::from(u16::from_be_bytes(length))
            }
            length => usize::from(length),
        };
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).unwrap();
        payload
    }

    /// Reads until the text was there, and returns everything.
    fn until(&mut self, wanted: &str) -> String {
        let mut seen = String::new();
        while !seen.contains(wanted) {
            seen.push_str(&String::from_utf8_lossy(&self.next()));
        }
        seen
    }
}

/// Ends a server by this signal, runs a line in the sandbox while there is none, and starts the next one on the same state
/// folder.
fn restarted(
    machine: &Machine,
    mut server: Server,
    signal: Signal,
    sandbox: &str,
    meanwhile: &str,
) -> Server {
    server.signal(signal);
    server.ended();
    // What did not survive would be waited for.
    machine.run(&["exec", "--timeout", "20s", sandbox, "--", "sh", "-c", meanwhile]).success();
    server.restart(machine)
}

fn a_streamed_command_survives(signal: Signal) {
    let machine = Machine::new();
    let server = Server::start(&machine, &[], &["--drain-timeout", "200ms"], &[]);
    let sandbox = server.sandbox();
    let path = format!("/v1/sandboxes/{sandbox}/exec/stream");
    // It writes once more while no server is there, and then waits for the next one's client.
    let line = "mkfifo here there go; echo first; read x < go; seq 1 20000; echo > here; read x < there; \
        echo last >&2; exit 7";
    let mut begun = server.connect();
    begun.send("POST", &path, &json!({ "command": line }).to_string());
    let started = next_event(&mut begun);
    assert_eq!(started.name, "started");
    let exec = started.data["exec"].as_str().unwrap().to_owned();
    let first = next_event(&mut begun);
    assert_eq!((first.text().as_str(), first.id), ("first\n", Some(1)));

    let next = restarted(&machine, server, signal, &sandbox, "echo > go; read x < here");

    let mut again = next.connect();
    again.send_with("GET", &format!("{path}/{exec}"), "Last-Event-ID: 1\r\n", "");
    let (mut out, mut number) = (String::new(), 1);
    let expected: String = (1..=20_000).map(|line| format!("{line}\n")).collect();
    while out.len() < expected.len() {
        let event = next_event(&mut again);
        number += 1;
        assert_eq!((event.name.as_str(), event.id), ("stdout", Some(number)));
        out.push_str(&event.text());
    }
    assert!(out == expected, "{} bytes came, not {}", out.len(), expected.len());
    machine.run(&["exec", &sandbox, "--", "sh", "-c", "echo > there"]).success();
    let last = next_event(&mut again);
    assert_eq!((last.name.as_str(), last.text().as_str()), ("stderr", "last\n"));
    let end = next_event(&mut again);
    assert_eq!((end.name.as_str(), &end.data["outcome"]), ("end", &json!({ "exited": 7 })));
    assert_eq!(end.data["stdout_bytes"], expected.len() + 6);
}

#[test]
fn a_streamed_command_survives_a_server_that_is_killed_and_no_byte_is_missed() {
    a_streamed_command_survives(Signal::KILL);
}

#[test]
fn a_streamed_command_survives_a_server_that_is_stopped_and_no_byte_is_missed() {
    a_streamed_command_survives(Signal::TERM);
}

fn a_terminal_survives(signal: Signal) {
    let machine = Machine::new();
    let server = Server::start(&machine, &[], &[], &[]);
    let sandbox = server.sandbox();
    let path = format!("/v1/sandboxes/{sandbox}/terminals");
    let line = "stty -echo; mkfifo here go; name=kept; echo ready; read x < go; seq 1 2000; echo > here; \
        read keys; echo \"is-$name-$keys\"; stty size; exit 6";
    let body = json!({ "command": line, "size": { "rows": 10, "cols": 60 } });
    let (status, opened) = server.ask("POST", &path, &body.to_string());
    assert_eq!(status, 201, "{opened}");
    let opened: Value = serde_json::from_str(&opened).unwrap();
    let socket = format!("{path}/{}/socket", opened["id"].as_str().unwrap());
    let mut screen = Socket::open(&server, &socket);
    screen.until("ready");

    let next = restarted(&machine, server, signal, &sandbox, "echo > go; read x < here");

    let (_, listed) = next.ask("GET", &path, "");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["terminals"], json!([opened]));
    let mut again = Socket::open(&next, &socket);
    let shown = again.until("\"started\"");
    let expected: String = (1..=2000).map(|line| format!("{line}\r\n")).collect();
    assert!(shown.contains(&format!("ready\r\n{expected}")), "{} bytes came", shown.len());
    again.send("typed\r");
    let rest = again.until("\"end\"");
    assert!(
        rest.contains("is-kept-typed") && rest.contains("10 60") && rest.contains("\"exit_code\":6"),
        "{rest}"
    );
}

#[test]
fn a_terminal_survives_a_server_that_is_killed_with_what_it_showed_meanwhile() {
    a_terminal_survives(Signal::KILL);
}

#[test]
fn a_terminal_survives_a_server_that_is_stopped_with_what_it_showed_meanwhile() {
    a_terminal_survives(Signal::TERM);
}
