//! Snapshots and forks of pools: their quota, and what is left of a fork that nobody waits for.

use std::pin::pin;

use eyot::{
    CompareOptions, DiskEnforcement, ErrorKind, ExecOptions, Limits, ProcessStatus, Sandbox, SandboxName,
    SandboxPath, SandboxProvider, SandboxSpec, StartOptions,
};
use eyot_engine::events::EventKind;
use eyot_engine::{ComparedPoint, ForkOptions, PoolOptions, PoolQuotas, SnapshotOptions};
use futures_util::future::join_all;
use futures_util::{FutureExt, StreamExt};
use libtest_mimic::{Completion, Failed, Trial};

use crate::engine::engine;
use crate::session::Session;
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_quota_of_snapshots_is_held_by_those_who_take_theirs_at_once_too", quota),
        Trial::ignorable_test("what_snapshots_of_a_disk_take_counts_in_the_quota_of_the_disk", || {
            tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(quota_of_disk())
        }),
        trial("forks_that_nobody_waits_for_are_made_and_destroyed", given_up),
        trial("a_long_comparison_holds_up_no_snapshot", long_comparison),
        trial("a_fork_that_there_is_no_room_for_ends_nothing", refused_before),
        trial("forks_of_a_sandbox_that_has_changed_nothing_need_no_more_layers", unchanged),
    ]
}

async fn quota() -> Result<(), Failed> {
    let session = Session::new()?;
    let quotas = PoolQuotas { max_snapshots: Some(2), ..PoolQuotas::default() };
    let name = SandboxName::parse("p")?;
    let pool = engine(&session).await?.pool(PoolOptions { name, quotas, ..PoolOptions::default() })?;
    let names = ["a", "b", "c", "d"];
    for name in names {
        pool.get(name).await?;
    }
    let taken = join_all(names.map(|name| pool.snapshot(name, SnapshotOptions::default()))).await;
    let (taken, refused): (Vec<_>, Vec<_>) = taken.into_iter().partition(Result::is_ok);
    ensure(taken.len() == 2 && refused.len() == 2, format!("{taken:?} {refused:?}"))?;
    for error in refused.into_iter().filter_map(Result::err) {
        ensure(error.kind() == ErrorKind::Quota && error.to_string().contains('2'), format!("{error:?}"))?;
    }
    ensure(pool.snapshots().await?.len() == 2, "a refused one is listed")?;
    // A fork of a sandbox leaves none in the list, and counts as a sandbox.
    let options = ForkOptions { from: "a".to_owned(), count: 1, name: None, stop: false };
    pool.as_provider().fork(pool.fork_source("a").await?, options).await?;
    let first = taken.into_iter().flatten().next().ok_or("none was taken")?;
    pool.remove_snapshot(first.snapshot.id.as_str()).await?;
    pool.snapshot("d", SnapshotOptions::default()).await?;
    Ok(pool.close().await?)
}

async fn quota_of_disk() -> Result<Completion, Failed> {
    let session = Session::new()?;
    let quotas = PoolQuotas { disk_mib: Some(100), ..PoolQuotas::default() };
    let name = SandboxName::parse("p")?;
    let pool = engine(&session).await?.pool(PoolOptions { name, quotas, ..PoolOptions::default() })?;
    let provider = pool.as_provider();
    let spec = |name: &str, mib| -> Result<SandboxSpec, Failed> {
        let limits = Limits { disk_mib: Some(mib), ..Limits::default() };
        Ok(SandboxSpec { name: Some(SandboxName::parse(name)?), limits, ..SandboxSpec::default() })
    };
    let dev = Sandbox::create(&*provider, spec("dev", 64)?).await?;
    if dev.isolation().limits.disk != DiskEnforcement::Quota {
        pool.close().await?;
        return Ok(Completion::ignored_with("no disk quota here: no root, loop devices or mkfs.ext4"));
    }
    let write = async |mib: u64| {
        let line = format!("head -c {mib}M /dev/urandom > file");
        pool.get("dev").await?.exec(line.as_str(), ExecOptions::default()).await.map(drop)
    };
    write(40).await?;
    let error =
        pool.snapshot("dev", SnapshotOptions::default()).await.err().ok_or("40 MiB beside 64 of 100")?;
    ensure(error.kind() == ErrorKind::Quota && error.to_string().contains("36"), format!("{error:?}"))?;
    ensure(pool.get("dev").await?.read("file").await?.len() == 40 << 20, "the file is another one")?;
    write(20).await?;
    let options = ForkOptions { from: "dev".to_owned(), count: 1, name: None, stop: false };
    let error =
        provider.fork(pool.fork_source("dev").await?, options).await.err().ok_or("two of 64 in 100")?;
    ensure(error.kind() == ErrorKind::Quota, error.to_string())?;
    let left = std::fs::read_dir(session.state().join("snapshots")).map_or(0, Iterator::count);
    ensure(left == 0, format!("a refused fork left {left} snapshots"))?;
    let taken = pool.snapshot("dev", SnapshotOptions::default()).await?;
    let error = Sandbox::create(&*provider, spec("more", 20)?).await.err().ok_or("84 and 20 of 100")?;
    ensure(error.kind() == ErrorKind::Quota, error.to_string())?;
    // The sandbox that is there is used as before, and a list with sizes changes nothing.
    ensure(pool.get("dev").await?.id() == dev.id(), "it is another sandbox")?;
    pool.snapshots_with_sizes().await?;
    // Hidden ones count as well: the sandbox still lies above it.
    pool.remove_snapshot(taken.snapshot.id.as_str()).await?;
    let error = Sandbox::create(&*provider, spec("more", 20)?).await.err().ok_or("it still takes 20")?;
    ensure(error.kind() == ErrorKind::Quota, error.to_string())?;
    pool.remove("dev").await?;
    Sandbox::create(&*provider, spec("more", 20)?).await?;
    pool.close().await?;
    Ok(Completion::Completed)
}

