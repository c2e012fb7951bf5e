//! `anthropic`'s `str_replace_based_edit_tool`.

use std::sync::Arc;

use eyot_tools::{AnthropicToolsOptions, anthropic_tools};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use crate::computer::Computer;
use crate::{ensure, same, trial};

const EDITOR: &str = "str_replace_based_edit_tool";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("anthropic_a_file_is_created_once_with_its_parents", create),
        trial("anthropic_a_file_is_viewed_with_line_numbers_whole_or_in_part", view),
        trial("anthropic_a_directory_is_viewed_two_levels_deep_without_hidden_names", directory),
        trial("anthropic_a_text_is_replaced_and_a_line_inserted", edits),
        trial("anthropic_what_cannot_be_done_is_said_in_the_documented_words", errors),
        trial("anthropic_fifty_edits_of_one_file_side_by_side_lose_nothing", fifty),
        trial("anthropic_a_long_file_is_cut_at_max_characters", long),
    ]
}

async fn ok(computer: &Computer, input: Value) -> Result<String, Failed> {
    computer.ok(EDITOR, input).await
}

async fn create() -> Result<(), Failed> {
    let computer = Computer::new("anthropic")?;
    let input = json!({ "command": "create", "path": "/home/user/a b/c", "file_text": "x\n" });
    same(ok(&computer, input.clone()).await?, "File created successfully at: /home/user/a b/c")?;
    let error = computer.error(EDITOR, input).await?;
    let expected = "File already exists at: /home/user/a b/c. Cannot overwrite files using command `create`.";
    same(error, expected)?;
    let viewed = ok(&computer, json!({ "command": "view", "path": "a b/c" })).await?;
    same(viewed, "Here's the result of running `cat -n` on a b/c:\n     1\tx\n     2\t\n")
}

async fn view() -> Result<(), Failed> {
    let computer = Computer::new("anthropic")?;
    ok(&computer, json!({ "command": "create", "path": "f", "file_text": "a\n\tb\nc" })).await?;
    let part = ok(&computer, json!({ "command": "view", "path": "f", "view_range": [2, -1] })).await?;
    same(part, "Here's the result of running `cat -n` on f:\n     2\t\tb\n     3\tc\n")?;
    let error =
        computer.error(EDITOR, json!({ "command": "view", "path": "f", "view_range": [4, 5] })).await?;
    let expected = "Invalid `view_range`: [4, 5]. Its first element `4` should be within the range of lines of the file: \
                    [1, 3]";
    same(error, expected)?;
    computer.sandbox().await?.write("bin", &b"\xff\0"[..]).await?;
    let error = computer.error(EDITOR, json!({ "command": "view", "path": "bin" })).await?;
    ensure(error.starts_with("The file bin is not UTF-8 text; it has 2 bytes."), error)
}

async fn directory() -> Result<(), Failed> {
    let computer = Computer::new("anthropic")?;
    let line = "mkdir -p d/e/f d/.h d/g; touch d/a $'d/x\\ny' d/e/b d/e/f/deep d/.h/s; ln -s /etc d/link";
    computer.ok("bash", json!({ "command": line })).await?;
    let viewed = ok(&computer, json!({ "command": "view", "path": "d" })).await?;
    let expected = "Here's the files and directories up to 2 levels deep in d, excluding hidden \
                    items:\nd\nd/a\nd/e\nd/e/b\nd/e/f\nd/g\nd/link\n$'d/x\\ny'\n";
    same(viewed, expected)?;
    let root = ok(&computer, json!({ "command": "view", "path": "/" })).await?;
    ensure(root.contains("\n/\n") && root.contains("\n/etc/passwd\n"), root)?;
    let error =
        computer.error(EDITOR, json!({ "command": "view", "path": "d", "view_range": [1, 2] })).await?;
    same(error, "The `view_range` parameter is not allowed when `path` points to a directory.")
}

