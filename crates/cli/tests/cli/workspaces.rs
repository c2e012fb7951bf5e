//! `eyot workspace`: what `--workspace` keeps is listed and removed.

use std::fs;

use serde_json::json;

use super::machine::Machine;

#[test]
fn a_workspace_is_listed_with_its_sandbox_and_removed_when_it_is_free() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["workspace", "ls", "-q"]).success(), "");
    assert!(!machine.state().exists());
    machine.run(&["create", "dev", "--workspace", "notes"]).success();
    machine.run(&["create", "team/dev", "--workspace", "notes"]).success();
    machine.run(&["write", "dev", "note.txt", "--content", "hello"]).success();
    assert_eq!(machine.run(&["workspace", "list", "-q"]).success(), "notes\nteam.notes\n");
    let table = machine.run(&["workspace", "ls"]).success();
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert!(table.starts_with("NAME") && row[0] == "notes" && row.last() == Some(&"dev"), "{table}");
    let listed = machine.run(&["--json", "workspace", "ls"]).json();
    assert_eq!((&listed[0]["name"], &listed[0]["sandboxes"]), (&json!("notes"), &json!(["dev"])));
    assert_eq!(listed[1]["sandboxes"], json!(["team/dev"]));
    assert!(listed[0]["size_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{listed}");

    for state in ["running", "sleeping"] {
        let ran = machine.run(&["workspace", "rm", "-f", "notes"]);
        let said = ran.failure(125);
        assert!(said.contains("sandbox `dev` uses it") && said.contains("eyot rm dev"), "{state}: {said}");
        machine.run(&["sleep", "dev"]).success();
    }
    assert_eq!(machine.run(&["exec", "dev", "--", "cat", "note.txt"]).success(), "hello");
    machine.run(&["rm", "dev"]).success();
    assert_eq!(machine.run(&["--json", "workspace", "ls"]).json()[0]["sandboxes"], json!([]));
    let both = machine.run(&["--json", "workspace", "rm", "notes", "nope", "team.notes"]);
    assert_eq!((both.code, both.json()), (Some(125), json!({ "removed": ["notes"] })));
    assert!(both.stderr.contains("no workspace `nope`") && both.stderr.contains("`team/dev` uses it"));
    assert_eq!(machine.run(&["workspace", "ls", "-q"]).success(), "team.notes\n");
    assert_eq!(fs::read_dir(machine.state().join("trash")).unwrap().count(), 0);
    // What is made anew has none of the old files.
    machine.run(&["create", "dev", "--workspace", "notes"]).success();
    assert_eq!(machine.run(&["exec", "dev", "--", "ls"]).success(), "");
}

#[test]
fn a_workspace_is_removed_only_by_its_name() {
    let machine = Machine::with_sandbox();
    for wrong in ["nope", "..", "../sandboxes", "", "."] {
        let ran = machine.run(&["workspace", "rm", wrong]);
        assert!(ran.failure(125).contains("eyot workspace ls"), "{wrong}");
    }
    assert_eq!(machine.run(&["exec", "box", "--", "echo", "hi"]).success(), "hi\n");
    let elsewhere = machine.run(&["--server", "http://127.0.0.1:9", "workspace", "ls"]);
    assert!(elsewhere.failure(2).contains("this host's state folder"), "{elsewhere:?}");
    let containers = machine.run(&["--provider", "docker", "workspace", "ls"]);
    assert!(containers.failure(2).contains("docker volume ls"), "{containers:?}");
}
