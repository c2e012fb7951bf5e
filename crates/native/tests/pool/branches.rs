//! Snapshots and forks of pools: their quota, and what is left of a fork that nobody waits for.

use std::pin::pin;

use eyot::{ErrorKind, SandboxName, SandboxProvider};
use eyot_engine::events::EventKind;
use eyot_engine::{ForkOptions, PoolOptions, PoolQuotas, SnapshotOptions};
use futures_util::future::join_all;
use futures_util::{FutureExt, StreamExt};
use libtest_mimic::{Failed, Trial};

use crate::engine::engine;
use crate::session::Session;
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_quota_of_snapshots_is_held_by_those_who_take_theirs_at_once_too", quota),
        trial("forks_that_nobody_waits_for_are_made_and_destroyed", given_up),
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
