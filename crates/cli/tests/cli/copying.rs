//! `cp`: files and trees in, out and across, and the attacks of a hostile sandbox.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use super::machine::Machine;

/// Makes a tree with every kind of file that is copied.
fn plant(machine: &Machine, root: &str) -> String {
    machine.write(&format!("{root}/a/one.txt"), "one");
    machine.write(&format!("{root}/a/b/two.bin"), vec![7; 200_000]);
    machine.write(&format!("{root}/{}", "n".repeat(180)), "long");
    machine.write(&format!("{root}/.git/config"), "[core]\n\tfsmonitor = touch /tmp/owned\n");
    fs::create_dir(machine.path(root).join("empty")).unwrap();
    symlink("a/one.txt", machine.path(root).join("link")).unwrap();
    let script = machine.write(&format!("{root}/run.sh"), "#!/bin/sh\n");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    machine.path_text(root)
}

#[track_caller]
fn assert_same_tree(left: &str, right: &str) {
    let output = Command::new("diff").args(["-r", "--no-dereference", left, right]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_tree_goes_in_and_comes_out_the_same() {
    let machine = Machine::with_sandbox();
    let tree = plant(&machine, "tree");
    assert_eq!(machine.run(&["cp", &tree, "box:copy"]).success(), "");
    let out = machine.path_text("out");
    assert_eq!(machine.run(&["cp", "box:copy", &out]).success(), "");
    assert_same_tree(&tree, &out);
    let bits = fs::metadata(machine.path("out/run.sh")).unwrap().permissions().mode();
    assert_eq!(bits & 0o777, 0o755);
}

#[test]
fn a_tree_that_is_too_large_leaves_nothing_behind_and_the_reason_is_told() {
    let machine = Machine::with_sandbox();
    machine.write("tree/a", vec![7; 900_000]);
    machine.write("tree/b", vec![7; 900_000]);
    let tree = machine.path_text("tree");
    machine.run(&["cp", &tree, "box:whole"]).success();
    machine.run(&["exec", "box", "--", "mkdir", "there"]).success();
    let (out, there) = (machine.path_text("out"), machine.path_text("there"));
    fs::create_dir(&there).unwrap();
    for (from, to) in [
        (tree.as_str(), "box:part"),
        (&tree, "box:there"),
        ("box:whole", "box:part"),
        ("box:whole", &out),
        ("box:whole", &there),
    ] {
        let ran = machine.run(&["cp", "--max-bytes", "1m", from, to]);
        let refused = ran.failure(125);
        assert!(refused.contains("1048576 bytes") && !refused.contains("pipe"), "{refused}");
    }
    assert_eq!(machine.run(&["exec", "box", "--", "ls"]).success(), "there\nwhole\n");
    assert_eq!(machine.run(&["exec", "box", "--", "ls", "there"]).success(), "");
    assert!(!machine.path("out").exists());
    assert_eq!(fs::read_dir(&there).unwrap().count(), 0);
}

#[test]
fn into_a_directory_the_name_is_kept_and_a_dot_means_what_is_in_it() {
    let machine = Machine::with_sandbox();
    let tree = plant(&machine, "tree");
    machine.run(&["cp", &tree, "box:/workspace/"]).success();
    assert_eq!(machine.run(&["read", "box", "tree/a/one.txt"]).success(), "one");
    machine.run(&["cp", &format!("{tree}/."), "box:"]).success();
    assert_eq!(machine.run(&["read", "box", "a/one.txt"]).success(), "one");
    fs::create_dir(machine.path("into")).unwrap();
    let into = machine.path_text("into");
    machine.run(&["cp", "box:tree", &into]).success();
    assert_same_tree(&tree, &machine.path_text("into/tree"));
    machine.run(&["cp", "box:tree/.", &machine.path_text("content")]).success();
    assert_same_tree(&tree, &machine.path_text("content"));
}

#[test]
fn a_file_goes_in_and_out_with_its_bits() {
    let machine = Machine::with_sandbox();
    let file = machine.write("f.sh", "#!/bin/sh\necho ran\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let copied = machine.run(&["--json", "cp", &file, "box:deep/g.sh"]).json();
    assert_eq!((copied["bytes"].as_u64(), copied["files"].as_u64()), (Some(19), Some(1)));
    assert_eq!(machine.run(&["exec", "box", "--", "./deep/g.sh"]).success(), "ran\n");
    machine.run(&["cp", "box:deep/g.sh", &machine.path_text("h.sh")]).success();
    let copy = machine.path("h.sh");
    assert_eq!(fs::read(&copy).unwrap(), fs::read(&file).unwrap());
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_dash_is_stdin_and_stdout() {
    let machine = Machine::with_sandbox();
    machine.run_with_input(&["cp", "-", "box:from-stdin"], b"\0piped\xff").success();
    assert_eq!(machine.run(&["cp", "box:from-stdin", "-"]).stdout, b"\0piped\xff");
    machine.run(&["cp", "box:/tmp", "-"]).failure(125);
    machine.run(&["cp", "-", "box:/tmp"]).failure(125);
}

#[test]
fn files_and_trees_go_from_sandbox_to_sandbox() {
    let machine = Machine::with_sandbox();
    machine.create("other");
    let tree = plant(&machine, "tree");
    machine.run(&["cp", &tree, "box:tree"]).success();
    machine.run(&["cp", "box:tree", "other:renamed"]).success();
    machine.run(&["cp", "other:renamed", &machine.path_text("out")]).success();
    assert_same_tree(&tree, &machine.path_text("out"));
    machine.run(&["cp", "box:tree/a/one.txt", "other:/tmp"]).success();
    assert_eq!(machine.run(&["read", "other", "/tmp/one.txt"]).success(), "one");
    machine.run(&["cp", "box:tree", "box:tree/inside"]).failure(125);
}

#[test]
fn sides_that_make_no_sense_are_refused_with_a_hint() {
    let machine = Machine::new();
    assert!(machine.run(&["cp", "a", "b"]).failure(2).contains("hint: write NAME:PATH"));
    assert_eq!(machine.run(&["cp", "UPPER:x", "b"]).code, Some(2));
}

#[test]
fn a_directory_that_is_missing_is_named() {
    let machine = Machine::with_sandbox();
    machine.run(&["write", "box", "f", "--content", "x"]).success();
    assert!(
        machine.run(&["cp", "box:f", &machine.path_text("no/where/f")]).failure(125).contains("no/where")
    );
    machine.run(&["cp", "box:nope", &machine.path_text("f")]).failure(125);
    machine.run(&["cp", &machine.path_text("nope"), "box:f"]).failure(125);
}

#[test]
fn f4_links_that_lead_out_and_fifos_are_left_out_named_and_a_failure() {
    let machine = Machine::with_sandbox();
    let line = "mkdir t && cd t && echo data > f && ln -s f good && ln -s /etc/passwd abs && ln -s ../../x up && mkfifo p";
    machine.run(&["exec", "box", "--", "sh", "-c", line]).success();
    let ran = machine.run(&["cp", "box:t", &machine.path_text("out")]);
    assert_eq!(ran.code, Some(125));
    assert!(ran.stderr.contains("abs") && ran.stderr.contains("up"), "{ran:?}");
    let mut names: Vec<_> =
        fs::read_dir(machine.path("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["f", "good"]);
}

#[test]
fn a_pipe_of_the_host_is_refused_at_once_unless_a_shell_made_it() {
    let machine = Machine::with_sandbox();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        machine.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let refused = machine.run(&["cp", &machine.path_text("pipe"), "box:x"]);
    assert!(refused.failure(125).contains("it is a pipe or a socket"), "{refused:?}");
    machine.run_with_input(&["cp", "/dev/stdin", "box:y"], b"given").success();
    assert_eq!(machine.run(&["read", "box", "y"]).success(), "given");
    machine.run(&["cp", "/dev/null", "box:y"]).success();
    assert_eq!(machine.run(&["read", "box", "y"]).success(), "");
}

#[test]
fn many_entries_left_out_are_counted_and_json_names_all_and_fails_in_json() {
    let machine = Machine::with_sandbox();
    let make = "mkdir t && cd t && for i in $(seq 30); do ln -s /etc/passwd out$i; done";
    machine.run(&["exec", "box", "--", "sh", "-c", make]).success();
    let plain = machine.run(&["cp", "box:t", &machine.path_text("plain")]);
    let said = &plain.stderr;
    assert_eq!(plain.code, Some(125), "{said}");
    assert_eq!(said.matches("leads out of the tree").count(), 20, "{said}");
    assert!(said.contains("30 entries were left out") && said.contains("--json"), "{said}");
    let json = machine.run(&["--json", "cp", "box:t", &machine.path_text("json")]);
    let copied: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(copied["skipped"].as_array().unwrap().len(), 30);
    assert_eq!(json.code, Some(125), "{}", json.stderr);
    let error: serde_json::Value = serde_json::from_str(json.stderr.lines().last().unwrap()).unwrap();
    assert!(error["error"].to_string().contains("30 entries were left out"), "{error}");
}

#[test]
fn f4_nothing_is_written_through_a_link_of_the_host_that_is_in_the_way() {
    let machine = Machine::with_sandbox();
    machine.write("canary/f", "alive");
    fs::create_dir(machine.path("out")).unwrap();
    symlink(machine.path("canary"), machine.path("out/d")).unwrap();
    machine.run(&["exec", "box", "--", "sh", "-c", "mkdir -p t/d && echo dead > t/d/f"]).success();
    machine.run(&["cp", "box:t/.", &machine.path_text("out")]).failure(125);
    assert_eq!(fs::read_to_string(machine.path("canary/f")).unwrap(), "alive");
}

#[test]
fn f4_setuid_bits_stay_behind() {
    let machine = Machine::with_sandbox();
    machine
        .run(&["exec", "box", "--", "sh", "-c", "mkdir t && cp /bin/true t/x && chmod 6755 t/x"])
        .success();
    machine.run(&["cp", "box:t", &machine.path_text("tree")]).success();
    machine.run(&["cp", "box:t/x", &machine.path_text("file")]).success();
    for path in ["tree/x", "file"] {
        assert_eq!(fs::metadata(machine.path(path)).unwrap().permissions().mode() & 0o7777, 0o755);
    }
}

#[test]
fn n8_what_a_host_tool_would_run_is_copied_as_data() {
    let machine = Machine::with_sandbox();
    let canary = machine.path_text("canary");
    let line = format!(
        "mkdir -p t/.git/hooks && printf '#!/bin/sh\\ntouch {canary}\\n' > t/.git/hooks/post-checkout && \
         chmod 755 t/.git/hooks/post-checkout && echo 'touch {canary}' > t/.envrc"
    );
    machine.run(&["exec", "box", "--", "sh", "-c", &line]).success();
    machine.run(&["cp", "box:t", &machine.path_text("out")]).success();
    assert!(machine.path("out/.git/hooks/post-checkout").exists() && machine.path("out/.envrc").exists());
    assert!(!machine.path("canary").exists());
}

#[test]
fn f5_more_than_the_limit_is_refused_and_nothing_half_written_takes_the_files_place() {
    let machine = Machine::with_sandbox();
    machine.write("kept", "old");
    machine.run(&["exec", "box", "--", "truncate", "-s", "100G", "huge"]).success();
    let refused = machine.run(&["cp", "box:huge", &machine.path_text("kept")]);
    assert!(refused.failure(125).contains("--max-bytes"), "{refused:?}");
    assert_eq!(fs::read_to_string(machine.path("kept")).unwrap(), "old");
}

/// Returns the files in a folder of the host that are named as Eyot's own temporary ones.
fn left_on_host(machine: &Machine) -> Vec<String> {
    let names = fs::read_dir(machine.path("to")).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with(".eyot")).collect()
}

#[test]
fn what_a_killed_copy_leaves_is_gone_after_the_next_one_inside_and_on_the_host() {
    let machine = Machine::with_sandbox();
    machine.run(&["exec", "box", "--", "sh", "-c", "truncate -s 100G endless; echo x > small"]).success();
    fs::create_dir(machine.path("to")).unwrap();
    let (out, small) = (machine.path_text("to/endless"), machine.path_text("to/small"));
    let inside = || machine.run(&["exec", "box", "--", "ls", "-A"]).success();
    for round in 0..5 {
        let outward = ["cp", "--max-bytes", "300000000000", "box:endless", &out];
        let mut child = machine.spawn(&mut machine.command(&outward));
        while left_on_host(&machine).is_empty() {
            assert_eq!(child.try_wait().unwrap(), None, "it was done too soon");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        machine.run(&["cp", "box:small", &small]).success();
        assert_eq!((left_on_host(&machine), machine.path("to/endless").exists()), (vec![], false), "{round}");

        // Its standard input never ends.
        let mut child = machine.spawn(machine.command(&["cp", "-", "box:new"]).stdin(Stdio::piped()));
        let mut input = child.stdin.take().unwrap();
        input.write_all(&[7; 100_000]).unwrap();
        while !inside().lines().any(|name| name.starts_with(".eyot-")) {
            assert_eq!(child.try_wait().unwrap(), None, "it was done too soon");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        machine.run(&["cp", &small, "box:small"]).success();
        let names = inside();
        assert!(!names.lines().any(|name| name.starts_with(".eyot-") || name == "new"), "{round}: {names}");
    }
}

#[test]
fn a_source_that_is_missing_is_named_before_a_sandbox_is_looked_for() {
    let machine = Machine::new();
    for missing in ["missing", "./no/such/folder/"] {
        let ran = machine.run(&["cp", missing, "box:"]);
        let said = ran.failure(125);
        assert!(said.contains(&format!("read `{missing}`: no such file or directory")), "{said}");
        assert!(said.contains("a path of this host") && said.contains("NAME:PATH"), "{said}");
    }
    assert!(!machine.state().exists());
}
