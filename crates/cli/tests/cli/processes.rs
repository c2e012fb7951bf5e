//! `start`, `ps`, `logs`, `kill` and `wait`.

use super::machine::Machine;

#[test]
fn a_started_process_outlives_the_call_and_its_log_is_kept_by_stream() {
    let machine = Machine::with_sandbox();
    let line = "echo out; echo err >&2; sleep 0.2; echo end; exit 6";
    assert_eq!(machine.run(&["start", "box", "--", "sh", "-c", line]).success(), "p1\n");
    let followed = machine.run(&["logs", "-f", "box", "p1"]);
    assert_eq!(
        (followed.code, followed.text().as_str(), followed.stderr.as_str()),
        (Some(0), "out\nend\n", "err\n")
    );
    assert_eq!(machine.run(&["wait", "box", "p1"]).code, Some(6));
    assert_eq!(machine.run(&["logs", "--stream", "stdout", "--tail", "1", "box", "p1"]).success(), "end\n");
    assert_eq!(machine.run(&["logs", "--tail-bytes", "3", "box", "p1"]).success(), "nd\n");
    assert_eq!(machine.run(&["logs", "--since-offset", "8", "--limit", "2", "box", "p1"]).success(), "en");
    assert_eq!(machine.run(&["logs", "-n", "2", "-f", "box", "p1"]).stderr, "err\n");
    assert_eq!(machine.run(&["logs", "-n", "2", "--tail-bytes", "2", "box", "p1"]).code, Some(2));
    let listed = machine.run(&["ps", "box"]).success();
    assert!(listed.starts_with("ID ") && listed.contains("exited 6"), "{listed}");
    assert_eq!(machine.run(&["ps", "-q", "box"]).success(), "p1\n");
}

#[test]
fn json_describes_processes_and_chunks_of_their_logs() {
    let machine = Machine::with_sandbox();
    let started = machine.run(&["--json", "start", "box", "--", "echo", "hi"]).json();
    assert_eq!(started["id"], "p1");
    machine.run(&["wait", "box", "p1"]).success();
    let log = machine.run(&["--json", "logs", "-f", "box", "p1"]).success();
    let objects: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let range = serde_json::json!({ "start": 0, "end": 3, "total_bytes": 3, "dropped_bytes": 0 });
    assert_eq!(objects[0]["range"], range);
    let chunk = serde_json::json!({ "stream": "stdout", "offset": 0, "stream_offset": 0, "data": "hi\n" });
    assert_eq!(objects[1..], [chunk]);
    assert_eq!(machine.run(&["--json", "ps", "box"]).json()[0]["id"], "p1");
}

#[test]
fn a_signal_reaches_the_group_and_the_tree_dies_whatever_it_ignores() {
    let machine = Machine::with_sandbox();
    machine.run(&["start", "box", "--", "sleep", "100"]).success();
    machine.run(&["kill", "box", "p1"]).success();
    assert_eq!(machine.run(&["wait", "box", "p1"]).code, Some(143));
    let line = "trap '' TERM; echo ready; while :; do sleep 1; done";
    machine.run(&["start", "box", "--", "sh", "-c", line]).success();
    machine.run(&["kill", "--tree", "box", "p2"]).success();
    assert_eq!(machine.run(&["wait", "box", "p2"]).code, Some(137));
}

#[test]
fn a_signal_is_taken_as_people_type_it() {
    let machine = Machine::with_sandbox();
    let spellings: [&[&str]; 5] =
        [&["-9"], &["-KILL"], &["-s", "KILL"], &["--signal", "9"], &["-s", "SIGKILL"]];
    for (index, spelling) in spellings.into_iter().enumerate() {
        machine.run(&["start", "box", "--", "sleep", "100"]).success();
        let process = format!("p{}", index + 1);
        machine.run(&[&["kill"], spelling, &["box", &process]].concat()).success();
        assert_eq!(machine.run(&["wait", "box", &process]).code, Some(137), "{spelling:?}");
    }
    assert_eq!(machine.run(&["kill", "-99", "box", "p1"]).code, Some(2));
}