async fn edits() -> Result<(), Failed> {
    let computer = Computer::new("anthropic")?;
    ok(&computer, json!({ "command": "create", "path": "f", "file_text": "a\nb\n" })).await?;
    let edited =
        ok(&computer, json!({ "command": "str_replace", "path": "f", "old_str": "b\n", "new_str": "c\n" }))
            .await?;
    let expected = "The file f has been edited. Here's the result of running `cat -n` on a snippet of f:\n     1\ta\n     \
                    2\tc\n     3\t\nReview the changes and make sure they are as expected. Edit the file again if \
                    necessary.";
    same(edited, expected)?;
    for (name, line) in [("insert_text", 1), ("new_str", 0)] {
        let insert = json!({ "command": "insert", "path": "f", "insert_line": line, name: "new\n" });
        let inserted = ok(&computer, insert).await?;
        ensure(inserted.contains("`cat -n` on a snippet of the edited file:\n"), inserted)?;
    }
    ok(&computer, json!({ "command": "str_replace", "path": "f", "old_str": "c\n" })).await?;
    same(computer.ok("bash", json!({ "command": "cat f" })).await?, "new\na\nnew")
}

async fn errors() -> Result<(), Failed> {
    let computer = Computer::new("anthropic")?;
    ok(&computer, json!({ "command": "create", "path": "f", "file_text": "a\nb\na\n" })).await?;
    for (input, expected) in [
        (
            json!({ "command": "view", "path": "/no" }),
            "The path /no does not exist. Please provide a valid path.",
        ),
        (
            json!({ "command": "str_replace", "path": "no", "old_str": "a" }),
            "The path no does not exist. Please provide a valid path.",
        ),
        (
            json!({ "command": "insert", "path": "/etc", "insert_line": 0, "insert_text": "x" }),
            "The path /etc is a directory and only the `view` command can be used on directories",
        ),
        (
            json!({ "command": "create", "path": "x" }),
            "Parameter `file_text` is required for command: create",
        ),
        (
            json!({ "command": "str_replace", "path": "f", "old_str": "z" }),
            "No replacement was performed, old_str `z` did not appear verbatim in f.",
        ),
        (
            json!({ "command": "str_replace", "path": "f", "old_str": "a\n" }),
            "No replacement was performed. Multiple occurrences of old_str `a\n` in lines [1, 3]. Please ensure it is \
             unique",
        ),
        (
            json!({ "command": "insert", "path": "f", "insert_line": 4, "insert_text": "x" }),
            "Invalid `insert_line` parameter: 4. It should be within the range of lines of the file: [0, 3]",
        ),
    ] {
        same(computer.error(EDITOR, input).await?, expected)?;
    }
    let error = computer.error(EDITOR, json!({ "command": "undo_edit", "path": "f" })).await?;
    ensure(error.contains("\"view\", \"create\", \"str_replace\", \"insert\""), error)
}

async fn fifty() -> Result<(), Failed> {
    let computer = Arc::new(Computer::new("anthropic")?);
    let lines: String = (0..50).map(|line| format!("<{line}>\n")).collect();
    ok(&computer, json!({ "command": "create", "path": "f", "file_text": lines })).await?;
    let edits = (0..50).map(|line| {
        let computer = computer.clone();
        let (old, new) = (format!("<{line}>"), format!("[{line}]"));
        let input = json!({ "command": "str_replace", "path": "f", "old_str": old, "new_str": new });
        tokio::spawn(async move { computer.call(EDITOR, input).await })
    });
    for edit in edits.collect::<Vec<_>>() {
        let answer = edit.await?;
        ensure(!answer.is_error, answer.as_text())?;
    }
    same(computer.ok("bash", json!({ "command": "grep -c '^\\[[0-9]*\\]$' f" })).await?, "50")
}

async fn long() -> Result<(), Failed> {
    let options = AnthropicToolsOptions { max_characters: Some(20), ..AnthropicToolsOptions::default() };
    let computer = Computer::with(anthropic_tools(options)?)?;
    ok(&computer, json!({ "command": "create", "path": "f", "file_text": "0123456789\n".repeat(9) })).await?;
    let viewed = ok(&computer, json!({ "command": "view", "path": "f" })).await?;
    let note = "[eyot: the rest is left out, from line 2 on; use `view_range` to see it]\n";
    ensure(viewed.ends_with(&format!("     1\t0123456789\n  \n{note}")), viewed)?;
    let computer = Computer::new("anthropic")?;
    computer.ok("bash", json!({ "command": "yes '' | head -c 50000000 > lines" })).await?;
    let viewed = ok(&computer, json!({ "command": "view", "path": "lines" })).await?;
    ensure(viewed.len() < 70_000, format!("{} bytes", viewed.len()))?;
    let end = json!({ "command": "view", "path": "lines", "view_range": [50_000_000, -1] });
    let viewed = ok(&computer, end).await?;
    ensure(viewed.ends_with(":\n50000000\t\n50000001\t\n"), viewed)
}
