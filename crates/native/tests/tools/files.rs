//! `read_file`, `write_file`, `glob`.

use futures_util::future::join_all;
use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::session::{Session, text};
use crate::{ensure, ensure_eq, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_part_of_a_file_is_counted_in_bytes_and_its_size_is_the_whole_file_s", parts),
        trial("what_is_left_out_of_a_long_file_can_be_read_as_the_note_says", long_file),
        trial("a_file_that_is_not_utf_8_is_said_to_be_so_with_its_size", not_text),
        trial("a_file_without_a_stated_size_is_read_all_the_same", proc_files),
        trial("f5_a_file_too_large_to_read_is_refused_and_a_part_of_it_is_not", sparse),
        trial("f2_what_is_no_file_is_refused_at_once", no_files),
        trial("f7_what_ten_appenders_add_at_once_is_all_there_and_whole", append),
        trial("a_write_makes_parents_and_says_the_whole_size_in_bytes", write),
        trial("an_append_past_64_mib_is_refused_and_changes_nothing", append_limit),
        trial("a_glob_knows_stars_braces_and_any_name_and_is_sorted", globs),
        trial("a_glob_that_finds_more_than_its_limit_says_so", many_files),
    ]
}

async fn parts() -> Result<(), Failed> {
    let session = Session::new()?;
    let content = "aäb€c👍d\n";
    session.ok("write_file", json!({ "path": "t", "content": content })).await?;
    let read = |offset: u64, limit: u64| json!({ "path": "t", "offset": offset, "limit": limit });
    for (part, shown) in [(read(0, 1), "a"), (read(1, 2), "ä"), (read(99, 5), ""), (read(0, 0), "")] {
        let answer = session.ok("read_file", part).await?;
        ensure_eq(answer, json!({ "content": shown, "size": content.len() }))?;
    }
    for step in 1..5 {
        let mut whole = String::new();
        for offset in (0..content.len() as u64).step_by(step) {
            whole += &text(&session.ok("read_file", read(offset, step as u64)).await?["content"]);
        }
        ensure_eq(whole.as_str(), content)?;
    }
    session.close().await
}

async fn long_file() -> Result<(), Failed> {
    let session = Session::new()?;
    session.shell("seq 1 100000 > t").await?;
    let answer = session.ok("read_file", json!({ "path": "t" })).await?;
    let content = text(&answer["content"]);
    ensure_eq(&answer["size"], &json!(588_895))?;
    ensure(content.starts_with("1\n2\n") && content.ends_with("\n99999\n100000\n"), "an end is missing")?;
    let note = content.lines().find(|line| line.starts_with("[eyot: ")).ok_or("no note")?;
    let numbers: Vec<u64> = note.split(['`', ' ', ']']).filter_map(|word| word.parse().ok()).collect();
    let [_, _, offset, limit] = numbers[..] else { return Err(format!("{note}: {numbers:?}").into()) };
    let next = session.ok("read_file", json!({ "path": "t", "offset": offset, "limit": limit })).await?;
    let next = text(&next["content"]);
    let head = content.split("\n[eyot: ").next().unwrap_or_default();
    let both: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    ensure(both.starts_with(&format!("{head}{next}")) && next.len() as u64 == limit, note)?;
    session.close().await
}

async fn not_text() -> Result<(), Failed> {
    let session = Session::new()?;
    session.shell("printf 'a\\377b' > bin; printf 'ab\\342\\202' > cut").await?;
    for (file, size) in [("bin", 3), ("cut", 4)] {
        let said = session.refusal("read_file", json!({ "path": file })).await?;
        ensure(said.contains(&format!("not UTF-8 text; it has {size} bytes")), said)?;
    }
    let answer = session.ok("read_file", json!({ "path": "cut", "limit": 2 })).await?;
    ensure_eq(answer, json!({ "content": "ab", "size": 4 }))?;
    session.close().await
}

async fn proc_files() -> Result<(), Failed> {
    let session = Session::new()?;
    let answer = session.ok("read_file", json!({ "path": "/proc/self/status" })).await?;
    let content = text(&answer["content"]);
    ensure_eq((content.starts_with("Name:"), &answer["size"]), (true, &json!(content.len())))?;
    session.close().await
}

async fn sparse() -> Result<(), Failed> {
    let session = Session::new()?;
    session.shell("truncate -s 100G big; printf end >> big").await?;
    let said = session.refusal("read_file", json!({ "path": "big" })).await?;
    ensure(said.contains("67108864 bytes") && said.contains("`offset` and `limit`"), said)?;
    let end = json!({ "path": "big", "offset": 100_u64 << 30, "limit": 10 });
    let answer = session.ok("read_file", end).await?;
    ensure_eq(answer, json!({ "content": "end", "size": (100_u64 << 30) + 3 }))?;
    session.close().await
}

