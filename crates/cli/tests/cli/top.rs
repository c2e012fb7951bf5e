//! `top`: one sample of all sandboxes, one of a single sandbox, and repeated ones.

use std::io::{BufRead, BufReader};

use super::machine::Machine;

#[test]
fn every_sandbox_has_a_row_and_the_busiest_comes_first() {
    let machine = Machine::with_sandbox();
    machine.create("busy");
    machine.run(&["start", "busy", "--", "sh", "-c", "while :; do :; done"]).success();
    let table = machine.run(&["top", "--once"]).success();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "STATUS", "CPU%", "MEMORY", "PEAK", "LIMIT", "PIDS", "DISK", "AGE", "IDLE"]);
    assert_eq!((rows.len(), rows[1][0], rows[2][0]), (3, "busy", "box"), "{table}");
    let used: f64 = rows[1][2].parse().unwrap();
    assert!(used > 1.0 && rows[1][1] == "running", "{table}");
    let by_name = machine.run(&["top", "--once", "--sort", "name"]).success();
    assert!(by_name.lines().nth(1).unwrap().starts_with("box "), "{by_name}");
    let json = machine.run(&["top", "--once", "--json"]).success();
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((first["name"].as_str(), first["status"].as_str()), (Some("busy"), Some("running")));
    assert!(
        first["cpu_percent"].as_f64().unwrap() > 1.0 && first["memory_bytes"].as_u64().is_some(),
        "{json}"
    );
    assert_eq!(json.lines().count(), 2);
}

#[test]
fn the_processes_of_one_sandbox_are_shown_with_user_and_command_line() {
    let machine = Machine::with_sandbox();
    machine.run(&["start", "box", "--", "sleep", "86470"]).success();
    let table = machine.run(&["top", "box", "--once"]).success();
    assert!(table.starts_with("PID "), "{table}");
    let row = table.lines().find(|line| line.ends_with("sleep 86470")).unwrap_or_else(|| panic!("{table}"));
    assert_eq!(row.split_whitespace().nth(1), Some("user"));
    machine.run(&["top", "gone", "--once"]).failure(125);
    assert_eq!(machine.run(&["top", "--interval", "1ms"]).code, Some(2));
}

#[test]
fn without_a_terminal_and_an_interval_it_prints_once() {
    let machine = Machine::with_sandbox();
    let table = machine.run(&["top"]).success();
    assert_eq!(table.lines().count(), 2, "{table}");
    assert!(machine.run(&["top", "box"]).success().starts_with("PID "));
}

#[test]
fn it_looks_again_and_again_until_nobody_reads() {
    let machine = Machine::with_sandbox();
    let mut child = machine.spawn(&mut machine.command(&["top", "--json", "--interval", "100ms"]));
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told: Vec<serde_json::Value> =
        lines.take(3).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(told.iter().all(|row| row["name"] == "box"), "{told:?}");
    assert_eq!(child.wait().unwrap().code(), Some(141));
}
