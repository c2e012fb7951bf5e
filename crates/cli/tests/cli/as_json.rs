//! `--json`: results, and errors of every kind, as JSON for programs.

use serde_json::{Value, json};

use crate::machine::{Machine, Ran};

/// Returns the error that the last line on standard error is.
#[track_caller]
fn error_of(ran: &Ran) -> Value {
    let line = ran.stderr.lines().last().unwrap_or_default();
    let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    value["error"].clone()
}

#[test]
fn wrong_arguments_are_a_line_for_programs_too() {
    let machine = Machine::new();
    for (arguments, message, hint) in [
        (&["--json", "run", "--what"][..], "unexpected argument '--what' found", "`eyot run --help`"),
        (&["create", "--cpus", "two", "--json"], "invalid value 'two' for '--cpus <N>': ", ""),
        (&["--json", "rnu"], "unrecognized subcommand 'rnu'", "'run'"),
        (&["--json", "rm"], "the following required arguments were not provided: <NAME>", ""),
        (&["--json"], "a command is missing", ""),
    ] {
        let ran = machine.run(arguments);
        assert_eq!((ran.code, ran.text().as_str()), (Some(2), ""), "{ran:?}");
        let error = error_of(&ran);
        assert_eq!(error["kind"], "invalid", "{arguments:?}: {error}");
        assert!(error["message"].as_str().unwrap().starts_with(message), "{arguments:?}: {error}");
        assert!(error["hint"].as_str().unwrap_or_default().contains(hint), "{arguments:?}: {error}");
    }
    let text = machine.run(&["run", "--what", "--", "--json"]);
    assert!(!text.stderr.contains('{'), "{text:?}");
    assert!(machine.run(&["--json", "ls", "--help"]).success().contains("Usage:"));
}

#[test]
fn every_record_of_a_sandbox_names_its_pool() {
    let machine = Machine::new();
    let named = |arguments: &[&str]| machine.run(arguments).pool_and_name();
    let team = (json!("team"), json!("dev"));
    assert_eq!(named(&["--json", "create", "team/dev"]), team);
    assert_eq!(named(&["--json", "inspect", "team/dev"]), team);
    assert_eq!(named(&["--json", "update", "team/dev", "--ttl", "1h"]), team);
    assert_eq!(named(&["--json", "ls"]), team);
    assert_eq!(named(&["--json", "create", "dev"]), (json!("default"), json!("dev")));
}

#[test]
fn output_that_is_no_text_comes_as_base64_beside_its_text() {
    let machine = Machine::with_sandbox();
    let odd = machine.run(&["--json", "exec", "box", "--", "printf", r"\xff\x00\x01"]).json();
    assert_eq!((&odd["stdout_base64"], &odd["stderr_base64"]), (&json!("/wAB"), &Value::Null));
    let text = machine.run(&["--json", "exec", "box", "--", "echo", "text"]).json();
    assert_eq!((&text["stdout"], &text["stdout_base64"]), (&json!("text\n"), &Value::Null));
}

#[test]
fn a_removal_says_what_was_removed_and_nothing_if_that_was_nothing() {
    let machine = Machine::new();
    for name in ["a", "b"] {
        machine.run(&["pool", "create", "team", name]).success();
    }
    let removed = machine.run(&["--json", "pool", "rm", "team"]);
    assert_eq!((removed.code, removed.json()), (Some(0), json!({ "removed": ["a", "b"] })));
    let none = machine.run(&["--json", "image", "rm", "nope"]);
    assert_eq!((none.code, none.text().as_str()), (Some(125), ""), "{none:?}");
    assert_eq!(error_of(&none)["kind"], "not_found");
}
