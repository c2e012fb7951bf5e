//! Removing, with the semantics of Node's `fs.rm`, and moving, with those of rename(2).

use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, output};
use super::write::names;
use crate::files::{CreateDirOptions, RemoveOptions};
use crate::sandbox::Sandbox;

const PLAIN: RemoveOptions = RemoveOptions { recursive: false, force: false };
const FORCE: RemoveOptions = RemoveOptions { recursive: false, force: true };
const RECURSIVE: RemoveOptions = RemoveOptions { recursive: true, force: false };
const BOTH: RemoveOptions = RemoveOptions { recursive: true, force: true };

cases! {
    removing_what_is_missing_fails_unless_forced(workspace) needs [];
    force_forgives_nothing_but_what_is_missing(workspace) needs [];
    a_directory_is_removed_only_recursively_even_when_empty(workspace) needs [];
    a_file_is_removed_with_any_options(workspace) needs [];
    a_tree_is_removed_whole(workspace) needs [];
    the_root_is_not_removed(workspace) needs [];
    removing_a_link_leaves_its_target(workspace) needs [Shell, Symlinks];
    removing_a_tree_leaves_what_its_links_lead_to(workspace) needs [Shell, Symlinks];
    a_file_is_renamed_over_a_file(workspace) needs [];
    a_directory_is_renamed_with_everything_below_it(workspace) needs [];
    a_directory_is_renamed_over_an_empty_one_only(workspace) needs [];
    a_file_and_a_directory_do_not_replace_each_other(workspace) needs [];
    renaming_what_is_missing_or_into_a_missing_directory_is_not_found(workspace) needs [];
    a_directory_is_not_renamed_into_itself(workspace) needs [];
    renaming_something_to_its_own_name_changes_nothing(workspace) needs [];
    a_link_is_renamed_itself(workspace) needs [Shell, Symlinks];
}

async fn removing_what_is_missing_fails_unless_forced(sandbox: Sandbox) -> Check {
    for path in ["missing", "missing/below"] {
        ensure_fails!(sandbox.remove(path, PLAIN).await, NotFound);
        ensure_fails!(sandbox.remove(path, RECURSIVE).await, NotFound);
        sandbox.remove(path, FORCE).await?;
        sandbox.remove(path, BOTH).await?;
    }
    Ok(())
}

async fn force_forgives_nothing_but_what_is_missing(sandbox: Sandbox) -> Check {
    sandbox.write("d/f", "kept").await?;
    ensure_fails!(sandbox.remove("d", FORCE).await, IsDirectory);
    ensure_fails!(sandbox.remove("d/f/below", FORCE).await, NotDirectory);
    ensure_eq!(sandbox.read_text("d/f").await?, "kept");
    Ok(())
}

async fn a_directory_is_removed_only_recursively_even_when_empty(sandbox: Sandbox) -> Check {
    sandbox.create_dir("d", CreateDirOptions::default()).await?;
    ensure_fails!(sandbox.remove("d", PLAIN).await, IsDirectory);
    ensure!(sandbox.exists("d").await?, "the directory is gone");
    sandbox.remove("d", RECURSIVE).await?;
    ensure!(!sandbox.exists("d").await?, "the directory is still there");
    Ok(())
}

async fn a_file_is_removed_with_any_options(sandbox: Sandbox) -> Check {
    for options in [PLAIN, FORCE, RECURSIVE, BOTH] {
        sandbox.write("f", "x").await?;
        sandbox.remove("f", options).await?;
        ensure!(!sandbox.exists("f").await?, "the file is still there after {options:?}");
    }
    Ok(())
}

async fn a_tree_is_removed_whole(sandbox: Sandbox) -> Check {
    let deep = ["d"; 100].join("/");
    sandbox.write(&format!("t/{deep}/f"), "x").await?;
    for name in ["t/.hidden", "t/a\nb", "t/d/beside"] {
        sandbox.write(name, "x").await?;
    }
    sandbox.write("kept", "x").await?;
    sandbox.remove("t", RECURSIVE).await?;
    ensure_eq!(names(&sandbox).await?, ["kept"]);
    Ok(())
}

async fn the_root_is_not_removed(sandbox: Sandbox) -> Check {
    sandbox.write("f", "kept").await?;
    ensure_fails!(sandbox.remove("/", BOTH).await, Invalid);
    ensure_fails!(sandbox.remove("../../..", BOTH).await, Invalid);
    ensure_eq!(sandbox.read_text("f").await?, "kept");
    Ok(())
}

