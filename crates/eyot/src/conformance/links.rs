//! Symbolic and hard links where nothing confines: they are followed as a program inside would follow them.

use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, output, promptly};
use crate::files::{WriteMode, WriteOptions};
use crate::sandbox::Sandbox;

cases! {
    a_file_is_read_through_relative_absolute_and_chained_links(workspace) needs [Shell, Symlinks];
    a_write_through_a_link_replaces_the_target_and_leaves_the_link(workspace) needs [Shell, Symlinks];
    a_write_through_a_dangling_link_makes_its_target(workspace) needs [Shell, Symlinks];
    an_append_through_a_link_adds_to_the_target(workspace) needs [Shell, Symlinks, Append];
    create_new_does_not_write_through_a_link(workspace) needs [Shell, Symlinks];
    files_below_a_linked_directory_are_reached(workspace) needs [Shell, Symlinks];
    two_dots_after_a_link_are_taken_from_the_path_not_from_the_target(workspace) needs [Shell, Symlinks];
    a_chain_of_links_without_an_end_fails_promptly(workspace) needs [Shell, Symlinks];
    f2_a_file_with_a_second_name_is_read_and_replaced_by_name(workspace) needs [Shell];
}

async fn a_file_is_read_through_relative_absolute_and_chained_links(sandbox: Sandbox) -> Check {
    sandbox.write("d/f", "content").await?;
    output(&sandbox, "ln -s d/f rel && ln -s \"$PWD/d/f\" abs && ln -s rel chain && ln -s ../d/f d/up")
        .await?;
    for link in ["rel", "abs", "chain", "d/up"] {
        ensure_eq!(sandbox.read_text(link).await?, "content");
    }
    Ok(())
}

async fn a_write_through_a_link_replaces_the_target_and_leaves_the_link(sandbox: Sandbox) -> Check {
    sandbox.write("d/f", "old").await?;
    output(&sandbox, "chmod 640 d/f && ln -s d/f link && ln -s link chain").await?;
    sandbox.write("chain", "new").await?;
    ensure_eq!(sandbox.read_text("d/f").await?, "new");
    ensure_eq!(
        output(&sandbox, "readlink link && readlink chain && stat -c %a d/f").await?,
        "d/f\nlink\n640"
    );
    Ok(())
}

async fn a_write_through_a_dangling_link_makes_its_target(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir d && ln -s d/new link").await?;
    sandbox.write("link", "new").await?;
    ensure_eq!(sandbox.read_text("d/new").await?, "new");
    ensure_eq!(output(&sandbox, "readlink link").await?, "d/new");
    Ok(())
}

async fn an_append_through_a_link_adds_to_the_target(sandbox: Sandbox) -> Check {
    sandbox.write("log", "one").await?;
    output(&sandbox, "ln -s log link").await?;
    let append = WriteOptions { mode: WriteMode::Append, ..WriteOptions::default() };
    ensure_eq!(sandbox.write_with("link", "two", append).await?, 6);
    ensure_eq!(sandbox.read_text("log").await?, "onetwo");
    ensure_eq!(output(&sandbox, "readlink link").await?, "log");
    Ok(())
}

async fn create_new_does_not_write_through_a_link(sandbox: Sandbox) -> Check {
    sandbox.write("f", "kept").await?;
    output(&sandbox, "ln -s f link && ln -s nowhere dangling").await?;
    let create_new = WriteOptions { mode: WriteMode::CreateNew, ..WriteOptions::default() };
    for link in ["link", "dangling"] {
        ensure_fails!(sandbox.write_with(link, "new", create_new).await, AlreadyExists);
    }
    ensure_eq!(sandbox.read_text("f").await?, "kept");
    ensure!(!sandbox.exists("nowhere").await?, "the dangling link was written through");
    Ok(())
}

async fn files_below_a_linked_directory_are_reached(sandbox: Sandbox) -> Check {
    output(&sandbox, "mkdir real && ln -s real link").await?;
    sandbox.write("link/a/f", "x").await?;
    ensure_eq!(sandbox.read_text("real/a/f").await?, "x");
    sandbox.rename("link/a/f", "real/g").await?;
    sandbox.remove("link/g", Default::default()).await?;
    ensure!(!sandbox.exists("real/g").await?, "the file is still there");
    Ok(())
}

async fn two_dots_after_a_link_are_taken_from_the_path_not_from_the_target(sandbox: Sandbox) -> Check {
    sandbox.write("a/real/f", "inner").await?;
    sandbox.write("beside", "here").await?;
    sandbox.write("a/beside", "there").await?;
    output(&sandbox, "ln -s a/real link").await?;
    ensure_eq!(sandbox.read_text("link/../beside").await?, "here");
    Ok(())
}

async fn a_chain_of_links_without_an_end_fails_promptly(sandbox: Sandbox) -> Check {
    let chain = "i=0; while [ $i -lt 100 ]; do ln -s l$((i+1)) l$i; i=$((i+1)); done; echo end > l100";
    output(&sandbox, chain).await?;
    ensure_fails!(promptly("a read", sandbox.read("l0")).await?, Invalid);
    ensure_fails!(promptly("a write", sandbox.write("l0", "x")).await?, Invalid);
    ensure_eq!(sandbox.read_text("l80").await?, "end\n");
    Ok(())
}

async fn f2_a_file_with_a_second_name_is_read_and_replaced_by_name(sandbox: Sandbox) -> Check {
    sandbox.write("first", "old").await?;
    output(&sandbox, "ln first second").await?;
    ensure_eq!(sandbox.read_text("second").await?, "old");
    sandbox.write("second", "new").await?;
    ensure_eq!(sandbox.read_text("second").await?, "new");
    // A backend that replaces the name leaves the other one its file; one that replaces the content changes
    // both.
    let first = sandbox.read_text("first").await?;
    ensure!(["old", "new"].contains(&first.as_str()), "the first name has {first:?}");
    Ok(())
}
