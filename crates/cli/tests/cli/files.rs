//! `read`, `write`, `glob` and `grep`.

use super::machine::Machine;

#[test]
fn what_is_written_is_read_again_whole_or_in_part() {
    let machine = Machine::with_sandbox();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    assert_eq!(machine.run_with_input(&["write", "box", "deep/er/file"], &bytes).success(), "");
    assert_eq!(machine.run(&["read", "box", "deep/er/file"]).stdout, bytes);
    let part = machine.run(&["read", "box", "/workspace/deep/er/file", "--offset", "256", "--limit", "4"]);
    assert_eq!(part.stdout, [0, 1, 2, 3]);
}

#[test]
fn a_write_replaces_appends_or_insists_on_a_new_file() {
    let machine = Machine::with_sandbox();
    machine.run(&["write", "box", "f", "--content", "one"]).success();
    machine.run(&["write", "box", "f", "--content", "-two", "--append"]).success();
    assert_eq!(machine.run(&["read", "box", "f"]).success(), "one-two");
    machine.run(&["write", "box", "f", "--content", "x", "--create-new"]).failure(125);
    machine.run(&["write", "box", "f", "--content", "three", "--mode", "750"]).success();
    assert_eq!(machine.run(&["exec", "box", "--", "stat", "-c", "%a %s", "f"]).success(), "750 5\n");
}

#[test]
fn json_says_what_was_read_and_written() {
    let machine = Machine::with_sandbox();
    let written = machine.run(&["--json", "write", "box", "f", "--content", "hä"]).json();
    assert_eq!((written["path"].as_str(), written["size"].as_u64()), (Some("/workspace/f"), Some(3)));
    let read = machine.run(&["--json", "read", "box", "f"]).json();
    assert_eq!((read["content"].as_str(), read["bytes"].as_u64()), (Some("hä"), Some(3)));
    let half = machine.run(&["--json", "read", "box", "f", "--limit", "2"]).json();
    assert_eq!(half["content_base64"], "aMM=");
}

#[test]
fn a_missing_file_and_a_directory_are_one_sentence() {
    let machine = Machine::with_sandbox();
    machine.run(&["read", "box", "nope"]).failure(125);
    machine.run(&["read", "box", "/tmp"]).failure(125);
}

#[test]
fn files_are_found_by_pattern() {
    let machine = Machine::with_sandbox();
    for path in ["a.md", "src/b.md", "src/c.rs"] {
        machine.run(&["write", "box", path, "--content", "x"]).success();
    }
    assert_eq!(machine.run(&["glob", "box", "*.md"]).success(), "/workspace/a.md\n");
    assert_eq!(machine.run(&["glob", "box", "**/*.md"]).success(), "/workspace/a.md\n/workspace/src/b.md\n");
    assert_eq!(machine.run(&["glob", "box", "*.rs", "--root", "src"]).success(), "/workspace/src/c.rs\n");
    assert_eq!(machine.run(&["glob", "box", "*.none"]).success(), "");
    let ran = machine.run(&["glob", "box", "**/*", "--max", "1"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("more than 1"), "{ran:?}");
}

#[test]
fn lines_are_found_by_pattern_and_no_match_exits_with_1() {
    let machine = Machine::with_sandbox();
    machine.run(&["write", "box", "a/f.txt", "--content", "one\nTwo.\nthree\n"]).success();
    assert_eq!(machine.run(&["grep", "box", "^t", "a"]).success(), "/workspace/a/f.txt:3:three\n");
    assert_eq!(machine.run(&["grep", "box", "-i", "-F", "two."]).success(), "/workspace/a/f.txt:2:Two.\n");
    assert_eq!(machine.run(&["grep", "box", "nothing"]).code, Some(1));
    let found = machine.run(&["--json", "grep", "box", "e", "--include", "*.txt", "--max", "1"]).json();
    assert_eq!(
        (found["matches"].as_array().map(Vec::len), found["truncated"].as_bool()),
        (Some(1), Some(true))
    );
}
