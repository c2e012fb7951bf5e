//! `coding`'s `edit`, alone and beside others.

use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::computer::Computer;
use crate::{ensure, same, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("coding_fifty_edits_of_one_file_side_by_side_lose_nothing", fifty),
        trial("coding_edits_through_links_and_other_spellings_lose_nothing_either", aliases),
        trial("coding_an_edit_keeps_the_permission_bits_and_bytes_that_are_no_text", kept),
        trial("coding_an_edit_that_finds_nothing_leaves_the_file_as_it_is", nothing),
    ]
}

async fn fifty() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    let lines: String = (0..50).map(|line| format!("<{line}>\n")).collect();
    computer.ok("write", json!({ "path": "f", "content": lines })).await?;
    let computer = std::sync::Arc::new(computer);
    edit_each(&computer, |_| "f".to_owned()).await?;
    let expected: String = (0..50).map(|line| format!("[{line}]\n")).collect();
    same(computer.ok("read", json!({ "path": "f" })).await?, expected)
}

async fn aliases() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    let lines: String = (0..50).map(|line| format!("<{line}>\n")).collect();
    computer.ok("write", json!({ "path": "d/f", "content": lines })).await?;
    computer.ok("bash", json!({ "command": "ln -s d e" })).await?;
    let computer = std::sync::Arc::new(computer);
    let spellings = ["d/f", "e/f", "./d//f", "/home/user/d/f", "d/../e/f"];
    edit_each(&computer, |line| spellings[line % spellings.len()].to_owned()).await?;
    let expected: String = (0..50).map(|line| format!("[{line}]\n")).collect();
    same(computer.ok("read", json!({ "path": "d/f" })).await?, expected)
}

/// Changes each of fifty lines from `<n>` to `[n]`, all at the same time.
async fn edit_each(
    computer: &std::sync::Arc<Computer>,
    path: impl Fn(usize) -> String,
) -> Result<(), Failed> {
    let edits = (0..50).map(|line| {
        let (computer, path) = (computer.clone(), path(line));
        let input = json!({ "path": path, "oldText": format!("<{line}>"), "newText": format!("[{line}]") });
        tokio::spawn(async move { computer.call("edit", input).await })
    });
    for edit in edits.collect::<Vec<_>>() {
        let answer = edit.await?;
        ensure(!answer.is_error, answer.as_text())?;
    }
    Ok(())
}

async fn kept() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    let sandbox = computer.sandbox().await?;
    sandbox.write("run", &b"#!/bin/sh\n# \xff\xfe\necho a\n"[..]).await?;
    computer.ok("bash", json!({ "command": "chmod 755 run" })).await?;
    let edit = json!({ "path": "run", "oldText": "echo a", "newText": "echo $&" });
    same(computer.ok("edit", edit).await?, "Successfully edited run")?;
    let file = sandbox.read("run").await?;
    ensure(&file[..] == b"#!/bin/sh\n# \xff\xfe\necho $&\n", format!("{file:?}"))?;
    ensure(sandbox.stat("run").await?.mode == Some(0o755), "its mode changed")
}

async fn nothing() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    computer.ok("write", json!({ "path": "f", "content": "a a" })).await?;
    let edit = json!({ "path": "f", "oldText": "b", "newText": "c", "replaceAll": true });
    same(computer.error("edit", edit).await?, "Could not find the text in f. No changes made.")?;
    let edit = json!({ "path": "f", "oldText": "a", "newText": "c" });
    let error = computer.error("edit", edit).await?;
    ensure(error.starts_with("Found 2 occurrences of the text in f."), error)?;
    same(computer.ok("read", json!({ "path": "f" })).await?, "a a")
}
