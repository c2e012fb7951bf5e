//! Names and the sandboxes behind them.

use std::sync::Arc;

use eyot::{ErrorKind, PoolStatus, SandboxId, SandboxProvider, SandboxSpec, Service};
use eyot_engine::PoolCreate;
use futures_util::future::join_all;
use libtest_mimic::{Failed, Trial};

use crate::session::{Session, output};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_hundred_who_ask_at_once_for_a_new_name_get_one_sandbox", a_hundred),
        trial("a_sandbox_of_a_pool_starts_in_a_writable_home", home),
        trial("a_create_of_what_is_there_changes_nothing_and_says_in_what_it_differs", create_twice),
        trial("pools_share_nothing", two_pools),
        trial("a_pool_as_a_provider_tells_the_use_of_its_sandboxes_by_their_names_in_it", usage),
        trial("the_images_are_the_owners_and_no_tenants", images),
        trial("a_sandbox_that_was_removed_is_made_anew_and_old_handles_say_so", removed),
        trial("a_sandbox_that_was_destroyed_behind_the_pools_back_is_made_anew", behind_its_back),
        trial("a_name_that_is_none_is_refused_before_anything_is_made", bad_names),
        trial("a_removal_of_what_is_not_there_says_what_there_is", not_there),
        trial("a_create_that_fails_leaves_the_name_free", failed_create),
        trial("of_many_whose_creates_of_one_name_fail_each_is_told_why", many_failed_creates),
        trial("a_service_runs_as_soon_as_its_sandbox_is_there", services),
        trial("closing_a_pool_destroys_its_sandboxes_and_no_others", close),
    ]
}

async fn usage() -> Result<(), Failed> {
    let session = Session::new()?;
    let (pool, other) = (session.pool("p")?, session.pool("q")?);
    let mine = pool.get("mine").await?;
    other.get("foreign").await?;
    // Without control groups nothing is known.
    let below = session.provider()?.list_with_usage().await?;
    let known = below.iter().find(|(info, _)| info.id == *mine.id()).ok_or("it is not listed")?.1;
    for provider in [pool.as_provider(), pool.as_host_provider()] {
        let listed = provider.list_with_usage().await?;
        let [(info, usage)] = listed.as_slice() else { return Err(format!("{listed:?}").into()) };
        let is_told = usage.is_some() == known.is_some();
        ensure(info.name.as_str() == "mine" && is_told, format!("{usage:?} of {info:?}"))?;
    }
    pool.close().await?;
    Ok(other.close().await?)
}

async fn images() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let nobody = || Arc::new(|_: &SandboxId| None);
    let listed = pool.as_host_provider().images(nobody())?.list().await?;
    ensure(listed.is_empty(), format!("{listed:?}"))?;
    let refused = pool.as_provider().images(nobody()).err().map(|error| error.kind());
    ensure(refused == Some(ErrorKind::Unsupported), format!("{refused:?}"))?;
    Ok(pool.close().await?)
}

async fn a_hundred() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let asked = (0..100).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move { pool.get("builder").await.map(|sandbox| sandbox.id().clone()) })
    });
    let mut ids = Vec::new();
    for asked in asked.collect::<Vec<_>>() {
        ids.push(asked.await??);
    }
    ids.dedup();
    ensure(ids.len() == 1, format!("{} sandboxes", ids.len()))?;
    ensure(session.count()? == 1, "more than one was made")?;
    Ok(pool.close().await?)
}

async fn home() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let sandbox = pool.get("default").await?;
    ensure(output(&sandbox, "pwd; touch made; ls").await? == "/home/user\nmade", "not the home")?;
    Ok(pool.close().await?)
}

async fn create_twice() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let first = pool.create("a", PoolCreate::default()).await?;
    ensure(first.created && first.image == "host" && first.differs.is_empty(), format!("{first:?}"))?;
    pool.get("a").await?.write("kept", "x").await?;
    let again = pool.create("a", PoolCreate::default()).await?;
    ensure(!again.created && again.differs.is_empty(), format!("{again:?}"))?;
    let other = PoolCreate {
        image: Some("node:22".into()),
        spec: Some(SandboxSpec { env: [("A".into(), "b".into())].into(), ..SandboxSpec::default() }),
        ..PoolCreate::default()
    };
    let other = pool.create("a", other).await?;
    ensure(
        !other.created && other.image == "host" && other.differs == ["image", "spec"],
        format!("{other:?}"),
    )?;
    ensure(pool.get("a").await?.read_text("kept").await? == "x", "it was made anew")?;
    let listed = pool.list().await?;
    ensure(listed.len() == 1 && listed[0].status == PoolStatus::Running, format!("{listed:?}"))?;
    Ok(pool.close().await?)
}

