//! The benchmark runs and reports; its figures gate nothing.

use serde_json::Value;

use crate::machine::{Machine, Ran};

#[test]
fn every_row_of_the_benchmark_is_measured_and_nothing_of_it_is_left() {
    let machine = Machine::new();
    let printed = machine.run(&["bench", "--rounds", "2", "--live", "3", "--json"]).success();
    let report: Value = serde_json::from_str(&printed).unwrap();
    let rows = report["rows"].as_array().unwrap();
    for name in [
        "exec /bin/true",
        "create → ready",
        "destroy",
        "exec sh -c true over HTTP, keep-alive, unix socket",
        "exec sh -c true over HTTP, keep-alive, TCP",
        "read 1 MiB",
        "write 1 MiB",
        "create + exec + destroy",
        "snapshot of a sleeping sandbox",
        "fork → ready, from a snapshot with 10 files",
    ] {
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no row {name}"));
        assert!(row["p50_us"].as_f64().unwrap() > 0.0 && row["samples"] == 2, "{row}");
    }
    let crowd = &report["crowd"];
    assert_eq!(crowd["live"], 3);
    assert!(
        crowd["ls_p50_ms"].as_f64().unwrap() > 0.0 && crowd["top_p50_ms"].as_f64().unwrap() > 0.0,
        "{crowd}"
    );
    let left: Vec<String> = std::fs::read_dir(machine.state().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("eyot-bench-"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_benchmark_of_no_rounds_is_refused() {
    let refused = Machine::new().run(&["bench", "--rounds", "0"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--rounds"), "{refused:?}");
}

#[test]
fn a_benchmark_without_an_engine_is_a_typed_error_that_says_what_to_start() {
    let machine = Machine::new();
    let nowhere = format!("unix://{}", machine.path_text("no-engine.sock"));
    let mut command = machine.command(&["--provider", "docker", "bench", "--rounds", "1"]);
    let ran = Ran::from(command.env("DOCKER_HOST", nowhere).output().unwrap());
    let said = ran.failure(125);
    assert!(said.contains("no Docker Engine answers") && said.contains("DOCKER_HOST"), "{said}");
}

#[test]
fn what_is_measured_natively_alone_is_refused_for_an_engine() {
    let machine = Machine::new();
    for option in [&["--transfer"][..], &["--branches"], &["--live", "3"]] {
        let ran = machine.run(&[&["--provider", "docker", "bench"], option].concat());
        assert!(ran.failure(125).contains(option[0]), "{ran:?}");
    }
}
