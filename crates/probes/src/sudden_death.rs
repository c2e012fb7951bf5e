//! E5: the sandbox dies in the middle of every call.

use std::sync::Arc;
use std::time::Duration;

use eyot::{
    Bytes, ConfinedPath, CreateDirOptions, Error, ErrorKind, ExecOptions, GlobOptions, GrepOptions, LogQuery,
    ProcessId, RemoveOptions, Sandbox, SandboxPath, StartOptions, TarInOptions, WriteOptions,
};
use futures_util::{StreamExt, stream};
use tokio::task::JoinHandle;

use crate::check::{Check, cases, ensure, promptly};
use crate::world::{Stage, World};

cases! {
    e05_every_pending_call_settles_when_the_sandbox_is_destroyed(world);
    e05_every_pending_call_settles_when_somebody_else_removes_the_sandbox(world);
    e05_every_pending_call_settles_when_the_guest_is_killed(world);
    e05_every_call_after_the_end_is_refused_as_destroyed(world);
    e05_destroys_at_once_all_succeed(world);
}

fn place() -> ConfinedPath {
    SandboxPath::root().into()
}

fn endless() -> eyot::ByteStream {
    stream::repeat_with(|| Ok(Bytes::from_static(&[b'x'; 16 << 10])))
        .then(|piece| async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            piece
        })
        .boxed()
}

/// Calls that would go on for ever.
const CALLS: [&str; 15] = [
    "exec",
    "a flood",
    "exec with a deadline",
    "exec_stream",
    "write_stream",
    "tar_in",
    "tar_out",
    "read",
    "list",
    "write",
    "exec again and again",
    "grep",
    "glob",
    "wait",
    "logs",
];

async fn endless_call(sandbox: Sandbox, process: ProcessId, name: &str) -> eyot::Result<()> {
    let plain = ExecOptions::default;
    match name {
        "exec" => sandbox.exec("exec sleep 6000", plain()).await.map(drop),
        "a flood" => sandbox.exec("exec yes", plain()).await.map(drop),
        "exec with a deadline" => {
            let options = ExecOptions { timeout_ms: Some(6_000_000), ..plain() };
            sandbox.exec("exec sleep 6000", options).await.map(drop)
        }
        "exec_stream" => drain(&sandbox).await,
        "write_stream" => sandbox.write_stream("endless", endless(), WriteOptions::default()).await.map(drop),
        "tar_in" => sandbox.tar_in("/workspace", endless_tar(), TarInOptions::default()).await.map(drop),
        "wait" => sandbox.wait(process).await.map(drop),
        "logs" => follow(&sandbox, process).await,
        _ => loop {
            short_call(&sandbox, name).await?;
        },
    }
}

/// One of the calls that are made again and again.
async fn short_call(sandbox: &Sandbox, name: &str) -> eyot::Result<()> {
    match name {
        "read" => sandbox.read("/etc/passwd").await.map(drop),
        "list" => sandbox.list("/usr/bin").await.map(drop),
        "write" => sandbox.write("again/and/again", "x").await,
        "tar_out" => pack(sandbox).await,
        "grep" => sandbox.grep(&grep_options()).await.map(drop),
        "glob" => sandbox.glob(&glob_options()).await.map(drop),
        _ => sandbox.exec("true", ExecOptions::default()).await.map(drop),
    }
}

async fn pack(sandbox: &Sandbox) -> eyot::Result<()> {
    let mut packed = sandbox.tar_out("/usr/bin").await?;
    while let Some(piece) = packed.next().await {
        piece?;
    }
    Ok(())
}

fn glob_options() -> GlobOptions {
    let root = SandboxPath::parse("/usr/share").map_or_else(|_| place(), ConfinedPath::from);
    GlobOptions { pattern: "**/*.txt".to_owned(), root, hidden: true, max_results: 1_000_000 }
}

fn grep_options() -> GrepOptions {
    GrepOptions {
        pattern: "needle".to_owned(),
        literal: true,
        ignore_case: true,
        root: SandboxPath::parse("/usr/share").map_or_else(|_| place(), ConfinedPath::from),
        include: None,
        max_matches: 1_000_000,
        max_line_bytes: 500,
    }
}

async fn drain(sandbox: &Sandbox) -> eyot::Result<()> {
    let mut events = sandbox.exec_stream("exec yes", ExecOptions::default()).await?;
    while let Some(event) = events.next().await {
        event?;
    }
    Ok(())
}

async fn follow(sandbox: &Sandbox, process: ProcessId) -> eyot::Result<()> {
    let query = LogQuery { follow: true, ..LogQuery::default() };
    let mut log = sandbox.logs(process, query).await?;
    while let Some(chunk) = log.next().await {
        chunk?;
    }
    Ok(())
}

/// The beginning of a file of 8 GiB, and then its content for ever.
fn endless_tar() -> eyot::ByteStream {
    let mut header = [0_u8; 512];
    header[..4].copy_from_slice(b"file");
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(b"00777777777\0");
    header[148..156].copy_from_slice(b"        ");
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    stream::once(async move { Ok(Bytes::copy_from_slice(&header)) }).chain(endless()).boxed()
}

