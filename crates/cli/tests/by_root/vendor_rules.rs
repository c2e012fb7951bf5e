//! Rules for every vendor whose sandboxes `eyot` makes.

use crate::machine::{Machine, Ran};

/// Checks that a tree goes from a native sandbox to one of a vendor's and back, and a single file there. `run` runs `eyot` with that
/// vendor.
pub fn a_tree_goes_there_and_back(machine: &Machine, provider: &str, run: impl Fn(&[&str]) -> Ran) {
    run(&["create", "--name", "far"]).success();
    machine.create("near");
    let far = |path: &str| format!("{provider}/far:{path}");
    let line = "mkdir -p t/deep && echo one > t/a && ln -s ../a t/deep/link && printf '#!/bin/sh\necho ran\n' > t/run && chmod 755 t/run";
    machine.run(&["exec", "near", "--", "sh", "-c", line]).success();
    run(&["transfer", "-r", "native/near:t", &far("in/t")]).success();
    let seen = run(&["exec", "far", "--", "sh", "-c", "cat in/t/deep/link && in/t/run"]).success();
    assert_eq!(seen, "one\nran\n");
    run(&["transfer", "-r", &far("in/t"), "native/near:back"]).success();
    let same = machine.run(&["exec", "near", "--", "diff", "-r", "t", "back"]);
    assert_eq!(same.success(), "");
    run(&["transfer", "native/near:t/a", &far("single")]).success();
    assert_eq!(run(&["exec", "far", "--", "cat", "single"]).success(), "one\n");
    run(&["rm", "far"]).success();
}

/// Returns the names of the sandboxes that `eyot ls` shows.
pub fn names(run: impl Fn(&[&str]) -> Ran) -> Vec<String> {
    let listed: serde_json::Value = serde_json::from_str(&run(&["--json", "ls"]).success()).unwrap();
    let all = listed.as_array().unwrap().iter();
    all.map(|sandbox| sandbox["name"].as_str().unwrap().to_owned()).collect()
}
