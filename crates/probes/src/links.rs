//! F1: symbolic links that lead elsewhere, and that are swapped while a call is under way.

use std::sync::Arc;

use eyot::{
    CreateDirOptions, ErrorKind, GlobOptions, GrepOptions, ProcessId, RemoveOptions, StartOptions,
    TarInOptions,
};
use futures_util::StreamExt;

use crate::check::{Check, Failure, cases, ensure, ensure_eq, promptly, slow, until};
use crate::facts::note;
use crate::tar::TarBuilder;
use crate::world::{Stage, World};

cases! {
    f01_a_link_to_the_hosts_files_reads_the_sandboxs_own(stage);
    f01_links_through_proc_lead_to_the_sandbox_and_not_to_the_host(world);
    f01_a_link_that_is_swapped_during_calls_never_leads_out_of_the_workspace(stage);
    f01_a_folder_that_is_swapped_during_calls_never_leads_out_of_the_workspace(stage);
    f01_loops_and_chains_of_links_end(stage);
}

/// Swaps `target` between a file (or a folder) of its own and a link to the second argument, until
/// it is killed.
pub fn swap(arguments: &[String]) {
    let [target, elsewhere] = arguments else { return };
    let (good, bad) = (format!("{target}.good"), format!("{target}.bad"));
    let is_folder = std::path::Path::new(elsewhere).is_dir();
    let mut swaps = 0_u64;
    loop {
        let made = if is_folder {
            std::fs::create_dir(&good).and_then(|()| std::fs::write(format!("{good}/inner"), "inside"))
        } else {
            std::fs::write(&good, "inside")
        };
        // Any of these may meet a file that a call under test has just made or removed. The next
        // round cleans up.
        let linked = std::os::unix::fs::symlink(elsewhere, &bad);
        let into_place = std::fs::rename(&bad, target).or_else(|_| {
            std::fs::remove_dir_all(target).or_else(|_| std::fs::remove_file(target))?;
            std::fs::rename(&bad, target)
        });
        let back = std::fs::remove_file(target).and_then(|()| std::fs::rename(&good, target));
        if [made, linked, into_place, back].iter().all(Result::is_ok) {
            swaps += 1;
        }
        for left in [&good, &bad] {
            if std::fs::remove_dir_all(left).is_err() && std::fs::remove_file(left).is_err() {
                continue;
            }
        }
        if swaps == 20 {
            note("swapping", true);
            swaps += 1;
        }
    }
}

async fn f01_a_link_to_the_hosts_files_reads_the_sandboxs_own(stage: Stage) -> Check {
    stage.output("ln -s /etc/passwd passwd; ln -s ../../../../../../etc/passwd up; ln -s / root").await?;
    for path in ["passwd", "up", "root/etc/passwd", "root/proc/self/root/etc/passwd"] {
        let text = stage.sandbox.read_text(path).await?;
        ensure!(text.contains("user:x:1000:"), "{path} is not the sandbox's: {text}");
    }
    for path in ["passwd", "up", "root/etc/passwd"] {
        ensure_fails_outside(path, stage.sandbox.workspace().read_file(path).await)?;
        ensure_fails_outside(path, stage.sandbox.workspace().write_file(path, "x").await)?;
    }
    let after = stage.output("cat /etc/passwd").await?;
    ensure!(after.contains("root:"), "/etc/passwd was written: {after}");
    Ok(())
}

/// Beneath the workspace a link that leaves it is a refusal, however it is met.
fn ensure_fails_outside<T>(what: &str, result: eyot::Result<T>) -> Check {
    match result {
        Ok(_) => Err(Failure::Broken(format!("`{what}` left the workspace"))),
        Err(error) if [ErrorKind::Permission, ErrorKind::Invalid].contains(&error.kind()) => Ok(()),
        Err(error) => Err(Failure::Broken(format!("`{what}` failed with {}: {error}", error.kind()))),
    }
}

