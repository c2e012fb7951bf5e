//! A5: the default quotas of a server, over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;

use serde_json::{Value, json};

use super::machine::{Machine, Ran};
use super::server::Server;

/// Returns the memory quota on this host, in MiB: three quarters.
fn memory_quota() -> u64 {
    let system = rustix::system::sysinfo();
    (((system.totalram as u64) * u64::from(system.mem_unit)) >> 20) / 4 * 3
}

/// Returns the memory of a sandbox that sets no limit, in MiB, for this quota.
fn part_of(memory: u64) -> u64 {
    (memory / 256).clamp(512, 4096)
}

/// Returns the processes of a sandbox that sets no limit.
fn processes_of_one() -> u64 {
    let number = |name: &str| -> u64 {
        std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap().trim().parse().unwrap()
    };
    (number("pid_max").min(number("threads-max")) / 4 * 3 / 256).clamp(256, 512)
}

fn make(server: &Server, limits: &Value) -> (u16, Value) {
    let body = json!({ "spec": { "limits": limits } }).to_string();
    let (status, answer) = server.ask("POST", "/v1/sandboxes", &body);
    (status, serde_json::from_str(&answer).unwrap_or_default())
}

/// Asserts that a create is refused for a quota, with the numbers and a hint.
#[track_caller]
fn refused(server: &Server, limits: &Value, numbers: &[u64]) {
    let (status, problem) = make(server, limits);
    assert_eq!((status, &problem["kind"]), (429, &json!("quota")), "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(numbers.iter().all(|number| detail.contains(&number.to_string())), "{detail}");
    assert!(problem["hint"].is_string(), "{problem}");
}

#[track_caller]
fn made(server: &Server, limits: &Value) -> String {
    let (status, sandbox) = make(server, limits);
    assert_eq!(status, 201, "{sandbox}");
    sandbox["id"].as_str().unwrap().to_owned()
}

fn remove(server: &Server, id: &str) {
    let (status, answer) = server.ask("DELETE", &format!("/v1/sandboxes/{id}"), "");
    assert!((200..300).contains(&status), "{answer}");
}

#[test]
fn a5_a_server_without_configuration_holds_quotas_at_their_edges() {
    let machine = Machine::new();
    let server = Server::start(&machine, &[], &[], &[]);
    let memory = memory_quota();
    refused(&server, &json!({ "memory_mib": memory + 1 }), &[memory, memory + 1]);
    let whole = made(&server, &json!({ "memory_mib": memory }));
    // One that names no limit gets one, and counts.
    refused(&server, &json!({}), &[memory]);
    remove(&server, &whole);
    let usual = made(&server, &json!({}));
    let (_, shown) = server.ask("GET", &format!("/v1/sandboxes/{usual}"), "");
    let limits = serde_json::from_str::<Value>(&shown).unwrap()["spec"]["limits"].clone();
    let part = part_of(memory);
    assert_eq!(limits["memory_mib"], part, "{limits}");
    assert!(limits["disk_mib"].is_u64(), "{limits}");
    assert_eq!(limits["pids"], processes_of_one(), "{limits}");
    refused(&server, &json!({ "memory_mib": memory - part + 1 }), &[part, memory]);
    refused(&server, &json!({ "disk_mib": 1_u64 << 50 }), &[1 << 50]);
    refused(&server, &json!({ "pids": 1_u64 << 22 }), &[1 << 22]);
    remove(&server, &usual);
}

#[test]
fn a5_a_quota_is_taken_away_by_the_word_and_by_no_other() {
    let machine = Machine::new();
    let env = [("EYOT_POOL_MEMORY_MIB", "unlimited")];
    let server = Server::start(&machine, &[], &[], &env);
    let id = made(&server, &json!({ "memory_mib": memory_quota() + 1 }));
    remove(&server, &id);
    refused(&server, &json!({ "pids": 1_u64 << 22 }), &[1 << 22]);
    let mut wrong = machine.command(&["serve", "--listen", "127.0.0.1:0"]);
    let wrong = machine.spawn(wrong.env("EYOT_POOL_DISK_MIB", "none")).wait_with_output().unwrap();
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(wrong.status.code() == Some(2) && said.contains("`none`: write a number of MiB"), "{said}");
}

#[test]
fn a5_a_server_without_configuration_has_room_for_256_small_sandboxes() {
    let machine = Machine::new();
    let server = Server::start(&machine, &[], &[], &[]);
    let small = json!({ "memory_mib": memory_quota() / 256, "pids": 64, "disk_mib": 64 });
    // The rest of 256 in one: each of them is there by its limits.
    let rest = json!({ "memory_mib": memory_quota() / 256 * 253, "pids": 253 * 64, "disk_mib": 253 * 64 });
    for limits in [&rest, &small, &small, &small] {
        made(&server, limits);
    }
}

/// `eyot mcp --http` on a free port.
struct McpOverHttp {
    child: Child,
    address: String,
    token: String,
}

impl McpOverHttp {
    fn start(machine: &Machine) -> Self {
        let mut child =
            machine.spawn(&mut machine.command(&["mcp", "--http", "127.0.0.1:0", "--pool", "shared"]));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let (place, token) = (lines.next().unwrap(), lines.next().unwrap());
        let address = place.split('/').nth(2).unwrap().to_owned();
        Self { child, address, token: token.rsplit(' ').next().unwrap().to_owned() }
    }

    /// Returns the whole answer to a message, with its headers.
    fn ask(&self, session: &str, message: &Value) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = message.to_string();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n{session}\
             Content-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Runs a command in a sandbox that is made for it, and returns the tool's answer.
    fn shell(&self, command: &str) -> String {
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" }
        });
        let opened = self
            .ask("", &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))
            .to_ascii_lowercase();
        let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect(&opened);
        let session = format!("Mcp-Session-Id: {id}\r\n");
        self.ask(&session, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let params = json!({ "name": "shell", "arguments": { "command": command } });
        self.ask(&session, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
    }
}

impl Drop for McpOverHttp {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a5_tools_over_http_have_the_quotas_of_a_server() {
    let machine = Machine::new();
    let server = McpOverHttp::start(&machine);
    let answer = server.shell("echo $((6*7))");
    assert!(answer.contains("42"), "{answer}");
    let id = machine.run(&["ls", "-q"]).success().trim().to_owned();
    let limits = machine.run(&["inspect", &id, "--json"]).json()["spec"]["limits"].clone();
    assert_eq!(limits["memory_mib"], part_of(memory_quota()), "{limits}");
    assert_eq!(limits["pids"], processes_of_one(), "{limits}");
}

#[test]
fn tools_over_http_with_too_few_files_say_how_many_are_needed() {
    let machine = Machine::new();
    let by = ["prlimit", "--nofile=64:64"];
    let refused = machine.command_by(&by, &["mcp", "--http", "127.0.0.1:0"]).output().unwrap();
    let said = Ran::from(refused).failure(125).to_owned();
    assert!(said.contains("open files are needed, and 64 are allowed"), "{said}");
}
