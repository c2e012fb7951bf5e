//! `events`: reading the log from a number on, of one sandbox, as it happens, and verifying it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::Outcome;
use eyot_engine::events::{EventKind, EventLog, EventLogOptions, NewEvent};
use eyot_engine::store::Store;

use super::machine::Machine;

/// Opens the log that the program reads.
fn log(machine: &Machine) -> Arc<EventLog> {
    EventLog::open(machine.state().join("events"), EventLogOptions::default()).unwrap()
}

fn of(sandbox: &str, kind: EventKind, reason: &str) -> NewEvent {
    NewEvent::new(kind, reason).in_pool("p").of_sandbox(sandbox, format!("sb_{sandbox}"))
}

/// Makes a machine with three events, and a store that has no anchor of its log yet.
fn machine() -> Machine {
    let machine = Machine::new();
    drop(Store::open(machine.state().join("eyot.db")).unwrap());
    let log = log(&machine);
    let command = || "printf 'a\nb'".to_owned();
    let ended = EventKind::ExecEnded {
        command: command(),
        outcome: Outcome::Exited(2),
        duration_ms: 1500,
        stdout_bytes: 3,
        stderr_bytes: 0,
    };
    log.append(of("box", EventKind::Created, "it was asked for")).unwrap();
    log.append(of("box", EventKind::ExecStarted { command: command() }, "exec was called")).unwrap();
    log.append(of("other", ended, "it exited with code 2")).unwrap();
    machine
}

/// Returns the numbers at the beginnings of the lines.
fn numbers(text: &str) -> Vec<u64> {
    text.lines().map(|line| line.split("  ").next().unwrap().parse().unwrap()).collect()
}

#[test]
fn an_event_is_a_line_with_number_time_place_what_and_why() {
    let text = machine().run(&["events"]).success();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split("  ").collect()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0][2..], ["p/box", "created", "(it was asked for)"]);
    assert_eq!(lines[1][2..], ["p/box", "exec_started", "printf 'a\\nb' (exec was called)"]);
    let ended = "printf 'a\\nb': exit code 2 in 1s 500ms (it exited with code 2)";
    assert_eq!(lines[2][2..], ["p/other", "exec_ended", ended]);
}

