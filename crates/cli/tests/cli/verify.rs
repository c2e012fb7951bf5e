//! `eyot verify`: a few rows of it; all of them are the tests `threats` and `conformance`.

use super::machine::Machine;

#[test]
fn a_row_is_tried_by_its_id_and_nothing_is_left() {
    let machine = Machine::new();
    let ran = machine.run(&["verify", "--filter", "k5", "--filter", "k10", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = ran.json();
    let rows: Vec<&str> =
        report["rows"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(rows, ["K5", "K10"]);
    assert_eq!(report["summary"]["fail"], 0);
    let left = std::fs::read_dir(machine.state())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    assert!(!left.into_iter().any(|name| name.starts_with("verify-")));
    machine.assert_empty();
}

#[test]
fn progress_in_a_file_is_a_line_for_each_case() {
    let machine = Machine::new();
    let ran = machine.run(&["verify", "--filter", "k5"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let count = lines.len();
    assert!(count > 0 && lines[count - 1].starts_with(&format!("[{count}/{count}] ")), "{ran:?}");
    assert!(lines.iter().all(|line| line.contains(": k05_")), "{ran:?}");
    assert_eq!(machine.run(&["-q", "verify", "--filter", "k5"]).stderr, "");
}

#[test]
fn the_sandboxes_of_an_engine_are_not_what_is_tried() {
    let machine = Machine::new();
    let ran = machine.run(&["--provider", "docker", "verify", "--filter", "k5"]);
    assert!(ran.failure(2).contains("native sandboxes"), "{ran:?}");
}

#[test]
fn what_would_be_tried_is_listed_without_trying_it() {
    let machine = Machine::new();
    let listed = machine.run(&["verify", "--list"]).success();
    for name in ["K1 ", "F7 ", "E6 ", "N1 ", "contract "] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{name} is not in the list");
    }
    assert!(!machine.state().exists());
    machine.run(&["verify", "--filter", "no such case"]).failure(2);
}
