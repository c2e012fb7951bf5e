//! Paths held beneath a directory: no link, chain of links or link that is swapped meanwhile leads a call out of
//! it.

use std::sync::Arc;

use super::Fixture;
use super::check::{
    Check, Disposable, cases, ensure, ensure_eq, ensure_fails, output, promptly, unique_name,
};
use super::read::collect;
use crate::driver::ByteStream;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Command, ExecOptions};
use crate::files::{CreateDirOptions, RemoveOptions, TarInOptions};
use crate::path::ConfinedPath;
use crate::sandbox::Sandbox;
use crate::search::{GlobOptions, GrepOptions};
use crate::spec::{SandboxSpec, WorkspaceSpec};
use crate::workspace::{PageOptions, Workspace, WorkspaceExec};

const CANARY: &str = "canary-9f2c";

cases! {
    f1_a_file_is_not_read_through_a_link_out_of_the_workspace(workspace) needs [Beneath, Shell, Symlinks];
    f1_a_file_is_not_written_through_a_link_out_of_the_workspace(workspace) needs [Beneath, Shell, Symlinks];
    f1_a_directory_is_not_listed_or_made_through_a_link_out_of_the_workspace(workspace)
        needs [Beneath, Shell, Symlinks];
    f1_nothing_is_removed_or_renamed_through_a_link_out_of_the_workspace(workspace)
        needs [Beneath, Shell, Symlinks];
    f1_nothing_is_described_through_a_link_out_of_the_workspace(workspace) needs [Beneath, Shell, Symlinks];
    f1_glob_and_grep_do_not_begin_behind_a_link_out_of_the_workspace(workspace)
        needs [Beneath, Shell, Symlinks, Glob, Grep];
    f1_glob_and_grep_follow_no_link_that_they_meet(workspace) needs [Beneath, Shell, Symlinks, Glob, Grep];
    f1_a_tree_is_not_packed_or_unpacked_behind_a_link_out_of_the_workspace(workspace)
        needs [Beneath, Shell, Symlinks, Tar];
    f1_a_command_does_not_start_behind_a_link_out_of_the_workspace(workspace)
        needs [Beneath, Shell, Symlinks, Argv];
    f1_a_manifest_does_not_write_through_a_link_out_of_the_workspace(fixture)
        needs [Beneath, Shell, Symlinks, PersistentWorkspace];
    f1_a_handle_that_is_held_beneath_a_directory_reaches_nothing_else(workspace)
        needs [Beneath, Shell, Symlinks, Argv];
    links_that_stay_in_the_workspace_work(workspace) needs [Beneath, Shell, Symlinks];
    a_link_out_of_the_workspace_can_itself_be_listed_renamed_and_removed(workspace)
        needs [Beneath, Shell, Symlinks];
    f1_a_link_that_is_swapped_in_meanwhile_leaks_nothing(workspace) needs [Beneath, Shell, Symlinks];
}

/// A directory outside with a file in it, and links to both from the workspace, by every way that leads out.
async fn with_links(sandbox: &Sandbox) -> Check<(Workspace, Vec<String>)> {
    let make = format!(
        "rm -rf /tmp/outside && mkdir /tmp/outside && printf {CANARY} > /tmp/outside/f && mkdir sub
        ln -s /tmp/outside abs && ln -s ../../../../../../../tmp/outside up && ln -s abs chain
        ln -s /proc/self/root/tmp/outside proc && ln -s \"$PWD/../tmp/outside\" mixed
        ln -s ../abs sub/deeper"
    );
    output(sandbox, &make).await?;
    let links = ["abs", "up", "chain", "proc", "mixed", "sub/deeper"];
    Ok((sandbox.workspace(), links.map(str::to_owned).to_vec()))
}

/// Checks that everything outside is as it was.
async fn outside_is_untouched(sandbox: &Sandbox) -> Check {
    ensure_eq!(output(sandbox, "ls -A /tmp/outside && cat /tmp/outside/f").await?, format!("f\n{CANARY}"));
    Ok(())
}

fn held(workspace: &Workspace, path: &str) -> Result<ConfinedPath> {
    let beneath = Some(workspace.workdir().clone());
    Ok(ConfinedPath { path: workspace.workdir().resolve(path)?, beneath })
}

pub(super) fn glob(root: ConfinedPath, pattern: &str) -> GlobOptions {
    GlobOptions { pattern: pattern.to_owned(), root, hidden: false, max_results: 1000 }
}