async fn removing_a_link_leaves_its_target(sandbox: Sandbox) -> Check {
    sandbox.write("d/f", "kept").await?;
    output(&sandbox, "ln -s d/f lf && ln -s d ld && ln -s nowhere dangling").await?;
    sandbox.remove("lf", PLAIN).await?;
    sandbox.remove("ld", PLAIN).await?;
    sandbox.remove("dangling", PLAIN).await?;
    ensure_eq!(names(&sandbox).await?, ["d"]);
    ensure_eq!(sandbox.read_text("d/f").await?, "kept");
    Ok(())
}

async fn removing_a_tree_leaves_what_its_links_lead_to(sandbox: Sandbox) -> Check {
    sandbox.write("outside/f", "kept").await?;
    output(&sandbox, "mkdir t && ln -s ../outside t/ld && ln -s ../outside/f t/lf && ln -s outside top")
        .await?;
    sandbox.remove("t", RECURSIVE).await?;
    sandbox.remove("top", RECURSIVE).await?;
    ensure_eq!(names(&sandbox).await?, ["outside"]);
    ensure_eq!(sandbox.read_text("outside/f").await?, "kept");
    Ok(())
}

async fn a_file_is_renamed_over_a_file(sandbox: Sandbox) -> Check {
    sandbox.write("a", "new").await?;
    sandbox.write("b", "old").await?;
    sandbox.rename("a", "b").await?;
    ensure_eq!(names(&sandbox).await?, ["b"]);
    ensure_eq!(sandbox.read_text("b").await?, "new");
    sandbox.create_dir("d", CreateDirOptions::default()).await?;
    sandbox.rename("b", "d/c").await?;
    ensure_eq!(sandbox.read_text("d/c").await?, "new");
    Ok(())
}

async fn a_directory_is_renamed_with_everything_below_it(sandbox: Sandbox) -> Check {
    sandbox.write("a/b/f", "x").await?;
    sandbox.rename("a", "moved").await?;
    ensure_eq!(sandbox.read_text("moved/b/f").await?, "x");
    ensure!(!sandbox.exists("a").await?, "the old name is still there");
    Ok(())
}

async fn a_directory_is_renamed_over_an_empty_one_only(sandbox: Sandbox) -> Check {
    sandbox.write("full/f", "kept").await?;
    sandbox.write("from/g", "x").await?;
    ensure_fails!(sandbox.rename("from", "full").await, AlreadyExists);
    ensure_eq!(sandbox.read_text("full/f").await?, "kept");
    sandbox.create_dir("empty", CreateDirOptions::default()).await?;
    sandbox.rename("from", "empty").await?;
    ensure_eq!(sandbox.read_text("empty/g").await?, "x");
    Ok(())
}

async fn a_file_and_a_directory_do_not_replace_each_other(sandbox: Sandbox) -> Check {
    sandbox.write("f", "kept").await?;
    sandbox.create_dir("d", CreateDirOptions::default()).await?;
    ensure_fails!(sandbox.rename("f", "d").await, IsDirectory);
    ensure_fails!(sandbox.rename("d", "f").await, NotDirectory);
    ensure_eq!(sandbox.read_text("f").await?, "kept");
    Ok(())
}

async fn renaming_what_is_missing_or_into_a_missing_directory_is_not_found(sandbox: Sandbox) -> Check {
    sandbox.write("f", "kept").await?;
    ensure_fails!(sandbox.rename("missing", "f").await, NotFound);
    ensure_fails!(sandbox.rename("f", "missing/f").await, NotFound);
    ensure_eq!(names(&sandbox).await?, ["f"]);
    ensure_eq!(sandbox.read_text("f").await?, "kept");
    Ok(())
}

async fn a_directory_is_not_renamed_into_itself(sandbox: Sandbox) -> Check {
    sandbox.write("d/e/f", "kept").await?;
    ensure_fails!(sandbox.rename("d", "d/e/d").await, Invalid);
    ensure_fails!(sandbox.rename("/", "x").await, Invalid);
    ensure_eq!(sandbox.read_text("d/e/f").await?, "kept");
    Ok(())
}

async fn renaming_something_to_its_own_name_changes_nothing(sandbox: Sandbox) -> Check {
    sandbox.write("d/f", "kept").await?;
    sandbox.rename("d/f", "./d//f").await?;
    sandbox.rename("d", "d").await?;
    ensure_eq!(sandbox.read_text("d/f").await?, "kept");
    Ok(())
}

async fn a_link_is_renamed_itself(sandbox: Sandbox) -> Check {
    sandbox.write("f", "kept").await?;
    output(&sandbox, "ln -s f l && ln -s nowhere dangling").await?;
    sandbox.rename("l", "moved").await?;
    sandbox.rename("dangling", "moved-too").await?;
    ensure_eq!(output(&sandbox, "readlink moved && readlink moved-too").await?, "f\nnowhere");
    ensure_eq!(sandbox.read_text("f").await?, "kept");
    Ok(())
}