async fn given_up() -> Result<(), Failed> {
    let session = Session::new()?;
    let engine = engine(&session).await?;
    let pool = engine.pool(PoolOptions { name: SandboxName::parse("p")?, ..PoolOptions::default() })?;
    pool.get("dev").await?;
    let provider = pool.as_provider();
    let source = pool.fork_source("dev").await?;
    {
        let options = ForkOptions { from: "dev".to_owned(), count: 2, name: None, stop: false };
        let mut fork = pin!(provider.fork(source, options));
        ensure(fork.as_mut().now_or_never().is_none(), "it was done at once")?;
    }
    let mut events = engine.events().ok_or("no events")?.follow(1).boxed();
    let mut destroyed = 0;
    while destroyed < 2 {
        let event = events.next().await.ok_or("the log ended")??;
        destroyed += usize::from(event.kind == EventKind::Destroyed);
    }
    let names: Vec<_> = provider.list().await?.into_iter().map(|info| info.name.to_string()).collect();
    ensure(names == ["dev"], format!("{names:?}"))?;
    Ok(pool.close().await?)
}

/// Files that were made anew are opened and read, though they have the same content.
async fn long_comparison() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = engine(&session)
        .await?
        .pool(PoolOptions { name: SandboxName::parse("p")?, ..PoolOptions::default() })?;
    pool.get("other").await?;
    let large = pool.get("large").await?;
    // The workspace of a pool is no part of a snapshot.
    let line = "cd && rm -rf many && mkdir many && cd many && seq 40000 | xargs touch";
    ensure(large.exec(line, ExecOptions::default()).await?.success(), "no files")?;
    let taken = pool.snapshot("large", SnapshotOptions::default()).await?;
    let large = pool.get("large").await?;
    ensure(large.exec(line, ExecOptions::default()).await?.success(), "no files")?;
    let points =
        [ComparedPoint::Named(taken.snapshot.id.to_string()), ComparedPoint::Sandbox("large".to_owned())];
    let options = CompareOptions::below(SandboxPath::parse("/home")?);
    let mut compared = pin!(pool.compare(&points[0], &points[1], &options));
    let mut snapshot = pin!(pool.snapshot("other", SnapshotOptions::default()));
    ensure(compared.as_mut().now_or_never().is_none(), "it was done at once")?;
    tokio::select! {
        biased;
        compared = &mut compared => {
            return Err(format!("the comparison was done first: {compared:?}").into());
        }
        taken = &mut snapshot => drop(taken?),
    }
    ensure(compared.await?.changes.is_empty(), "the same content is a difference")?;
    Ok(pool.close().await?)
}

async fn refused_before() -> Result<(), Failed> {
    let session = Session::new()?;
    let quotas = PoolQuotas { max_sandboxes: Some(3), ..PoolQuotas::default() };
    let name = SandboxName::parse("p")?;
    let pool = engine(&session).await?.pool(PoolOptions { name, quotas, ..PoolOptions::default() })?;
    pool.get("other").await?;
    let sandbox = pool.get("dev").await?;
    let process = sandbox.start("sleep 1000", StartOptions::default()).await?;
    for (name, count, kind) in [
        (Some("other"), 1, ErrorKind::AlreadyExists),
        (None, 2, ErrorKind::Quota),
        (Some("x"), 2, ErrorKind::Quota),
    ] {
        let name = name.map(SandboxName::parse).transpose()?;
        let options = ForkOptions { from: "dev".to_owned(), count, name, stop: true };
        let refused = pool.as_provider().fork(pool.fork_source("dev").await?, options).await;
        ensure(refused.as_ref().is_err_and(|error| error.kind() == kind), format!("{refused:?}"))?;
    }
    let there = sandbox.processes().await?;
    ensure(
        there.iter().any(|one| one.id == process.id && one.status == ProcessStatus::Running),
        format!("it was ended: {there:?}"),
    )?;
    Ok(pool.close().await?)
}

async fn unchanged() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = engine(&session)
        .await?
        .pool(PoolOptions { name: SandboxName::parse("p")?, ..PoolOptions::default() })?;
    pool.get("dev").await?.exec("echo one > ~/f", ExecOptions::default()).await?;
    let fork = async || -> Result<String, Failed> {
        let options = ForkOptions { from: "dev".to_owned(), count: 1, name: None, stop: false };
        let forks = pool.as_provider().fork(pool.fork_source("dev").await?, options).await?;
        let name = forks.names.first().ok_or("no fork")?.to_string();
        let seen = pool.get(&name).await?.exec("cat ~/f", ExecOptions::default()).await?.stdout_text();
        pool.remove(&name).await?;
        Ok(seen)
    };
    ensure(fork().await? == "one\n", "it has other files")?;
    let layers = || std::fs::read_dir(session.state().join("snapshots")).map(Iterator::count);
    let before = layers()?;
    for _ in 0..3 {
        ensure(fork().await? == "one\n", "it has other files")?;
    }
    ensure(layers()? == before, "each fork took a layer")?;
    // A change is in the next one.
    pool.get("dev").await?.exec("echo two > ~/f", ExecOptions::default()).await?;
    ensure(fork().await? == "two\n", "it has the files of before")?;
    Ok(pool.close().await?)
}