async fn f01_links_through_proc_lead_to_the_sandbox_and_not_to_the_host(world: Arc<World>) -> Check {
    let stage = world.stage().await?;
    let canary = tempfile::NamedTempFile::new()?;
    std::fs::write(canary.path(), "the host's")?;
    let path = canary.path().display();
    for link in
        [format!("/proc/1/root{path}"), format!("/proc/1/cwd{path}"), format!("/proc/self/root{path}")]
    {
        stage.output(&format!("rm -f link; ln -s {link} link")).await?;
        // The second time there is a file: what the write below left, in the sandbox.
        if let Ok(found) = stage.sandbox.read_text("link").await {
            ensure_eq!((&link, found), (&link, "an attack".to_owned()));
        }
        // A write must not arrive on the host, wherever it arrives.
        match stage.sandbox.write("link", "an attack").await {
            Ok(()) | Err(_) => {}
        }
    }
    ensure_eq!(std::fs::read_to_string(canary.path())?, "the host's");
    // The guest's own descriptors, which a path could name: its program, its socket.
    for path in [
        "/proc/1/exe",
        "/proc/1/fd/3",
        "/proc/self/exe",
        "/proc/self/mem",
        "/proc/self/environ",
        "/proc/self/fd/3",
    ] {
        match promptly(path, stage.sandbox.write(path, "an attack")).await? {
            // The text of the link was taken for a path, in a root folder that belongs to the user.
            Ok(()) => {
                let replaced = stage.output("cat '/memfd:eyot-guest (deleted)'").await?;
                ensure_eq!((path, replaced), (path, "an attack".to_owned()));
            }
            Err(error) => ensure!(error.kind() != ErrorKind::Internal, "{path}: {error}"),
        }
        stage.still_works().await?;
    }
    stage.still_works().await?;
    stage.end().await
}

/// Starts [`swap`] inside, and waits until it works.
pub(crate) async fn start_swapping(stage: &Stage, target: &str, elsewhere: &str) -> Check<ProcessId> {
    let line = format!("exec /attack/threats probe swap {target} {elsewhere} > /tmp/swapping");
    let process = stage.sandbox.start(line, StartOptions::default()).await?.id;
    let started = async || stage.sandbox.read_text("/tmp/swapping").await.unwrap_or_default();
    until("the swapping", || async { Ok(started().await.contains("swapping=true")) }).await?;
    Ok(process)
}

/// The rounds of a race. Each is a dozen calls, while a process inside swaps what they name.
fn rounds() -> usize {
    if slow() { 150 } else { 40 }
}

async fn f01_a_link_that_is_swapped_during_calls_never_leads_out_of_the_workspace(stage: Stage) -> Check {
    stage.output("mkdir /tmp/out; echo -n outside > /tmp/out/secret").await?;
    let swapping = start_swapping(&stage, "/workspace/file", "/tmp/out/secret").await?;
    let workspace = stage.sandbox.workspace();
    for round in 0..rounds() {
        if let Ok(text) = promptly("a read", workspace.read_file("file")).await? {
            ensure!(text != "outside", "round {round}: a read left the workspace");
        }
        match promptly("a write", workspace.write_file("file", "written")).await? {
            Ok(()) | Err(_) => {}
        }
        let outside = stage.sandbox.read_text("/tmp/out/secret").await?;
        ensure!(outside == "outside", "round {round}: a write left the workspace: {outside}");
    }
    stage.sandbox.kill(swapping, None).await?;
    Ok(())
}

async fn f01_a_folder_that_is_swapped_during_calls_never_leads_out_of_the_workspace(stage: Stage) -> Check {
    stage.output("mkdir -p /tmp/out; echo outside > /tmp/out/inner; echo outside > /tmp/out/secret").await?;
    let swapping = start_swapping(&stage, "/workspace/folder", "/tmp/out").await?;
    for round in 0..rounds() {
        one_round_in_a_swapped_folder(&stage, round).await?;
        let outside = stage.output("ls -A /tmp/out; cat /tmp/out/*").await?;
        ensure!(
            outside == "inner\nsecret\noutside\noutside",
            "round {round}: something was changed: {outside}"
        );
    }
    stage.sandbox.kill(swapping, None).await?;
    Ok(())
}

