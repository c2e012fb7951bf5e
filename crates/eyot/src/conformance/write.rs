//! Writing whole files: parents, replacing, creating, appending, permission bits, limits, and many writers at
//! once.

use std::sync::Arc;

use futures_util::future::join_all;

use super::Fixture;
use super::check::{Check, Failure, cases, ensure, ensure_eq, ensure_fails, output, sh, with_spec};
use super::read::{pattern, with_file_limit};
use crate::files::{CreateDirOptions, WriteMode, WriteOptions};
use crate::sandbox::Sandbox;

const APPEND: WriteOptions =
    WriteOptions { mode: WriteMode::Append, permissions: None, max_file_bytes: None };
const CREATE_NEW: WriteOptions =
    WriteOptions { mode: WriteMode::CreateNew, permissions: None, max_file_bytes: None };

cases! {
    a_write_makes_missing_parents(workspace) needs [];
    a_write_whose_parents_can_not_be_made_says_why(workspace) needs [Shell];
    a_write_below_a_file_fails_and_changes_nothing(workspace) needs [];
    a_write_to_a_directory_is_is_directory(workspace) needs [];
    a_write_replaces_and_truncates(workspace) needs [];
    a_write_says_how_large_the_file_is_then(workspace) needs [];
    an_empty_write_makes_an_empty_file(workspace) needs [];
    what_was_written_is_what_a_command_reads(workspace) needs [Shell];
    a_new_file_has_the_usual_permission_bits_or_the_ones_asked_for(workspace) needs [];
    set_id_bits_are_refused_and_change_nothing(workspace) needs [];
    replacing_a_file_keeps_its_permission_bits(workspace) needs [Shell];
    a_file_that_the_user_may_not_write_is_permission(workspace) needs [Shell];
    create_new_refuses_what_is_there_and_leaves_it(workspace) needs [];
    of_ten_who_create_one_file_one_succeeds(workspace) needs [];
    an_append_makes_the_file_and_adds_to_its_end(workspace) needs [Append];
    an_append_below_missing_directories_makes_them(workspace) needs [Append];
    f5_a_write_as_large_as_the_limit_succeeds_and_one_byte_more_changes_nothing(fixture) needs [];
    f5_an_append_past_the_limit_changes_nothing(fixture) needs [Append];
    a_call_s_own_limit_counts_when_it_is_stricter(fixture) needs [];
    f7_a_reader_sees_the_old_or_the_new_file_and_nothing_between(workspace) needs [AtomicWrite];
    f7_of_two_writers_one_wins_whole(workspace) needs [AtomicWrite];
    f7_what_ten_appenders_add_never_interleaves(workspace) needs [Append];
    f7_ten_large_appends_at_once_stay_whole(workspace) needs [Append];
    writes_leave_nothing_beside_the_file(workspace) needs [];
}

/// The names in the working directory.
pub(super) async fn names(sandbox: &Sandbox) -> Check<Vec<String>> {
    Ok(sandbox.list(".").await?.into_iter().map(|entry| entry.name).collect())
}

async fn a_write_makes_missing_parents(sandbox: Sandbox) -> Check {
    sandbox.write("a/b/c/d.txt", "x").await?;
    ensure_eq!(sandbox.read_text("a/b/c/d.txt").await?, "x");
    sandbox.write("a/b/c/e.txt", "y").await?;
    ensure_eq!(sandbox.list("a/b/c").await?.len(), 2);
    Ok(())
}

async fn a_write_whose_parents_can_not_be_made_says_why(sandbox: Sandbox) -> Check {
    if sh(&sandbox, "mkdir closed && chmod 555 closed && touch closed/x 2>&1").await?.success() {
        return Err(Failure::NotHere("the sandbox's user is root, who may write everything".to_owned()));
    }
    ensure_fails!(sandbox.write("closed/a/b", "x").await, Permission);
    output(&sandbox, "chmod 755 closed").await?;
    ensure!(sandbox.list("closed").await?.is_empty(), "something was made");
    Ok(())
}

