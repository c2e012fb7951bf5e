//! `coding`'s `grep` and `glob`.

use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::computer::Computer;
use crate::{ensure, same, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("coding_grep_says_file_line_and_text", grep),
        trial("coding_grep_by_ripgrep_and_by_grep_finds_the_same", both_greps),
        trial("coding_grep_says_what_is_wrong_with_a_pattern", bad_pattern),
        trial("coding_glob_finds_by_name_and_shows_a_line_feed_in_a_name", glob),
        trial("coding_a_path_that_looks_like_an_option_harms_nothing", options),
        trial("coding_glob_stops_at_a_thousand", many),
        trial("coding_a_search_of_a_fifo_is_refused_and_does_not_wait_for_it", fifo),
        trial("coding_a_null_byte_is_told_by_the_name_of_its_argument", null),
    ]
}

async fn computer() -> Result<Computer, Failed> {
    let computer = Computer::new("coding")?;
    for (path, content) in [("src/a.rs", "fn a() {}\nfn b(x: u8) {}\n"), ("src/it's b.ts", "fn( x\n")] {
        computer.ok("write", json!({ "path": path, "content": content })).await?;
    }
    Ok(computer)
}

async fn grep() -> Result<(), Failed> {
    let computer = computer().await?;
    let input = json!({ "pattern": "fn [ab]", "path": "src", "include": "*.rs" });
    same(computer.ok("grep", input).await?, "src/a.rs:1:fn a() {}\nsrc/a.rs:2:fn b(x: u8) {}")?;
    let input = json!({ "pattern": "fn(", "literal": true });
    let found = computer.ok("grep", input).await?;
    ensure(found.ends_with("src/it's b.ts:1:fn( x"), found)?;
    same(computer.ok("grep", json!({ "pattern": "nowhere" })).await?, "No matches found.")
}

/// Searches with a stand-in for ripgrep that prints its arguments.
async fn both_greps() -> Result<(), Failed> {
    let computer = computer().await?;
    let script =
        "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\nfor last; do :; done\necho \"$last:1:from rg: $*\"\n";
    computer.ok("write", json!({ "path": ".local/bin/rg", "content": script })).await?;
    computer.ok("bash", json!({ "command": "chmod +x ~/.local/bin/rg" })).await?;
    let found = computer.ok("grep", json!({ "pattern": "-e x", "include": "*.rs" })).await?;
    same(found, ".:1:from rg: --line-number --with-filename --color never --glob *.rs -- -e x .")
}

async fn bad_pattern() -> Result<(), Failed> {
    let computer = computer().await?;
    let error = computer.error("grep", json!({ "pattern": "fn(", "path": "src" })).await?;
    ensure(error.starts_with("grep failed: ") && error.len() > 20, error)
}

async fn glob() -> Result<(), Failed> {
    let computer = computer().await?;
    same(computer.ok("glob", json!({ "pattern": "*.rs" })).await?, "./src/a.rs")?;
    same(computer.ok("glob", json!({ "pattern": "it's*", "path": "src" })).await?, "src/it's b.ts")?;
    computer.ok("write", json!({ "path": "n/x\ny.c", "content": "" })).await?;
    same(computer.ok("glob", json!({ "pattern": "*.c", "path": "n" })).await?, "$'n/x\\ny.c'")?;
    same(computer.ok("bash", json!({ "command": "ls -d $'n/x\\ny.c' | wc -l" })).await?, "2")?;
    for input in [json!({ "pattern": "*.zig" }), json!({ "pattern": "*", "path": "/nowhere" })] {
        same(computer.ok("glob", input).await?, "No files found matching pattern.")?;
    }
    Ok(())
}

async fn options() -> Result<(), Failed> {
    let computer = computer().await?;
    same(
        computer.ok("glob", json!({ "pattern": "*", "path": "-delete" })).await?,
        "No files found matching pattern.",
    )?;
    let error = computer.error("grep", json!({ "pattern": "x", "path": "--version" })).await?;
    ensure(error.starts_with("grep failed: "), error)?;
    same(computer.ok("glob", json!({ "pattern": "a.rs" })).await?, "./src/a.rs")
}

async fn many() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    computer.ok("bash", json!({ "command": "mkdir m && cd m && seq 1 5000 | xargs touch" })).await?;
    let found = computer.ok("glob", json!({ "pattern": "*", "path": "m" })).await?;
    ensure(found.lines().count() == 1_000, format!("{} lines", found.lines().count()))
}

async fn fifo() -> Result<(), Failed> {
    let computer = computer().await?;
    computer.ok("bash", json!({ "command": "mkfifo pipe; ln -s pipe link; echo hay > ./-" })).await?;
    for path in ["pipe", "link", "/dev/zero"] {
        let error = computer.error("grep", json!({ "pattern": "x", "path": path })).await?;
        let expected = format!("search `{path}` in sandbox `default`: is neither a file nor a directory");
        same(error, expected)?;
    }
    // Neither is one that lies in a directory waited for, nor standard input, which grep calls `-`.
    let found = computer.ok("grep", json!({ "pattern": "^hay$" })).await?;
    ensure(found.ends_with("-:1:hay"), found)?;
    same(computer.ok("grep", json!({ "pattern": "hay", "path": "-" })).await?, "./-:1:hay")
}

async fn null() -> Result<(), Failed> {
    let computer = computer().await?;
    for (tool, argument) in [("grep", "pattern"), ("grep", "include"), ("glob", "pattern"), ("glob", "path")]
    {
        let mut input = json!({ "pattern": "x" });
        input[argument] = "a\0b".into();
        same(computer.error(tool, input).await?, format!("`{argument}` must not contain a null byte"))?;
    }
    Ok(())
}