async fn two_pools() -> Result<(), Failed> {
    let session = Session::new()?;
    let (one, two) = (session.pool("one")?, session.pool("two")?);
    one.get("a").await?.write("file", "one's").await?;
    ensure(!two.get("a").await?.exists("file").await?, "the other pool's file is there")?;
    ensure(one.get("a").await?.id() != two.get("a").await?.id(), "one sandbox in two pools")?;
    two.get("b").await?;
    ensure(one.list().await?.len() == 1 && two.list().await?.len() == 2, "a pool lists another's")?;
    one.close().await?;
    ensure(two.get("a").await?.exists("/").await?, "closing a pool took another's sandbox")?;
    Ok(two.close().await?)
}

async fn removed() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let old = pool.get("a").await?;
    old.write("file", "x").await?;
    pool.remove("a").await?;
    let new = pool.get("a").await?;
    ensure(new.id() != old.id() && !new.exists("file").await?, "the old one is back")?;
    let error = old.read("file").await.err().map(|error| error.kind());
    ensure(error == Some(ErrorKind::Destroyed), format!("{error:?}"))?;
    Ok(pool.close().await?)
}

async fn behind_its_back() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let old = pool.get("a").await?;
    old.destroy().await?;
    ensure(pool.list().await?.is_empty(), "a destroyed one is listed")?;
    ensure(pool.get("a").await?.id() != old.id(), "the destroyed one came back")?;
    Ok(pool.close().await?)
}

async fn bad_names() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    for name in ["", "A", "-a", "p/A", "a/b/c", "a b", &"a".repeat(42)] {
        let error = pool.get(name).await.err().map(|error| error.kind());
        ensure(error == Some(ErrorKind::Invalid), format!("{name:?}: {error:?}"))?;
    }
    for of_another in ["a/b", SandboxId::generate().as_str()] {
        let error = pool.get(of_another).await.err().map(|error| error.kind());
        ensure(error == Some(ErrorKind::NotFound), format!("{of_another:?}: {error:?}"))?;
    }
    ensure(session.count()? == 0, "something was made")
}

async fn not_there() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    pool.get("front").await?;
    let error = pool.remove("back").await.err().ok_or("it was removed")?;
    ensure(error.kind() == ErrorKind::NotFound, format!("{error:?}"))?;
    ensure(format!("{error:?}").contains("`front`"), format!("{error:?}"))?;
    Ok(pool.close().await?)
}

async fn many_failed_creates() -> Result<(), Failed> {
    let session = Session::new()?;
    let wrong = PoolCreate { image: Some("/nowhere/at/all".into()), ..PoolCreate::default() };
    // One pool each: what shares a pool asks for a name once.
    let pools = (0..32).map(|_| session.pool("p")).collect::<Result<Vec<_>, _>>()?;
    let creates = pools.iter().map(|pool| pool.create("a", wrong.clone()));
    for created in join_all(creates).await {
        let kind = created.err().map(|error| error.kind());
        ensure(kind == Some(ErrorKind::NotFound), format!("{kind:?}"))?;
    }
    Ok(pools[0].close().await?)
}

async fn failed_create() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let wrong = PoolCreate { image: Some("/nowhere/at/all".into()), ..PoolCreate::default() };
    ensure(pool.create("a", wrong).await.is_err(), "an image that is not there was found")?;
    ensure(pool.list().await?.is_empty() && session.count()? == 0, "something is left")?;
    ensure(pool.create("a", PoolCreate::default()).await?.created, "the name is taken")?;
    Ok(pool.close().await?)
}

async fn services() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let service = Service {
        command: "echo $WHO > who; exec sleep 1000".into(),
        cwd: None,
        env: [("WHO".into(), "service".into())].into(),
    };
    let create = PoolCreate { services: vec![service], ..PoolCreate::default() };
    pool.create("a", create).await?;
    let sandbox = pool.get("a").await?;
    output(&sandbox, "until grep -q service who 2>/dev/null; do sleep 0.02; done").await?;
    ensure(sandbox.processes().await?.len() == 1, "it does not run")?;
    Ok(pool.close().await?)
}

async fn close() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = session.pool("p")?;
    let other = eyot::Sandbox::create(&*session.provider()?, SandboxSpec::default()).await?;
    pool.get("a").await?;
    pool.get("b").await?;
    pool.close().await?;
    ensure(pool.list().await?.is_empty() && session.count()? == 1, "not exactly its own are gone")?;
    Ok(other.destroy().await?)
}