async fn a_write_below_a_file_fails_and_changes_nothing(sandbox: Sandbox) -> Check {
    sandbox.write("f", "old").await?;
    ensure_fails!(sandbox.write("f/below", "x").await, NotDirectory | AlreadyExists);
    ensure_fails!(sandbox.write("f/far/below", "x").await, NotDirectory | AlreadyExists);
    ensure_eq!(sandbox.read_text("f").await?, "old");
    ensure_eq!(names(&sandbox).await?, ["f"]);
    Ok(())
}

async fn a_write_to_a_directory_is_is_directory(sandbox: Sandbox) -> Check {
    sandbox.create_dir("d", CreateDirOptions::default()).await?;
    ensure_fails!(sandbox.write("d", "x").await, IsDirectory);
    ensure!(
        sandbox.stat("d").await?.is_directory && sandbox.list("d").await?.is_empty(),
        "the directory changed"
    );
    Ok(())
}

async fn a_write_replaces_and_truncates(sandbox: Sandbox) -> Check {
    sandbox.write("f", "a long first content").await?;
    sandbox.write("f", "short").await?;
    ensure_eq!(sandbox.read_text("f").await?, "short");
    sandbox.write("f", "").await?;
    ensure_eq!(sandbox.stat("f").await?.size.unwrap_or(0), 0);
    Ok(())
}

async fn a_write_says_how_large_the_file_is_then(sandbox: Sandbox) -> Check {
    ensure_eq!(sandbox.write_with("f", "12345", WriteOptions::default()).await?, 5);
    ensure_eq!(sandbox.write_with("f", "ü", WriteOptions::default()).await?, 2);
    ensure_eq!(sandbox.write_with("new", "", CREATE_NEW).await?, 0);
    Ok(())
}

async fn an_empty_write_makes_an_empty_file(sandbox: Sandbox) -> Check {
    sandbox.write("f", "").await?;
    ensure!(sandbox.stat("f").await?.is_file, "no file was made");
    Ok(())
}

async fn what_was_written_is_what_a_command_reads(sandbox: Sandbox) -> Check {
    sandbox.write("f", &b"a\0b\nlast"[..]).await?;
    ensure_eq!(output(&sandbox, "od -An -c f | tr -d ' '").await?, r"a\0b\nlast");
    Ok(())
}

async fn a_new_file_has_the_usual_permission_bits_or_the_ones_asked_for(sandbox: Sandbox) -> Check {
    sandbox.write("usual", "x").await?;
    let script = WriteOptions { permissions: Some(0o750), ..WriteOptions::default() };
    sandbox.write_with("script", "x", script).await?;
    sandbox.write_with("new", "x", WriteOptions { permissions: Some(0o600), ..CREATE_NEW }).await?;
    for (name, mode) in [("usual", 0o644), ("script", 0o750), ("new", 0o600)] {
        if let Some(found) = sandbox.stat(name).await?.mode {
            ensure!(found == mode, "`{name}` has {found:o}, not {mode:o}");
        }
    }
    Ok(())
}

async fn set_id_bits_are_refused_and_change_nothing(sandbox: Sandbox) -> Check {
    sandbox.write("f", "kept").await?;
    for permissions in [0o4755, 0o2644, 0o6777].map(Some) {
        let replace = WriteOptions { permissions, ..WriteOptions::default() };
        for options in [replace, WriteOptions { permissions, ..CREATE_NEW }] {
            ensure_fails!(sandbox.write_with("f", "x", options).await, Invalid);
            ensure_fails!(sandbox.write_with("new", "x", options).await, Invalid);
        }
    }
    ensure_eq!(&sandbox.read("f").await?[..], b"kept");
    ensure!(!sandbox.exists("new").await?, "a file was made");
    Ok(())
}

async fn replacing_a_file_keeps_its_permission_bits(sandbox: Sandbox) -> Check {
    output(&sandbox, "printf '#!/bin/sh\\necho old\\n' > run && chmod 755 run").await?;
    sandbox.write("run", "#!/bin/sh\necho new\n").await?;
    ensure_eq!(output(&sandbox, "./run").await?, "new");
    ensure_eq!(output(&sandbox, "chmod 640 run && stat -c %a run").await?, "640");
    sandbox.write("run", "x").await?;
    ensure_eq!(output(&sandbox, "stat -c %a run").await?, "640");
    Ok(())
}

