//! The facts about a file, and whether there is one.

use std::time::{SystemTime, UNIX_EPOCH};

use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, output, promptly};
use crate::files::CreateDirOptions;
use crate::sandbox::Sandbox;

cases! {
    a_file_is_described_by_type_size_mode_and_time(workspace) needs [];
    a_directory_is_described_as_one(workspace) needs [];
    an_empty_file_is_a_file(workspace) needs [];
    a_link_is_described_by_its_target_and_as_a_link(workspace) needs [Shell, Symlinks];
    a_dangling_link_is_not_found_and_does_not_exist(workspace) needs [Shell, Symlinks];
    a_loop_of_links_fails_promptly_and_does_not_exist(workspace) needs [Shell, Symlinks];
    what_is_missing_is_not_found_and_does_not_exist(workspace) needs [];
    what_is_below_a_file_fails_and_does_not_exist(workspace) needs [];
    what_is_there_exists(workspace) needs [];
    a_later_write_is_described_later(workspace) needs [];
}

async fn a_file_is_described_by_type_size_mode_and_time(sandbox: Sandbox) -> Check {
    sandbox.write("f", "12345").await?;
    let stat = sandbox.stat("f").await?;
    ensure!(stat.is_file && !stat.is_directory, "a file is {stat:?}");
    ensure!(stat.is_symbolic_link != Some(true), "a file is a link: {stat:?}");
    // A backend leaves out what it does not know; what it says is true.
    ensure!(stat.size.is_none_or(|size| size == 5), "five bytes are {stat:?}");
    ensure!(stat.mode.is_none_or(|mode| mode == 0o644), "the mode is wrong: {stat:?}");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let recent = |modified: i64| (now - modified).abs() < 120_000;
    ensure!(stat.modified_ms.is_none_or(recent), "written now, at {now} ms, is {stat:?}");
    Ok(())
}

async fn a_directory_is_described_as_one(sandbox: Sandbox) -> Check {
    sandbox.create_dir("d", CreateDirOptions::default()).await?;
    for path in ["d", "d/", ".", "/"] {
        let stat = sandbox.stat(path).await?;
        ensure!(stat.is_directory && !stat.is_file, "`{path}` is {stat:?}");
        ensure!(stat.is_symbolic_link != Some(true), "`{path}` is a link: {stat:?}");
    }
    Ok(())
}

async fn an_empty_file_is_a_file(sandbox: Sandbox) -> Check {
    sandbox.write("f", "").await?;
    let stat = sandbox.stat("f").await?;
    ensure!(stat.is_file && stat.size.is_none_or(|size| size == 0), "an empty file is {stat:?}");
    Ok(())
}

async fn a_link_is_described_by_its_target_and_as_a_link(sandbox: Sandbox) -> Check {
    output(&sandbox, "printf 12345 > f && chmod 640 f && mkdir d && ln -s f l && ln -s l ll && ln -s d ld")
        .await?;
    for link in ["l", "ll"] {
        let stat = sandbox.stat(link).await?;
        ensure!(
            stat.is_file && !stat.is_directory && stat.is_symbolic_link == Some(true),
            "a link is {stat:?}"
        );
        ensure!(stat.size.is_none_or(|size| size == 5), "the link's own size is told: {stat:?}");
        ensure!(stat.mode.is_none_or(|mode| mode == 0o640), "the link's own mode is told: {stat:?}");
        ensure_eq!(stat.modified_ms, sandbox.stat("f").await?.modified_ms);
    }
    let stat = sandbox.stat("ld").await?;
    ensure!(stat.is_directory && stat.is_symbolic_link == Some(true), "a link to a directory is {stat:?}");
    Ok(())
}

async fn a_dangling_link_is_not_found_and_does_not_exist(sandbox: Sandbox) -> Check {
    output(&sandbox, "ln -s nowhere dangling && ln -s /no/such/file far && ln -s dangling chain").await?;
    for link in ["dangling", "far", "chain"] {
        ensure_fails!(sandbox.stat(link).await, NotFound);
        ensure_fails!(sandbox.read(link).await, NotFound);
        ensure!(!sandbox.exists(link).await?, "`{link}` exists");
    }
    ensure_eq!(sandbox.list(".").await?.len(), 3);
    Ok(())
}

async fn a_loop_of_links_fails_promptly_and_does_not_exist(sandbox: Sandbox) -> Check {
    output(&sandbox, "ln -s loop loop && ln -s b a && ln -s a b").await?;
    for link in ["loop", "a", "a/below"] {
        ensure_fails!(promptly("a stat", sandbox.stat(link)).await?, Invalid | NotFound);
        ensure_fails!(promptly("a read", sandbox.read(link)).await?, Invalid | NotFound);
        ensure!(!promptly("a look", sandbox.exists(link)).await??, "`{link}` exists");
    }
    Ok(())
}

async fn what_is_missing_is_not_found_and_does_not_exist(sandbox: Sandbox) -> Check {
    for path in ["missing", "missing/below", "/no/such/file"] {
        ensure_fails!(sandbox.stat(path).await, NotFound);
        ensure!(!sandbox.exists(path).await?, "`{path}` exists");
    }
    Ok(())
}

async fn what_is_below_a_file_fails_and_does_not_exist(sandbox: Sandbox) -> Check {
    sandbox.write("f", "x").await?;
    for path in ["f/below", "f/far/below"] {
        ensure_fails!(sandbox.stat(path).await, NotDirectory | NotFound);
        ensure!(!sandbox.exists(path).await?, "`{path}` exists");
    }
    Ok(())
}

async fn what_is_there_exists(sandbox: Sandbox) -> Check {
    sandbox.write("d/f", "").await?;
    for path in ["d", "d/f", "d/", ".", "/", "d/../d/f"] {
        ensure!(sandbox.exists(path).await?, "`{path}` does not exist");
    }
    Ok(())
}

async fn a_later_write_is_described_later(sandbox: Sandbox) -> Check {
    sandbox.write("f", "first").await?;
    let before = sandbox.stat("f").await?;
    sandbox.write("f", "second!").await?;
    let after = sandbox.stat("f").await?;
    ensure!(after.modified_ms >= before.modified_ms, "{after:?} is before {before:?}");
    ensure!(after.size.is_none_or(|size| size == 7), "seven bytes are {after:?}");
    Ok(())
}