async fn no_files() -> Result<(), Failed> {
    let session = Session::new()?;
    session.shell("mkdir d; mkfifo f").await?;
    for path in ["d", "f", "missing", "", "a\0b"] {
        let said = session.refusal("read_file", json!({ "path": path })).await?;
        ensure(!said.is_empty(), path)?;
    }
    let said = session.refusal("write_file", json!({ "path": "d", "content": "x" })).await?;
    ensure(said.contains("is a directory"), said)?;
    session.close().await
}

async fn append() -> Result<(), Failed> {
    let session = Session::new()?;
    let line = |n: usize| format!("{n}{}\n", "x".repeat(5000));
    let calls = (0..10)
        .map(|n| session.ok("write_file", json!({ "path": "log", "content": line(n), "append": true })));
    for answer in join_all(calls).await {
        answer?;
    }
    let sorted = session.shell("sort log | cut -c1-3; wc -c < log").await?;
    let expected: String = (0..10).map(|n| format!("{n}xx\n")).collect::<String>() + "50020\n";
    ensure_eq(sorted, expected)?;
    session.close().await
}

async fn write() -> Result<(), Failed> {
    let session = Session::new()?;
    let write = |append| json!({ "path": "a/b/c.txt", "content": "zwölf\n", "append": append });
    for (append, size) in [(false, 7), (true, 14), (false, 7)] {
        ensure_eq(session.ok("write_file", write(append)).await?, json!({ "ok": true, "size": size }))?;
    }
    ensure_eq(session.shell("cat a/b/c.txt; ls a/b").await?, "zwölf\nc.txt\n".to_owned())?;
    session.close().await
}

async fn append_limit() -> Result<(), Failed> {
    let session = Session::new()?;
    session.shell("truncate -s 64M big").await?;
    let more = json!({ "path": "big", "content": "x", "append": true });
    let said = session.refusal("write_file", more).await?;
    ensure(said.contains("67108864"), said)?;
    ensure_eq(session.shell("stat -c %s big").await?, "67108864\n".to_owned())?;
    session.close().await
}

async fn globs() -> Result<(), Failed> {
    let session = Session::new()?;
    session
        .shell("mkdir -p src/deep; touch b.md a.md .hidden.md src/x.rs src/deep/y.rs src/deep/z.toml")
        .await?;
    session.shell("touch 'src/with space.rs' $'src/line\\nbreak.rs' 'src/[x].rs' \"src/quo'te.rs\"").await?;
    let odd = ["src/[x].rs", "src/line\nbreak.rs", "src/quo'te.rs", "src/with space.rs", "src/x.rs"];
    let cases = [
        (json!({ "pattern": "*.md" }), vec!["a.md", "b.md"]),
        (json!({ "pattern": ".*.md" }), vec![".hidden.md"]),
        (
            json!({ "pattern": "src/**/*.{rs,toml}" }),
            [&["src/[x].rs", "src/deep/y.rs", "src/deep/z.toml"], &odd[1..]].concat(),
        ),
        (json!({ "pattern": "src/*.rs" }), odd.to_vec()),
        (json!({ "pattern": "**/y.rs", "cwd": "src" }), vec!["deep/y.rs"]),
        (json!({ "pattern": "../*.md", "cwd": "src" }), vec!["../a.md", "../b.md"]),
        (json!({ "pattern": "/home/user/a.*" }), vec!["/home/user/a.md"]),
        (json!({ "pattern": "*.none" }), vec![]),
        (json!({ "pattern": "*.md", "cwd": "" }), vec!["a.md", "b.md"]),
    ];
    for (input, files) in cases {
        let answer = session.ok("glob", input.clone()).await?;
        ensure(answer == json!({ "files": files }), format!("{input}: {answer}"))?;
    }
    let said = session.refusal("glob", json!({ "pattern": "*", "cwd": "nowhere" })).await?;
    ensure(said.contains("nowhere"), said)?;
    let said = session.refusal("glob", json!({ "pattern": "[" })).await?;
    ensure(said.contains('['), said)?;
    let said = session.refusal("glob", json!({ "pattern": "src/" })).await?;
    ensure(said.starts_with("`pattern` `src/` ends with `/`"), said)?;
    session.close().await
}

async fn many_files() -> Result<(), Failed> {
    let session = Session::new()?;
    session.shell("mkdir d; cd d; seq -f f%05g 1 1001 | xargs touch").await?;
    let output = session.call("glob", json!({ "pattern": "d/*" })).await;
    let answer = output.structured.clone().ok_or("no answer")?;
    ensure_eq(answer["files"].as_array().map(Vec::len), Some(1000))?;
    ensure(output.as_text().contains("[eyot: these are the first 1000 files"), "no note")?;
    session.close().await
}