async fn a_file_that_the_user_may_not_write_is_permission(sandbox: Sandbox) -> Check {
    if output(&sandbox, "id -u").await? == "0" {
        return Err(Failure::NotHere("the sandbox's user is root, who may write everything".to_owned()));
    }
    output(&sandbox, "echo old > f && chmod 444 f && mkdir d && chmod 555 d").await?;
    ensure_fails!(sandbox.write("f", "new").await, Permission);
    ensure_fails!(sandbox.write("d/f", "new").await, Permission);
    ensure_eq!(sandbox.read_text("f").await?, "old\n");
    output(&sandbox, "chmod 755 d && test -z \"$(ls -A d)\"").await?;
    Ok(())
}

async fn create_new_refuses_what_is_there_and_leaves_it(sandbox: Sandbox) -> Check {
    ensure_eq!(sandbox.write_with("a/f", "first", CREATE_NEW).await?, 5);
    ensure_fails!(sandbox.write_with("a/f", "second", CREATE_NEW).await, AlreadyExists);
    ensure_fails!(sandbox.write_with("a", "second", CREATE_NEW).await, AlreadyExists);
    ensure_eq!(sandbox.read_text("a/f").await?, "first");
    ensure_eq!(sandbox.list("a").await?.len(), 1);
    Ok(())
}

async fn of_ten_who_create_one_file_one_succeeds(sandbox: Sandbox) -> Check {
    let all =
        join_all((0..10).map(|writer| sandbox.write_with("f", vec![b'0' + writer; 1000], CREATE_NEW))).await;
    ensure_eq!(all.iter().filter(|created| created.is_ok()).count(), 1);
    let winner = all.iter().position(Result::is_ok).unwrap_or_default() as u8;
    for refused in all.into_iter().filter(Result::is_err) {
        ensure_fails!(refused, AlreadyExists);
    }
    ensure!(sandbox.read("f").await? == vec![b'0' + winner; 1000], "the file is not the winner's");
    Ok(())
}

async fn an_append_makes_the_file_and_adds_to_its_end(sandbox: Sandbox) -> Check {
    ensure_eq!(sandbox.write_with("log", "one\n", APPEND).await?, 4);
    ensure_eq!(sandbox.write_with("log", "two\n", APPEND).await?, 8);
    ensure_eq!(sandbox.write_with("log", "", APPEND).await?, 8);
    ensure_eq!(sandbox.read_text("log").await?, "one\ntwo\n");
    sandbox.create_dir("d", CreateDirOptions::default()).await?;
    ensure_fails!(sandbox.write_with("d", "x", APPEND).await, IsDirectory);
    Ok(())
}

async fn an_append_below_missing_directories_makes_them(sandbox: Sandbox) -> Check {
    ensure_eq!(sandbox.write_with("a/b/log", "x", APPEND).await?, 1);
    ensure_eq!(sandbox.read_text("a/b/log").await?, "x");
    Ok(())
}

async fn f5_a_write_as_large_as_the_limit_succeeds_and_one_byte_more_changes_nothing(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let spec = with_file_limit(&*fixture, 100_000);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        ensure_eq!(sandbox.write_with("f", vec![b'x'; 100_000], WriteOptions::default()).await?, 100_000);
        for options in [WriteOptions::default(), CREATE_NEW] {
            ensure_fails!(sandbox.write_with("d/new", vec![b'y'; 100_001], options).await, TooLarge);
        }
        ensure_fails!(sandbox.write("f", vec![b'y'; 100_001]).await, TooLarge);
        ensure!(sandbox.read("f").await? == vec![b'x'; 100_000], "the old file changed");
        ensure_eq!(names(&sandbox).await?, ["f"]);
        Ok(())
    })
    .await
}

async fn f5_an_append_past_the_limit_changes_nothing(fixture: Arc<dyn Fixture>) -> Check {
    let spec = with_file_limit(&*fixture, 10);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        ensure_eq!(sandbox.write_with("log", "12345", APPEND).await?, 5);
        ensure_eq!(sandbox.write_with("log", "67890", APPEND).await?, 10);
        ensure_fails!(sandbox.write_with("log", "x", APPEND).await, TooLarge);
        ensure_eq!(sandbox.read_text("log").await?, "1234567890");
        Ok(())
    })
    .await
}

