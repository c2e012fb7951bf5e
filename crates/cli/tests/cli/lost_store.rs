//! A state folder whose `eyot.db` is gone, empty or damaged: nothing is forgotten silently, and
//! commands say how to go on.

use std::fs;

use eyot::SandboxSpec;

use crate::machine::Machine;
use crate::pool::{create_by_provider, create_outside_of_pools};

const FILES: [&str; 4] = ["eyot.db", "eyot.db-wal", "eyot.db-shm", "eyot.db.lock"];

/// Makes a machine with a sandbox of a pool, and a key.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.run(&["pool", "create", "p", "box"]).success();
    machine.run(&["keys", "create", "k", "-q"]).success();
    machine
}

fn remove(machine: &Machine, files: &[&str]) {
    for file in files {
        match fs::remove_file(machine.state().join(file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{file}: {error}"),
            _ => {}
        }
    }
}

/// Commands that would create a store.
const COMMANDS: [&[&str]; 5] = [
    &["serve", "--no-keys", "--listen", "127.0.0.1:0"],
    &["pool", "ls"],
    &["pool", "create", "p", "box"],
    &["keys", "create", "other"],
    &["pool", "reconcile"],
];

#[track_caller]
fn all_refuse(machine: &Machine, what: &str) {
    for command in COMMANDS {
        let refused = machine.run(command);
        let said = refused.failure(125);
        assert!(said.contains("`eyot.db` is missing or empty"), "{what} {command:?}: {said}");
        assert!(said.contains("backup") && said.contains("eyot pool reconcile --new-store"), "{said}");
    }
}

#[test]
fn a_store_that_is_gone_beside_sandboxes_is_not_begun_anew_and_comes_back_as_it_was() {
    for (what, files) in [("the file", &FILES[..1]), ("all but the lock", &FILES[..3]), ("all", &FILES[..])] {
        let machine = machine();
        let kept = fs::read(machine.state().join("eyot.db")).unwrap();
        remove(&machine, files);
        all_refuse(&machine, what);
        assert!(!machine.state().join("eyot.db").exists(), "{what}: a refusal has made one");
        fs::write(machine.state().join("eyot.db"), kept).unwrap();
        assert_eq!(machine.run(&["pool", "ls", "-q"]).success(), "p\n", "{what}");
    }
}

#[test]
fn a_store_that_is_empty_is_not_begun_anew() {
    let machine = machine();
    let path = machine.state().join("eyot.db");
    let kept = fs::read(&path).unwrap();
    fs::write(&path, "").unwrap();
    all_refuse(&machine, "empty");
    assert_eq!(fs::read(&path).unwrap(), b"");
    fs::write(&path, kept).unwrap();
    machine.run(&["pool", "ls"]).success();
}

#[test]
fn a_new_store_is_begun_where_somebody_says_so_and_the_sandboxes_stay() {
    for files in [&FILES[..1], &FILES[..]] {
        let machine = machine();
        remove(&machine, files);
        machine.run(&["pool", "reconcile", "--new-store"]).success();
        assert_eq!(machine.run(&["pool", "ls", "-q"]).success(), "");
        let name = machine.run(&["--json", "ls"]).json()[0]["name"].as_str().unwrap().to_owned();
        assert_eq!(machine.run(&["exec", &name, "--", "echo", "here"]).success(), "here\n");
        machine.run(&["pool", "create", "p", "box"]).success();
        let again = machine.run(&["pool", "reconcile", "--new-store"]);
        assert!(again.failure(125).contains("the old one is there"));
    }
}

#[test]
fn a_store_that_is_damaged_is_said_to_be_so_with_the_ways_on() {
    let machine = machine();
    let path = machine.state().join("eyot.db");
    remove(&machine, &FILES[1..3]);
    let kept = fs::read(&path).unwrap();
    fs::write(&path, "no database at all\n".repeat(100)).unwrap();
    let refused = machine.run(&["pool", "ls"]);
    let said = refused.failure(125);
    assert!(said.contains("the file is damaged or not a store") && said.contains("backup"), "{said}");
    fs::write(&path, kept).unwrap();
    machine.run(&["pool", "ls"]).success();
}

#[test]
fn a_fresh_folder_and_one_with_sandboxes_of_no_pool_begin_a_store() {
    let machine = Machine::new();
    assert_eq!(machine.run(&["pool", "ls", "-q"]).success(), "");
    let machine = Machine::new();
    create_outside_of_pools(&machine, "box");
    create_by_provider(&machine, SandboxSpec::default());
    machine.run(&["keys", "create", "k", "-q"]).success();
    let listed = machine.run(&["--json", "pool", "ls", "default"]).json();
    assert_eq!((&listed[0]["name"], listed.as_array().unwrap().len()), (&"box".into(), 1));
}