/// Every call that takes a path below the folder. What each comes to is chance; where it goes is
/// not.
async fn one_round_in_a_swapped_folder(stage: &Stage, round: usize) -> Check {
    let workspace = stage.sandbox.workspace();
    if let Ok(text) = promptly("a read", workspace.read_file("folder/inner")).await? {
        ensure!(text != "outside\n", "round {round}: a read left the workspace");
    }
    if let Ok(entries) = promptly("a list", workspace.list_files("folder")).await? {
        ensure!(
            entries.iter().all(|entry| entry.path != "folder/secret"),
            "round {round}: a list left the workspace"
        );
    }
    let written = promptly("a write", workspace.write_file("folder/new", "x")).await?;
    let made = promptly("a mkdir", workspace.create_dir("folder/made", CreateDirOptions { recursive: true }))
        .await?;
    let recursive = RemoveOptions { recursive: true, force: true };
    let removed = match round % 2 {
        0 => promptly("a remove", workspace.remove("folder/inner", recursive)).await?,
        _ => promptly("a remove", stage.sandbox.remove("/workspace/folder", recursive)).await?,
    };
    let root = eyot::WorkspacePath::parse_directory(".")?.place(stage.sandbox.cwd())?;
    let glob = GlobOptions { pattern: "**".to_owned(), root: root.clone(), hidden: true, max_results: 1_000 };
    if let Ok(found) = promptly("a glob", stage.sandbox.glob(&glob)).await? {
        ensure!(
            !found.paths.iter().any(|path| path.ends_with("/secret")),
            "round {round}: a glob left the workspace"
        );
    }
    let grep = GrepOptions {
        pattern: "outside".to_owned(),
        literal: true,
        ignore_case: false,
        root,
        include: None,
        max_matches: 10,
        max_line_bytes: 100,
    };
    if let Ok(found) = promptly("a grep", stage.sandbox.grep(&grep)).await? {
        ensure!(found.matches.is_empty(), "round {round}: a grep left the workspace: {:?}", found.matches);
    }
    // Not the folder itself: that is named by the caller, and followed.
    if let Ok(mut packed) = promptly("a pack", stage.sandbox.tar_out("/workspace")).await? {
        let mut bytes = Vec::new();
        while let Some(Ok(piece)) = promptly("a piece", packed.next()).await? {
            bytes.extend_from_slice(&piece);
        }
        ensure!(
            !bytes.windows(7).any(|window| window == b"outside"),
            "round {round}: a pack left the workspace"
        );
    }
    let tar = TarBuilder::default().file("folder/unpacked", b"x").finish();
    let unpacked =
        promptly("an unpack", stage.sandbox.tar_in("/workspace", tar, TarInOptions::default())).await?;
    for result in [written, made, removed, unpacked.map(drop)] {
        if let Err(error) = result {
            ensure!(error.kind() != ErrorKind::Internal, "round {round}: {error}");
        }
    }
    Ok(())
}

async fn f01_loops_and_chains_of_links_end(stage: Stage) -> Check {
    stage.output("ln -s loop loop; ln -s b a; ln -s a b; ln -s . here; echo x > l0").await?;
    stage.output("for i in $(seq 1 60); do ln -s l$((i-1)) l$i; done").await?;
    for path in ["loop", "a", "b", "l60"] {
        let result = promptly(path, stage.sandbox.read(path)).await?;
        ensure!(result.is_err(), "{path} could be read");
        let result = promptly(path, stage.sandbox.workspace().read_file(path)).await?;
        ensure!(result.is_err(), "{path} could be read beneath");
    }
    ensure_eq!(&stage.sandbox.read("l20").await?[..], b"x\n");
    let deep = format!("{}l0", "here/".repeat(30));
    ensure_eq!(&stage.sandbox.read(&deep).await?[..], b"x\n");
    Ok(())
}
