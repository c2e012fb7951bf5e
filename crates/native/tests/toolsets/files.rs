//! `coding`'s `read` and `write`.

use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::computer::Computer;
use crate::{ensure, same, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("coding_what_was_written_is_read_whatever_its_name", names),
        trial("coding_a_huge_file_is_read_by_its_lines_in_bounded_memory", huge),
        trial("coding_lines_that_a_limit_names_are_read_without_the_rest_of_a_huge_file", head),
        trial("coding_a_file_that_is_not_utf_8_is_said_to_be_so", not_text),
        trial("coding_reading_a_directory_or_nothing_is_an_error_that_names_it", not_a_file),
        trial("coding_wrong_arguments_are_refused_with_what_was_expected", wrong),
    ]
}

async fn names() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    for path in ["a b/it's.txt", "line\nfeed", "/tmp/-x", "ünï/😀.txt"] {
        let wrote = computer.ok("write", json!({ "path": path, "content": "é😀\n" })).await?;
        same(wrote, format!("Successfully wrote 4 bytes to {path}"))?;
        same(computer.ok("read", json!({ "path": path })).await?, "é😀\n")?;
    }
    Ok(())
}

async fn huge() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    let made = computer.ok("bash", json!({ "command": "seq 1 3000000 > big; truncate -s 2G hole" })).await?;
    same(made, "(no output)")?;
    let page = computer.ok("read", json!({ "path": "big", "offset": 2999999 })).await?;
    same(page, "2999999\n3000000\n")?;
    let first = computer.ok("read", json!({ "path": "big" })).await?;
    let marker = "\n2000\n\n[Showing lines 1-2000 of 3000001. Use offset=2001 to continue.]";
    ensure(first.ends_with(marker), first)?;
    let hole = computer.error("read", json!({ "path": "hole" })).await?;
    ensure(hole.contains("it has more than 1073741824 bytes"), hole)
}

async fn head() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    computer.ok("bash", json!({ "command": "printf 'one\\ntwo\\n' > hole; truncate -s 2T hole" })).await?;
    same(computer.ok("read", json!({ "path": "hole", "offset": 2, "limit": 1 })).await?, "two")
}

async fn not_text() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    computer.sandbox().await?.write("latin1", &b"caf\xe9\n"[..]).await?;
    let error = computer.error("read", json!({ "path": "latin1" })).await?;
    ensure(error.contains("it is not UTF-8 text; it has 5 bytes"), error)
}

async fn not_a_file() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    let directory = computer.error("read", json!({ "path": "/etc" })).await?;
    ensure(directory.starts_with("read file `/etc` in sandbox `"), &directory)?;
    ensure(directory.ends_with("`: is a directory"), directory)?;
    let missing = computer.error("read", json!({ "path": "nope" })).await?;
    ensure(missing.starts_with("read file `nope` in sandbox `"), missing)
}

async fn wrong() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    let error = computer.error("read", json!({ "path": "a", "offset": "ten" })).await?;
    ensure(error.contains("`offset` must be") && error.contains("got \"ten\""), error)?;
    let error = computer.error("edit", json!({ "path": "a", "oldText": "", "newText": "x" })).await?;
    same(error, "oldText must be a non-empty string.")
}