#[test]
fn a_number_a_limit_and_a_sandbox_choose_events() {
    let machine = machine();
    assert_eq!(numbers(&machine.run(&["events", "--from", "2"]).success()), [2, 3]);
    assert_eq!(numbers(&machine.run(&["events", "--limit", "2"]).success()), [1, 2]);
    assert_eq!(numbers(&machine.run(&["events", "--sandbox", "p/box"]).success()), [1, 2]);
    assert_eq!(numbers(&machine.run(&["events", "p/box"]).success()), [1, 2]);
    assert_eq!(machine.run(&["events", "p/box", "--sandbox", "p/box"]).code, Some(2));
    assert_eq!(numbers(&machine.run(&["events", "--sandbox", "p/other", "--limit", "1"]).success()), [3]);
    let none = machine.run(&["events", "--sandbox", "box"]);
    assert!(none.stderr.contains("there is no event of `box`\n"), "{}", none.stderr);
    assert_eq!((none.code, none.stdout.as_slice()), (Some(0), &b""[..]));
    assert_eq!(machine.run(&["events", "--from", "4"]).success(), "");
    for wrong in [["--limit", "0"], ["--from", "-1"], ["--limit", "ten"]] {
        assert_eq!(machine.run(&["events", wrong[0], wrong[1]]).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn more_events_than_are_read_at_once_are_all_printed() {
    let machine = Machine::new();
    let log = log(&machine);
    for _ in 0..600 {
        log.append(NewEvent::new(EventKind::Slept, "it was idle")).unwrap();
    }
    assert_eq!(numbers(&machine.run(&["events"]).success()), (1..=600).collect::<Vec<u64>>());
    assert_eq!(numbers(&machine.run(&["events", "--limit", "300", "--from", "5"]).success()).len(), 300);
}

#[test]
fn json_is_one_object_a_line_as_it_stands_in_the_log() {
    let machine = machine();
    let printed = machine.run(&["events", "--json"]).success();
    let segment = machine.state().join("events/00000000000000000001.jsonl");
    assert_eq!(printed, std::fs::read_to_string(segment).unwrap());
}

#[test]
fn following_tells_what_comes_until_the_limit() {
    let machine = machine();
    let arguments = ["events", "--follow", "--from", "3", "--sandbox", "p/other", "--limit", "2"];
    let mut child = machine.spawn(&mut machine.command(&arguments));
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(stdout.next().unwrap().unwrap().starts_with("3  "));
    let log = log(&machine);
    log.append(of("box", EventKind::Slept, "it was idle")).unwrap();
    log.append(of("other", EventKind::Slept, "it was idle")).unwrap();
    assert!(stdout.next().unwrap().unwrap().starts_with("5  "));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn following_ends_when_nobody_reads_it_any_more() {
    let machine = machine();
    let child = machine.spawn(&mut machine.command(&["-q", "events", "-f"]));
    assert!(machine.first_line_of(child).starts_with("1  "));
}

#[test]
fn following_waits_for_a_log_that_is_not_there_yet() {
    let machine = Machine::new();
    let mut child = machine.spawn(&mut machine.command(&["events", "-f", "--limit", "1"]));
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "eyot: following the events; Ctrl-C ends it\n");
    log(&machine).append(of("box", EventKind::Created, "it was asked for")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(numbers(std::str::from_utf8(&output.stdout).unwrap()), [1]);
}

#[test]
fn where_nothing_has_happened_nothing_is_made() {
    let machine = Machine::new();
    for arguments in [&["events"][..], &["events", "--verify"]] {
        let ran = machine.run(arguments);
        assert_eq!((ran.code, ran.text().as_str()), (Some(0), ""));
        assert_eq!(ran.stderr, "eyot: nothing has happened yet\n");
    }
    assert_eq!(machine.run(&["events", "-q"]).success(), "");
    assert!(!machine.state().exists());
}

#[test]
fn a_whole_log_is_said_to_be_whole() {
    let machine = machine();
    let text = machine.run(&["events", "--verify"]).success();
    assert_eq!(text, "Log verified: events 1–3\n");
    let json = machine.run(&["--json", "events", "--verify"]).json();
    assert_eq!(json, serde_json::json!({ "events": 3, "first_seq": 1, "last_seq": 3 }));
    let contradiction = machine.run(&["events", "--verify", "--follow"]);
    assert!(contradiction.code == Some(2) && contradiction.stderr.contains("cannot be used with"));
}

#[test]
fn a_changed_log_exits_with_1_and_says_where() {
    let machine = machine();
    let segment = machine.state().join("events/00000000000000000001.jsonl");
    let text = std::fs::read_to_string(&segment).unwrap();
    std::fs::write(&segment, text.replacen("printf", "print", 1)).unwrap();
    let ran = machine.run(&["events", "--verify"]);
    let said = ran.failure(1);
    assert!(said.contains("event 2 was changed"), "{said}");
    assert!(said.contains("(00000000000000000001.jsonl, line 2)"), "{said}");
    assert!(said.contains("hint: events before 2 are intact"), "{said}");
    assert_eq!(ran.text(), "");
}

#[test]
fn a_log_that_cannot_be_read_is_another_failure_than_a_changed_one() {
    let machine = Machine::new();
    machine.write("state/events", "not a folder");
    machine.run(&["events"]).failure(125);
    machine.run(&["events", "--verify"]).failure(125);
}

/// Makes a machine whose log is anchored, and a copy of the log from before its last event.
fn anchored() -> (Machine, PathBuf) {
    let machine = Machine::new();
    machine.run(&["pool", "create", "p", "box"]).success();
    let (events, copy) = (machine.state().join("events"), machine.path("copy"));
    copy_folder(&events, &copy);
    machine.run(&["pool", "create", "p", "other"]).success();
    machine.run(&["events", "--verify"]).success();
    (machine, copy)
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[track_caller]
fn says_that_events_are_missing(machine: &Machine, what: &str) {
    let ran = machine.run(&["events", "--verify"]);
    let said = ran.failure(1);
    assert!(
        said.contains("`eyot.db` knows") || said.contains("was missing when the log went on"),
        "{what}: {said}"
    );
    assert!(said.contains("eyot events --new-log"), "{what}: {said}");
}

#[test]
fn an_older_copy_in_the_place_of_the_log_is_found_also_after_more_has_happened() {
    let (machine, copy) = anchored();
    let events = machine.state().join("events");
    fs::remove_dir_all(&events).unwrap();
    copy_folder(&copy, &events);
    says_that_events_are_missing(&machine, "an older copy");
    for name in ["a", "b", "c", "d"] {
        machine.run(&["pool", "create", "p", name]).success();
        says_that_events_are_missing(&machine, name);
    }
}

#[test]
fn a_log_that_was_removed_is_found_and_a_new_one_can_be_begun() {
    let (machine, _copy) = anchored();
    let events = machine.state().join("events");
    fs::remove_dir_all(&events).unwrap();
    says_that_events_are_missing(&machine, "no folder");
    machine.run(&["pool", "create", "p", "more"]).success();
    says_that_events_are_missing(&machine, "a new log");
    assert!(machine.run(&["events", "--new-log"]).success().contains("the old log is kept in"));
    machine.run(&["events", "--verify"]).success();
    machine.run(&["pool", "create", "p", "last"]).success();
    machine.run(&["events", "--verify"]).success();
}

#[test]
fn a_log_that_is_ahead_of_its_anchor_or_has_none_is_whole() {
    let (machine, _copy) = anchored();
    log(&machine).append(of("box", EventKind::Slept, "it was idle")).unwrap();
    machine.run(&["events", "--verify"]).success();
    machine.run(&["pool", "create", "p", "more"]).success();
    machine.run(&["events", "--verify"]).success();
}

#[test]
fn a_log_without_the_store_is_verified_and_says_what_is_not_found_so() {
    let machine = Machine::new();
    log(&machine).append(of("box", EventKind::Created, "it was asked for")).unwrap();
    let ran = machine.run(&["events", "--verify"]);
    assert_eq!((ran.code, ran.text().as_str()), (Some(0), "Log verified: events 1–1\n"));
    assert!(ran.stderr.starts_with("eyot: `eyot.db` is missing"), "{ran:?}");
}
