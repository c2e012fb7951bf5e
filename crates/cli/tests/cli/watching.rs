//! `watch`: one line for each event, until the place is gone or the reader goes away.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout};

use super::machine::Machine;

/// Starts a `watch` and waits until it has printed that it watches.
fn watching(machine: &Machine, arguments: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let arguments: Vec<&str> = ["watch"].into_iter().chain(arguments.iter().copied()).collect();
    let mut child = machine.spawn(&mut machine.command(&arguments));
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.starts_with("eyot: watching /workspace"), "{said}");
    (child, stdout)
}

#[test]
fn every_event_is_a_line_and_the_end_of_the_place_is_the_end() {
    let machine = Machine::with_sandbox();
    machine.run(&["exec", "box", "--", "mkdir", "-p", "d/sub"]).success();
    let (mut child, stdout) = watching(&machine, &["box", "d"]);
    let line = "cd d && mkdir sub/new && mv sub/new sub/old && rmdir sub/old && touch \"$(printf 'a\\nb')\"";
    machine.run(&["exec", "box", "--", "bash", "-c", line]).success();
    let mut lines = stdout.lines().map(Result::unwrap);
    let mut told: Vec<String> = lines.by_ref().take(4).collect();
    let expected = [
        "created /workspace/d/sub/new/",
        "renamed /workspace/d/sub/new/ -> /workspace/d/sub/old/",
        "removed /workspace/d/sub/old/",
        "created /workspace/d/a\\nb",
    ];
    assert_eq!(told, expected);
    machine.run(&["exec", "box", "--", "rm", "-r", "d"]).success();
    told.extend(lines);
    assert_eq!(told.last().map(String::as_str), Some("removed /workspace/d/"));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn json_is_one_object_a_line_and_without_recursion_only_the_names_themselves_count() {
    let machine = Machine::with_sandbox();
    machine.run(&["exec", "box", "--", "mkdir", "-p", "d"]).success();
    let (mut child, stdout) = watching(&machine, &["--json", "box", "--no-recursive"]);
    machine.run(&["exec", "box", "--", "sh", "-c", "mkdir d/hidden e && mv e f"]).success();
    let objects: Vec<serde_json::Value> =
        stdout.lines().take(2).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let expected = [
        serde_json::json!({ "kind": "created", "path": "/workspace/e", "is_directory": true }),
        serde_json::json!({
            "kind": "renamed", "from": "/workspace/e", "path": "/workspace/f", "is_directory": true
        }),
    ];
    assert_eq!(objects, expected);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_is_not_there_or_has_too_many_directories_is_one_sentence() {
    let machine = Machine::with_sandbox();
    machine.run(&["exec", "box", "--", "mkdir", "-p", "a/b"]).success();
    assert!(machine.run(&["watch", "box", "gone"]).failure(125).contains("watch `gone` in sandbox `box`"));
    assert!(machine.run(&["watch", "box", "--max-directories", "2"]).failure(125).contains("more than 2"));
    assert_eq!(machine.run(&["watch", "box", "--max-directories", "0"]).failure(125).lines().count(), 1);
}
