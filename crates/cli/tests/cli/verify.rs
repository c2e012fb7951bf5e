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
    assert_nothing_is_left(&machine);
}

fn assert_nothing_is_left(machine: &Machine) {
    let left = std::fs::read_dir(machine.state())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    assert!(!left.into_iter().any(|name| name.starts_with("verify-")));
    machine.assert_empty();
}

#[test]
fn what_a_case_has_closed_to_its_owner_is_removed_as_well() {
    let machine = Machine::new();
    let ran = machine.run(&["verify", "--filter", "what_was_closed_inside"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_nothing_is_left(&machine);
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
fn on_another_provider_the_contract_is_tried_and_no_threat() {
    let machine = Machine::new();
    let listed = machine.run(&["--provider", "docker", "verify", "--list"]).success();
    assert!(listed.lines().skip(1).all(|line| line.starts_with("contract ")), "{listed}");
    let all = machine.run(&["verify", "--list", "--filter", "contract"]).success();
    assert_eq!(listed, all);
    let ran = machine.run(&["--provider", "docker", "verify", "--filter", "k5"]);
    let said = ran.failure(2);
    assert!(said.contains("no rule of the contract") && said.contains("native sandboxes"), "{ran:?}");
    assert!(!machine.state().exists());
}

#[test]
fn a_provider_that_can_make_no_sandbox_is_not_verified() {
    let machine = Machine::new();
    let nowhere = format!("address=unix://{}", machine.path_text("no-engine.sock"));
    let ran = machine.run(&["--provider", "docker", "--provider-option", &nowhere, "verify"]);
    assert!(ran.failure(125).contains("no Docker Engine answers"), "{ran:?}");
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
