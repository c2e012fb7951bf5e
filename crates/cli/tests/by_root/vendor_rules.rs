//! Rules for every vendor whose sandboxes `eyot` makes.

use std::process::{Command, Stdio};

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

/// Checks that a file goes into the sandbox `job`, and comes out again.
pub fn a_file_goes_in_and_out(machine: &Machine, run: impl Fn(&[&str]) -> Ran) {
    let file = machine.write("f", "from here\n");
    run(&["cp", &file, "job:in/f"]).success();
    assert_eq!(run(&["exec", "job", "--", "cat", "in/f"]).success(), "from here\n");
    let back = machine.path_text("back");
    run(&["cp", "job:in/f", &back]).success();
    assert_eq!(std::fs::read_to_string(&back).unwrap(), "from here\n");
}

/// Checks that each command fails, and says this of the reason.
pub fn are_refused(commands: &[(&[&str], &str)], run: impl Fn(&[&str]) -> Ran) {
    for (arguments, reason) in commands {
        let ran = run(arguments);
        assert_ne!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(reason), "{arguments:?}: {ran:?}");
    }
}

/// Adopts the machine of somebody else, which must be listed before. Returns the name that its sandbox has then.
pub fn adopted(id: &str, run: impl Fn(&[&str]) -> Ran) -> String {
    let listed = run(&["ls"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains(id), "{listed:?}");
    assert!(listed.stderr.contains("foreign") && listed.stderr.contains("adopt"), "{listed:?}");
    run(&["adopt", id]).success();
    run(&["ls", "-q"]).success().trim().to_owned()
}

/// Asks a vendor itself, with a header that has the key.
pub fn ask(header: &str, method: &str, url: &str, body: &str) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "-X", method, "-H", header, "-H", "Content-Type: application/json", "-d", body, url]);
    let output = curl.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