pub(super) fn grep(root: ConfinedPath, pattern: &str) -> GrepOptions {
    GrepOptions {
        pattern: pattern.to_owned(),
        literal: false,
        ignore_case: false,
        root,
        include: None,
        max_matches: 100,
        max_line_bytes: 500,
    }
}

async fn f1_a_file_is_not_read_through_a_link_out_of_the_workspace(sandbox: Sandbox) -> Check {
    let (workspace, links) = with_links(&sandbox).await?;
    output(&sandbox, "ln -s /tmp/outside/f file && ln -s /etc/passwd passwd").await?;
    for link in links {
        let file = format!("{link}/f");
        ensure_fails!(workspace.read_file(&file).await, Permission);
        ensure_fails!(workspace.read_text_file_page(&file, PageOptions::default()).await, Permission);
    }
    for link in ["file", "passwd"] {
        ensure_fails!(workspace.read_text_file(link).await, Permission);
    }
    // The same path without the confinement: it is the link that was refused.
    ensure_eq!(sandbox.read_text("file").await?, CANARY);
    Ok(())
}

async fn f1_a_handle_that_is_held_beneath_a_directory_reaches_nothing_else(sandbox: Sandbox) -> Check {
    let (_, links) = with_links(&sandbox).await?;
    output(
        &sandbox,
        "mkdir -p held && printf inner > held/f && ln -s /tmp/outside held/out && ln -s f held/in",
    )
    .await?;
    let held = sandbox.beneath("held")?;
    ensure_eq!(held.read_text("held/f").await?, "inner");
    ensure_eq!(held.read_text("held/in").await?, "inner");
    held.write("held/new/file", "x").await?;
    let outside = ["held/out/f", "held/../abs/f", "/tmp/outside/f", "/etc/passwd", "f", "held-too/f"];
    for path in
        outside.iter().map(|path| (*path).to_owned()).chain(links.iter().map(|link| format!("{link}/f")))
    {
        ensure_fails!(held.read(&path).await, Permission);
        ensure_fails!(held.write(&path, "x").await, Permission);
        ensure_fails!(held.stat(&path).await, Permission);
    }
    let there = |cwd: &str| ExecOptions { cwd: Some(cwd.to_owned()), ..ExecOptions::default() };
    let pwd = || Command::argv(["pwd"]);
    ensure!(
        held.exec(pwd(), there("held")).await?.stdout_text().trim_end().ends_with("/held"),
        "another place"
    );
    for cwd in ["held/out", "/tmp", "abs"] {
        ensure_fails!(held.exec(pwd(), there(cwd)).await, Permission);
    }
    ensure_fails!(held.exec(pwd(), ExecOptions::default()).await, Permission);
    outside_is_untouched(&sandbox).await
}

async fn f1_a_file_is_not_written_through_a_link_out_of_the_workspace(sandbox: Sandbox) -> Check {
    let (workspace, links) = with_links(&sandbox).await?;
    output(&sandbox, "ln -s /tmp/outside/f file && ln -s /tmp/outside/new dangling").await?;
    for link in links {
        for name in ["f", "new", "new/deeper"] {
            ensure_fails!(workspace.write_file(&format!("{link}/{name}"), "x").await, Permission);
        }
    }
    for link in ["file", "dangling"] {
        ensure_fails!(workspace.write_text_file(link, "x").await, Permission);
    }
    outside_is_untouched(&sandbox).await
}

async fn f1_a_directory_is_not_listed_or_made_through_a_link_out_of_the_workspace(sandbox: Sandbox) -> Check {
    let (workspace, links) = with_links(&sandbox).await?;
    for link in links {
        ensure_fails!(workspace.list_files(&link).await, Permission);
        for recursive in [false, true] {
            let made = workspace.create_dir(&format!("{link}/made"), CreateDirOptions { recursive }).await;
            ensure_fails!(made, Permission);
        }
    }
    outside_is_untouched(&sandbox).await
}

async fn f1_nothing_is_removed_or_renamed_through_a_link_out_of_the_workspace(sandbox: Sandbox) -> Check {
    let (workspace, links) = with_links(&sandbox).await?;
    workspace.write_file("mine", "x").await?;
    for link in links {
        let (file, new) = (format!("{link}/f"), format!("{link}/new"));
        ensure_fails!(
            workspace.remove(&file, RemoveOptions { recursive: true, force: true }).await,
            Permission
        );
        ensure_fails!(workspace.rename(&file, "stolen").await, Permission);
        ensure_fails!(workspace.rename("mine", &new).await, Permission);
    }
    ensure!(!workspace.exists("stolen").await?, "a file of the outside is inside");
    outside_is_untouched(&sandbox).await
}

