//! `eyot pool`, and calls of tools that find their sandboxes again.

use super::machine::Machine;

const LIST: [&str; 5] = ["--json", "pool", "ls", "p", "--quiet"];

#[test]
fn a_pool_is_kept_from_one_command_to_the_next() {
    let machine = Machine::new();
    let call = |tool: &str, input: &str| machine.run(&["call", "pool", tool, input, "--pool", "p"]).success();
    call("write_file", r#"{"path": "kept", "content": "x"}"#);
    assert!(call("read_file", r#"{"path": "kept"}"#).contains('x'));
    assert_eq!(machine.run(&["pool", "ls"]).success(), "p\n");
    machine.run(&["pool", "sleep", "p", "default"]).success();
    assert_eq!(machine.run(&LIST).json()[0]["status"], "sleeping");
    assert!(call("read_file", r#"{"path": "kept"}"#).contains('x'));
    assert_eq!(machine.run(&LIST).json()[0]["status"], "running");
    machine.run(&["pool", "rm", "p"]).success();
    assert_eq!(machine.run(&["pool", "ls"]).success(), "");
    machine.assert_empty();
}

#[test]
fn a_sandbox_of_a_pool_is_made_once_and_what_differs_is_said() {
    let machine = Machine::new();
    let create = ["--json", "pool", "create", "p", "web", "--service", "exec sleep 1000"];
    assert_eq!(machine.run(&create).json()["created"], true);
    let again = machine.run(&["--json", "pool", "create", "p", "web", "--image", "other"]).json();
    assert_eq!((&again["created"], &again["differs"][0]), (&false.into(), &"image".into()));
    let listed = machine.run(&["pool", "ls", "p"]).success();
    assert!(
        listed.lines().nth(1).is_some_and(|line| line.contains("web") && line.contains("running")),
        "{listed}"
    );
    assert!(machine.run(&["events", "--sandbox", "web"]).success().contains("created"));
    machine.run(&["pool", "rm", "p", "web"]).success();
    assert!(machine.run(&["pool", "rm", "p", "web"]).failure(125).contains("no sandbox `web`"));
    machine.run(&["pool", "rm", "p"]).success();
}

#[test]
fn a_pool_that_is_not_there_is_no_empty_one() {
    let machine = Machine::new();
    for command in [&["pool", "ls", "nope"][..], &["pool", "rm", "nope"], &["pool", "sleep", "nope", "a"]] {
        let ran = machine.run(command);
        let said = ran.failure(125);
        assert!(said.contains("no pool `nope`") && said.contains("eyot pool ls"), "{said}");
    }
    assert_eq!(machine.run(&["pool"]).code, Some(2));
    assert_eq!(machine.run(&["pool", "reconcile"]).success(), "");
}