#[test]
fn a_process_has_the_input_the_terminal_and_the_deadline_that_are_asked_for() {
    let machine = Machine::with_sandbox();
    let start = ["start", "-i", "box", "--", "sh", "-c", "cat; tty"];
    assert_eq!(machine.run_with_input(&start, b"given\n").success(), "p1\n");
    assert_eq!(machine.run(&["wait", "box", "p1"]).code, Some(1));
    assert_eq!(machine.run(&["logs", "box", "p1"]).success(), "given\nnot a tty\n");
    machine.run(&["start", "-t", "box", "--", "stty", "size"]).success();
    machine.run(&["wait", "box", "p2"]).success();
    assert_eq!(machine.run(&["logs", "box", "p2"]).success(), "24 80\r\n");
    machine.run(&["start", "--timeout", "200ms", "box", "--", "sleep", "100"]).success();
    assert_eq!(machine.run(&["wait", "box", "p3"]).code, Some(124));
    let listed = machine.run(&["ps", "box"]).success();
    assert!(listed.contains("timed out"), "{listed}");
    let too_much = machine.run_with_input(&["start", "-i", "box", "--", "cat"], &vec![b'x'; 65_537]);
    assert!(too_much.failure(125).contains("65536 bytes"), "{}", too_much.stderr);
}

#[test]
fn who_waits_no_longer_than_so_long_is_told_and_the_process_goes_on() {
    let machine = Machine::with_sandbox();
    machine.run(&["start", "box", "--", "sleep", "1000"]).success();
    let waited = machine.run(&["wait", "--timeout", "100ms", "box", "p1"]);
    assert_eq!(waited.code, Some(124), "{waited:?}");
    assert!(waited.stderr.contains("p1 in `box`: it has not ended after 100ms"), "{}", waited.stderr);
    assert!(machine.run(&["ps", "box"]).success().contains("running"));
    assert_eq!(machine.run(&["wait", "--timeout", "-1s", "box", "p1"]).code, Some(2));
}

#[test]
fn a_process_that_is_not_there_is_one_sentence() {
    let machine = Machine::with_sandbox();
    machine.run(&["logs", "box", "p9"]).failure(125);
    machine.run(&["kill", "box", "p9"]).failure(125);
    machine.run(&["wait", "box", "9"]).failure(125);
    assert_eq!(machine.run(&["wait", "box", "nine"]).code, Some(2));
}

#[test]
fn a_followed_log_ends_when_nobody_reads_it_any_more() {
    let machine = Machine::with_sandbox();
    machine.run(&["start", "box", "--", "sh", "-c", "echo ready; sleep 100"]).success();
    let child = machine.spawn(&mut machine.command(&["logs", "-f", "box", "p1"]));
    assert_eq!(machine.first_line_of(child), "ready\n");
}

#[test]
fn a_program_that_cannot_be_started_ends_as_with_exec_and_uses_up_no_number() {
    let machine = Machine::with_sandbox();
    for command in ["exec", "start"] {
        assert!(machine.run(&[command, "box", "--", "nosuch"]).failure(127).contains("command not found"));
        assert!(machine.run(&[command, "box", "--", "/etc"]).failure(126).contains("permission denied"));
        let line = machine.run(&[command, "box", "--", "echo a b"]);
        assert!(line.failure(127).contains("-- sh -c 'echo a b'"), "{}", line.stderr);
        machine.run(&[command, "-w", "missing", "box", "--", "true"]).failure(125);
        machine.run(&[command, "--user", "nosuch", "box", "--", "true"]).failure(125);
    }
    assert_eq!(machine.run(&["start", "box", "--", "true"]).success(), "p1\n");
}

#[test]
fn a_process_that_is_not_there_is_answered_with_the_command_that_lists_those_that_are() {
    let machine = Machine::new();
    machine.create("box");
    for command in ["kill", "wait", "logs"] {
        let ran = machine.run(&[command, "box", "p9"]);
        assert!(ran.failure(125).contains("`eyot ps box` lists its processes"), "{ran:?}");
    }
}