async fn f1_nothing_is_described_through_a_link_out_of_the_workspace(sandbox: Sandbox) -> Check {
    let (workspace, links) = with_links(&sandbox).await?;
    for link in links {
        for path in [link.clone(), format!("{link}/f")] {
            ensure_fails!(workspace.stat(&path).await, Permission);
            ensure_fails!(workspace.exists(&path).await, Permission);
        }
    }
    Ok(())
}

async fn f1_glob_and_grep_do_not_begin_behind_a_link_out_of_the_workspace(sandbox: Sandbox) -> Check {
    let (workspace, links) = with_links(&sandbox).await?;
    for link in links {
        let root = || held(&workspace, &link);
        ensure_fails!(sandbox.glob(&glob(root()?, "**")).await, Permission);
        ensure_fails!(sandbox.grep(&grep(root()?, "canary")).await, Permission);
        ensure_fails!(
            sandbox.grep(&grep(held(&workspace, &format!("{link}/f"))?, "canary")).await,
            Permission
        );
    }
    Ok(())
}

async fn f1_glob_and_grep_follow_no_link_that_they_meet(sandbox: Sandbox) -> Check {
    let (workspace, links) = with_links(&sandbox).await?;
    workspace.write_file("sub/mine", CANARY).await?;
    let mine = format!("{}/sub/mine", workspace.workdir());
    let found = promptly("a grep", sandbox.grep(&grep(held(&workspace, ".")?, CANARY))).await??;
    let paths: Vec<&str> = found.matches.iter().map(|found| found.path.as_str()).collect();
    ensure_eq!(paths, [mine.as_str()]);
    let found = promptly("a glob", sandbox.glob(&glob(held(&workspace, ".")?, "**"))).await??;
    ensure_eq!(found.paths.len(), links.len() + 1);
    ensure!(
        !found.paths.iter().any(|path| path.ends_with("/f")),
        "{:?} has a file of the outside",
        found.paths
    );
    Ok(())
}

async fn f1_a_tree_is_not_packed_or_unpacked_behind_a_link_out_of_the_workspace(sandbox: Sandbox) -> Check {
    let (workspace, links) = with_links(&sandbox).await?;
    let archive = collect(sandbox.tar_out("sub").await?).await?;
    for link in links {
        let place = held(&workspace, &link)?;
        ensure_fails!(packed(&sandbox, &place).await, Permission);
        let tar: ByteStream = Box::pin(futures_util::stream::iter([Ok(archive.clone().into())]));
        let unpacked = sandbox.tar_in_at(&place, &link, tar, TarInOptions::default()).await;
        ensure_fails!(unpacked, Permission);
    }
    let whole = packed(&sandbox, &held(&workspace, ".")?).await?;
    let leaks = whole.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
    ensure!(!leaks, "packing the workspace packed what is outside of it");
    outside_is_untouched(&sandbox).await
}

async fn packed(sandbox: &Sandbox, place: &ConfinedPath) -> Result<Vec<u8>> {
    collect(sandbox.tar_out_at(place, "it").await?).await
}

async fn f1_a_command_does_not_start_behind_a_link_out_of_the_workspace(sandbox: Sandbox) -> Check {
    let (workspace, links) = with_links(&sandbox).await?;
    for link in links {
        let exec = WorkspaceExec { command: "pwd".to_owned(), cwd: Some(link), ..WorkspaceExec::default() };
        ensure_fails!(workspace.exec(exec).await, Permission);
    }
    Ok(())
}

async fn f1_a_manifest_does_not_write_through_a_link_out_of_the_workspace(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let id = unique_name().to_string();
    let sharing = |destroy_on_session_destroy| {
        let workspace = WorkspaceSpec::Persistent { id: id.clone(), destroy_on_session_destroy };
        SandboxSpec { workspace, ..fixture.spec() }
    };
    let owner = Disposable(Sandbox::create(&*fixture.provider(), sharing(true)).await?);
    output(&owner.0, "ln -s /tmp out").await?;
    let mut spec = sharing(false);
    spec.manifest.files.insert("out/evil".to_owned(), "x".into());
    ensure_fails!(Sandbox::create(&*fixture.provider(), spec).await, Permission);
    let mut spec = sharing(false);
    spec.manifest.directories.push("out/evil".to_owned());
    ensure_fails!(Sandbox::create(&*fixture.provider(), spec).await, Permission);
    Ok(owner.0.destroy().await?)
}