async fn all_under_way(stage: &Stage) -> Check<Vec<(&'static str, JoinHandle<eyot::Result<()>>)>> {
    let process = stage.sandbox.start("exec sleep 6000", StartOptions::default()).await?.id;
    let begin = |name| (name, tokio::spawn(endless_call(stage.sandbox.clone(), process, name)));
    let running: Vec<_> = CALLS.into_iter().map(begin).collect();
    // A busy sandbox answers in between, so the calls have begun. Each of them would run on for
    // ever.
    for _ in 0..10 {
        stage.still_works().await?;
    }
    for (name, call) in &running {
        ensure!(!call.is_finished(), "`{name}` ended by itself");
    }
    Ok(running)
}

async fn all_settle(running: Vec<(&'static str, JoinHandle<eyot::Result<()>>)>) -> Check {
    let mut wrong = Vec::new();
    for (name, call) in running {
        let settled = promptly(name, call).await?.map_err(std::io::Error::other)?;
        match settled {
            Err(error) if [ErrorKind::Destroyed, ErrorKind::Unavailable].contains(&error.kind()) => {}
            Err(error) => wrong.push(format!("{name}: {} {error}", error.kind())),
            Ok(()) => wrong.push(format!("{name}: a result")),
        }
    }
    ensure!(wrong.is_empty(), "neither destroyed nor unavailable: {wrong:#?}");
    Ok(())
}

async fn e05_every_pending_call_settles_when_the_sandbox_is_destroyed(world: Arc<World>) -> Check {
    let stage = world.stage().await?;
    let running = all_under_way(&stage).await?;
    stage.end().await?;
    all_settle(running).await
}

async fn e05_every_pending_call_settles_when_somebody_else_removes_the_sandbox(world: Arc<World>) -> Check {
    let stage = world.stage().await?;
    let running = all_under_way(&stage).await?;
    promptly("the remove", world.provider().remove(stage.sandbox.id().as_str())).await??;
    all_settle(running).await?;
    stage.end().await
}

async fn e05_every_pending_call_settles_when_the_guest_is_killed(world: Arc<World>) -> Check {
    let stage = world.stage().await?;
    let running = all_under_way(&stage).await?;
    stage.kill_guest()?;
    // The files are kept, because the sandbox was not destroyed.
    for (name, call) in running {
        let settled = promptly(name, call).await?.map_err(std::io::Error::other)?;
        ensure!(settled.as_ref().is_err_and(Error::is_dead), "`{name}` ended with {settled:?}");
    }
    let listed = promptly("a call", stage.sandbox.list("/")).await?;
    ensure!(listed.as_ref().is_err_and(Error::is_dead), "a call afterwards: {listed:?}");
    stage.end().await
}

fn refused<T>(what: &str, result: eyot::Result<T>, wrong: &mut Vec<String>) {
    match result.map_err(|error: Error| error.kind()) {
        Err(ErrorKind::Destroyed) => {}
        Err(kind) => wrong.push(format!("{what}: {kind}")),
        Ok(_) => wrong.push(format!("{what}: a result")),
    }
}

async fn e05_every_call_after_the_end_is_refused_as_destroyed(world: Arc<World>) -> Check {
    let stage = world.stage().await?;
    let (sandbox, mut wrong) = (stage.sandbox.clone(), Vec::new());
    stage.end().await?;
    refused("exec", sandbox.exec("true", ExecOptions::default()).await, &mut wrong);
    refused("exec_stream", sandbox.exec_stream("true", ExecOptions::default()).await, &mut wrong);
    refused("read", sandbox.read("f").await, &mut wrong);
    refused("write", sandbox.write("f", "x").await, &mut wrong);
    refused("stat", sandbox.stat("f").await, &mut wrong);
    refused("list", sandbox.list(".").await, &mut wrong);
    refused("exists", sandbox.exists("f").await, &mut wrong);
    refused("create_dir", sandbox.create_dir("d", CreateDirOptions::default()).await, &mut wrong);
    refused("remove", sandbox.remove("f", RemoveOptions::default()).await, &mut wrong);
    refused("rename", sandbox.rename("a", "b").await, &mut wrong);
    refused("glob", sandbox.glob(&glob_options()).await, &mut wrong);
    refused("grep", sandbox.grep(&grep_options()).await, &mut wrong);
    refused("tar_out", sandbox.tar_out(".").await, &mut wrong);
    refused("dial", sandbox.dial(80).await, &mut wrong);
    refused("usage", sandbox.usage().await, &mut wrong);
    refused("start", sandbox.start("true", StartOptions::default()).await, &mut wrong);
    refused("processes", sandbox.processes().await, &mut wrong);
    ensure!(wrong.is_empty(), "not destroyed: {wrong:?}");
    Ok(())
}

async fn e05_destroys_at_once_all_succeed(world: Arc<World>) -> Check {
    let stage = world.stage().await?;
    let destroys = (0..10).map(|_| stage.sandbox.destroy());
    for result in promptly("the destroys", futures_util::future::join_all(destroys)).await? {
        result?;
    }
    stage.end().await
}
