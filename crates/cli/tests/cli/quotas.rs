//! A5: the quotas that a server has without configuration, over HTTP.

use serde_json::{Value, json};

use super::machine::Machine;
use super::server::Server;

/// The quota of memory on this host, in MiB: three quarters.
fn memory_quota() -> u64 {
    let system = rustix::system::sysinfo();
    (((system.totalram as u64) * u64::from(system.mem_unit)) >> 20) / 4 * 3
}

fn make(server: &Server, limits: &Value) -> (u16, Value) {
    let body = json!({ "spec": { "limits": limits } }).to_string();
    let (status, answer) = server.ask("POST", "/v1/sandboxes", &body);
    (status, serde_json::from_str(&answer).unwrap_or_default())
}

/// Refused for a quota, with the numbers and with what to do.
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
    let part = (memory / 32).clamp(256, 4096);
    assert_eq!(limits["memory_mib"], part, "{limits}");
    assert!(limits["disk_mib"].is_u64(), "{limits}");
    refused(&server, &json!({ "memory_mib": memory - part + 1 }), &[part, memory]);
    refused(&server, &json!({ "disk_mib": 1_u64 << 50 }), &[1 << 50]);
    refused(&server, &json!({ "pids": 1_u64 << 50 }), &[1 << 50]);
    remove(&server, &usual);
}

#[test]
fn a5_a_quota_is_taken_away_by_the_word_and_by_no_other() {
    let machine = Machine::new();
    let env = [("EYOT_POOL_MEMORY_MIB", "unlimited")];
    let server = Server::start(&machine, &[], &[], &env);
    let id = made(&server, &json!({ "memory_mib": memory_quota() + 1 }));
    remove(&server, &id);
    refused(&server, &json!({ "pids": 1_u64 << 50 }), &[1 << 50]);
    let mut wrong = machine.command(&["serve", "--listen", "127.0.0.1:0"]);
    let wrong = machine.spawn(wrong.env("EYOT_POOL_DISK_MIB", "none")).wait_with_output().unwrap();
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert!(wrong.status.code() == Some(2) && said.contains("`none` is no quota"), "{said}");
}