async fn links_that_stay_in_the_workspace_work(sandbox: Sandbox) -> Check {
    let workspace = sandbox.workspace();
    output(
        &sandbox,
        "mkdir -p a/b && echo x > a/f && ln -s ../f a/b/up && ln -s a/b dir && ln -s dir/up chain",
    )
    .await?;
    for link in ["a/b/up", "dir/up", "chain"] {
        ensure_eq!(workspace.read_text_file(link).await?, "x\n");
    }
    workspace.write_file("dir/new", "y").await?;
    ensure_eq!(workspace.read_text_file("a/b/new").await?, "y");
    ensure_eq!(workspace.list_files("dir").await?.len(), 2);
    workspace.write_file("chain", "z").await?;
    ensure_eq!(workspace.read_text_file("a/f").await?, "z");
    Ok(())
}

async fn a_link_out_of_the_workspace_can_itself_be_listed_renamed_and_removed(sandbox: Sandbox) -> Check {
    let (workspace, _links) = with_links(&sandbox).await?;
    let listed = workspace.list_files(".").await?;
    ensure!(listed.iter().any(|entry| entry.path == "abs"), "the link is not among {listed:?}");
    workspace.rename("abs", "moved").await?;
    workspace.remove("moved", RemoveOptions { recursive: true, force: false }).await?;
    ensure!(sandbox.list(".").await?.iter().all(|entry| entry.name != "moved"), "the link is still there");
    outside_is_untouched(&sandbox).await
}

async fn f1_a_link_that_is_swapped_in_meanwhile_leaks_nothing(sandbox: Sandbox) -> Check {
    output(&sandbox, &format!("mkdir /tmp/outside && printf {CANARY} > /tmp/outside/f")).await?;
    let swap = "until [ -e /tmp/stop ]; do
        rm -rf d; ln -s /tmp/outside d; rm d; mkdir d; printf mine > d/f
        mv d real; ln -s /tmp/outside d; rm d; mv real d
    done; true";
    let attacking = async {
        let attempted = attack(&sandbox.workspace()).await;
        sandbox.write("/tmp/stop", "").await?;
        attempted
    };
    let (swapped, attacked) = tokio::join!(output(&sandbox, swap), attacking);
    swapped?;
    let reached = attacked?;
    ensure!(reached > 10, "only {reached} calls met the directory; nothing was tried");
    outside_is_untouched(&sandbox).await
}

/// Calls everything again and again, until enough calls met the directory, and says how many did.
async fn attack(workspace: &Workspace) -> Check<usize> {
    let (mut reached, mut rounds) = (0, 0);
    while rounds < 60 || (reached <= 10 && rounds < 6_000) {
        rounds += 1;
        if let Some(text) = unless_refused(workspace.read_text_file("d/f").await)? {
            ensure!(text == "mine" || text == "written" || text.is_empty(), "a read found {text:?}");
            reached += 1;
        }
        if let Some(entries) = unless_refused(workspace.list_files("d").await)? {
            reached += entries.len();
        }
        let options = CreateDirOptions { recursive: true };
        reached += usize::from(unless_refused(workspace.create_dir("d/made", options).await)?.is_some());
        reached += usize::from(unless_refused(workspace.write_file("d/f", "written").await)?.is_some());
        let options = RemoveOptions { recursive: true, force: false };
        reached += usize::from(unless_refused(workspace.remove("d/f", options).await)?.is_some());
        if unless_refused(workspace.rename("d/f", "taken").await)?.is_some() {
            let taken = workspace.read_text_file("taken").await?;
            ensure!(taken != CANARY, "a rename took a file of the outside");
        }
    }
    Ok(reached)
}

/// `None` where the call was refused, or met nothing, for a reason that a swap explains.
fn unless_refused<T>(result: Result<T>) -> Check<Option<T>> {
    let explained = |error: &Error| {
        matches!(
            error.kind(),
            ErrorKind::Permission
                | ErrorKind::NotFound
                | ErrorKind::NotDirectory
                | ErrorKind::AlreadyExists
                | ErrorKind::IsDirectory
                | ErrorKind::Conflict
        )
    };
    match result {
        Err(error) if explained(&error) => Ok(None),
        result => Ok(Some(result?)),
    }
}