async fn a_call_s_own_limit_counts_when_it_is_stricter(fixture: Arc<dyn Fixture>) -> Check {
    let spec = with_file_limit(&*fixture, 10);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        let within = |limit| WriteOptions { max_file_bytes: Some(limit), ..WriteOptions::default() };
        ensure_fails!(sandbox.write_with("f", "12345", within(4)).await, TooLarge);
        ensure_eq!(sandbox.write_with("f", "12345", within(5)).await?, 5);
        ensure_fails!(sandbox.write_with("f", "12345678901", within(1000)).await, TooLarge);
        Ok(())
    })
    .await
}

async fn f7_a_reader_sees_the_old_or_the_new_file_and_nothing_between(sandbox: Sandbox) -> Check {
    let contents = [vec![b'a'; 300_000], vec![b'b'; 200_000]];
    sandbox.write("f", contents[0].clone()).await?;
    let writing = async {
        for round in 0..40 {
            sandbox.write("f", contents[round % 2].clone()).await?;
        }
        Check::Ok(())
    };
    let reading = async {
        for _ in 0..80 {
            let found = sandbox.read("f").await?;
            ensure!(
                contents.iter().any(|whole| found == whole[..]),
                "{} bytes of both contents",
                found.len()
            );
        }
        Check::Ok(())
    };
    let (written, read) = tokio::join!(writing, reading);
    written.and(read)
}

async fn f7_of_two_writers_one_wins_whole(sandbox: Sandbox) -> Check {
    let contents = [vec![b'a'; 300_000], vec![b'b'; 200_000]];
    for _ in 0..10 {
        for written in join_all(contents.iter().map(|content| sandbox.write("f", content.clone()))).await {
            written?;
        }
        let found = sandbox.read("f").await?;
        ensure!(contents.iter().any(|whole| found == whole[..]), "the file is neither writer's");
    }
    ensure_eq!(names(&sandbox).await?, ["f"]);
    Ok(())
}

async fn f7_what_ten_appenders_add_never_interleaves(sandbox: Sandbox) -> Check {
    let appender = async |writer: u8| {
        for _ in 0..20 {
            let mut line = vec![b'0' + writer; 999];
            line.push(b'\n');
            sandbox.write_with("log", line, APPEND).await?;
        }
        Check::Ok(())
    };
    for done in join_all((0..10).map(appender)).await {
        done?;
    }
    let log = sandbox.read_text("log").await?;
    ensure_eq!(log.lines().count(), 200);
    for writer in '0'..='9' {
        let whole = writer.to_string().repeat(999);
        ensure_eq!(log.lines().filter(|line| **line == whole).count(), 20);
    }
    Ok(())
}

async fn f7_ten_large_appends_at_once_stay_whole(sandbox: Sandbox) -> Check {
    const LARGE: usize = 700_000;
    for added in
        join_all((0..10).map(|writer| sandbox.write_with("log", vec![b'0' + writer; LARGE], APPEND))).await
    {
        added?;
    }
    let log = sandbox.read("log").await?;
    ensure_eq!(log.len(), 10 * LARGE);
    let mixed = log.chunks(LARGE).position(|chunk| chunk.iter().any(|byte| *byte != chunk[0]));
    ensure!(mixed.is_none(), "append {mixed:?} is mixed with another");
    Ok(())
}

async fn writes_leave_nothing_beside_the_file(sandbox: Sandbox) -> Check {
    sandbox.create_dir("d", CreateDirOptions::default()).await?;
    for round in 0..5_usize {
        sandbox.write("f", pattern(round * 10_000)).await?;
        ensure_fails!(sandbox.write_with("f", "x", CREATE_NEW).await, AlreadyExists);
        ensure_fails!(sandbox.write("d", "x").await, IsDirectory);
    }
    ensure_eq!(names(&sandbox).await?, ["d", "f"]);
    Ok(())
}
