//! Pools that outlive their process: the next process finds them, enforces their quotas, and
//! repairs them after a crash.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use eyot::{
    Capabilities, Created, ErrorKind, ExecOptions, Isolation, PoolStatus, ProviderTools, SandboxCowMounts,
    SandboxImages, SandboxInfo, SandboxName, SandboxNamer, SandboxProvider, SandboxSnapshots, SandboxSpec,
    Service, Usage, ValidSpec,
};
use eyot_engine::{Engine, PoolCreate, PoolOptions, PoolQuotas, SandboxPool};
use libtest_mimic::{Failed, Trial};

use crate::session::{Session, output};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_pool_is_found_again_with_its_sandboxes_and_their_files", found_again),
        trial("two_who_have_one_pool_open_make_one_sandbox_of_a_name", two_engines),
        trial("a_quota_of_sandboxes_is_held_and_said", quota),
        trial("a_quota_of_memory_needs_a_limit_and_counts_it", memory_quota),
        trial("a_sandbox_that_sleeps_is_woken_by_its_use_and_its_services_run_again", sleeps),
        trial("two_engines_that_wake_a_sandbox_at_once_start_its_services_once", woken_once),
        trial(
            "a_wake_whose_services_fail_leaves_the_sandbox_asleep_and_the_next_use_tries_again",
            failed_services,
        ),
        trial("a_sandbox_that_fell_asleep_by_itself_is_an_event_once_it_is_noticed", fell_asleep),
        trial("listing_and_sleeping_wake_nobody", listing),
        trial("what_happens_is_in_the_event_log_and_its_chain_holds", events),
        trial("a_sandbox_that_is_gone_frees_its_name", gone),
        trial("a_sandbox_that_a_listing_leaves_out_is_not_taken_for_gone", left_out),
        trial("a_sandbox_that_another_provider_made_is_refused_and_keeps_its_name", anothers),
        trial(
            "a_name_is_free_on_another_provider_once_the_deadline_of_its_sandbox_has_passed",
            anothers_deadline,
        ),
        trial("a_create_that_fails_leaves_no_name_that_others_wait_for", left_name),
        trial("a_make_that_nobody_waits_for_any_more_is_finished", given_up),
    ]
}

/// Opens an engine over the session's folder, as another process would.
pub async fn engine(session: &Session) -> Result<Engine, Failed> {
    Ok(Engine::open(session.provider()?, &folder(session)).await?)
}

fn folder(session: &Session) -> PathBuf {
    session.state().join("engine")
}

fn options(name: &str) -> Result<PoolOptions, Failed> {
    Ok(PoolOptions { name: SandboxName::parse(name)?, ..PoolOptions::default() })
}

async fn pool(session: &Session, name: &str) -> Result<SandboxPool, Failed> {
    Ok(engine(session).await?.pool(options(name)?)?)
}

async fn found_again() -> Result<(), Failed> {
    let session = Session::new()?;
    let first = pool(&session, "p").await?;
    let create = PoolCreate { image: Some("host".into()), ..PoolCreate::default() };
    first.create("a", create).await?;
    first.get("a").await?.write("kept", "x").await?;
    let second = pool(&session, "p").await?;
    let listed = second.list().await?;
    ensure(
        listed.len() == 1 && listed[0].status == PoolStatus::Running && listed[0].image == "host",
        format!("{listed:?}"),
    )?;
    ensure(second.get("a").await?.read_text("kept").await? == "x", "another sandbox")?;
    ensure(!second.create("a", PoolCreate::default()).await?.created, "it was made anew")?;
    ensure(pool(&session, "q").await?.list().await?.is_empty(), "another pool has it")?;
    ensure(
        engine(&session).await?.pools().await?.iter().map(ToString::to_string).collect::<Vec<_>>() == ["p"],
        "pools",
    )?;
    second.close().await?;
    ensure(session.count()? == 0 && engine(&session).await?.pools().await?.is_empty(), "something is left")
}

async fn two_engines() -> Result<(), Failed> {
    let session = Session::new()?;
    let pools = [pool(&session, "p").await?, pool(&session, "p").await?];
    let asked: Vec<_> = (0..20)
        .map(|number| {
            let pool = pools[number % 2].clone();
            tokio::spawn(async move { pool.get("a").await.map(|sandbox| sandbox.id().clone()) })
        })
        .collect();
    let mut ids = Vec::new();
    for asked in asked {
        ids.push(asked.await??);
    }
    ids.dedup();
    ensure(ids.len() == 1 && session.count()? == 1, format!("{ids:?}"))?;
    Ok(pools[0].close().await?)
}

async fn quota() -> Result<(), Failed> {
    let session = Session::new()?;
    let quotas = PoolQuotas { max_sandboxes: Some(2), ..PoolQuotas::default() };
    let pool = engine(&session).await?.pool(PoolOptions { quotas, ..options("p")? })?;
    pool.get("a").await?;
    pool.get("b").await?;
    let error = pool.get("c").await.err().ok_or("a third one was made")?;
    ensure(error.kind() == ErrorKind::Quota && error.to_string().contains('2'), format!("{error:?}"))?;
    ensure(session.count()? == 2, "something was made")?;
    pool.remove("a").await?;
    pool.get("c").await?;
    Ok(pool.close().await?)
}

async fn memory_quota() -> Result<(), Failed> {
    let session = Session::new()?;
    let quotas = PoolQuotas { memory_mib: Some(100), ..PoolQuotas::default() };
    let pool = engine(&session).await?.pool(PoolOptions { quotas, ..options("p")? })?;
    let with = |memory_mib| {
        let mut spec = SandboxSpec::default();
        spec.limits.memory_mib = memory_mib;
        PoolCreate { spec: Some(spec), ..PoolCreate::default() }
    };
    for (name, memory_mib, fits) in
        [("a", None, false), ("b", Some(60), true), ("c", Some(60), false), ("d", Some(40), true)]
    {
        let made = pool.create(name, with(memory_mib)).await;
        let kind = made.as_ref().err().map(eyot::Error::kind);
        ensure(
            made.is_ok() == fits && (fits || kind == Some(ErrorKind::Quota)),
            format!("{name}: {made:?}"),
        )?;
    }
    Ok(pool.close().await?)
}

fn counting_service() -> PoolCreate {
    let service =
        Service { command: "echo up >> starts; exec sleep 1000".into(), cwd: None, env: Default::default() };
    PoolCreate { services: vec![service], ..PoolCreate::default() }
}

async fn sleeps() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = pool(&session, "p").await?;
    pool.create("a", counting_service()).await?;
    let old = pool.get("a").await?;
    output(&old, "until [ -s starts ]; do sleep 0.02; done; echo x > kept").await?;
    pool.sleep("a").await?;
    pool.sleep("a").await?;
    ensure(pool.list().await?[0].status == PoolStatus::Sleeping, "it does not sleep")?;
    ensure(old.read("kept").await.is_err_and(|error| error.is_sleeping()), "an old handle works")?;
    let woken = pool.get("a").await?;
    ensure(woken.id() == old.id() && woken.read_text("kept").await? == "x\n", "another one")?;
    output(&woken, "until [ $(wc -l < starts) = 2 ]; do sleep 0.02; done").await?;
    ensure(pool.list().await?[0].status == PoolStatus::Running, "it sleeps on")?;
    Ok(pool.close().await?)
}

async fn woken_once() -> Result<(), Failed> {
    let session = Session::new()?;
    let pools = [pool(&session, "p").await?, pool(&session, "p").await?, pool(&session, "p").await?];
    pools[0].create("a", counting_service()).await?;
    // It is started by now, and has not counted itself yet, perhaps.
    output(&pools[0].get("a").await?, "until [ -s starts ]; do sleep 0.02; done").await?;
    for round in 2..8 {
        pools[round % 3].sleep("a").await?;
        let woken = pools.clone().map(|pool| tokio::spawn(async move { pool.get("a").await }));
        for woken in woken {
            let sandbox = woken.await??;
            // Whoever is handed it finds every service started.
            output(&sandbox, &format!("until [ $(wc -l < starts) -ge {round} ]; do sleep 0.02; done"))
                .await?;
        }
        let starts = output(&pools[0].get("a").await?, "wc -l < starts").await?;
        ensure(starts == round.to_string(), format!("round {round}: {starts} starts"))?;
    }
    Ok(pools[0].close().await?)
}

async fn failed_services() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = pool(&session, "p").await?;
    let line = "exec sleep 1000".to_owned();
    let service = Service { command: line, cwd: Some("/home/user/there".into()), env: Default::default() };
    let mut spec = SandboxSpec::default();
    spec.manifest.directories.push("there".into());
    let create = PoolCreate { services: vec![service], spec: Some(spec), ..PoolCreate::default() };
    pool.create("a", create).await?;
    output(&pool.get("a").await?, "mv there gone").await?;
    for _ in 0..2 {
        pool.sleep("a").await?;
        let error = pool.get("a").await.err().ok_or("it woke without its service")?;
        ensure(error.to_string().contains("start the services of sandbox `a`"), error.to_string())?;
        ensure(pool.list().await?[0].status == PoolStatus::Sleeping, "it runs without its service")?;
    }
    pool.remove("a").await?;
    ensure(session.count()? == 0, "something is left")
}

async fn fell_asleep() -> Result<(), Failed> {
    let session = Session::new()?;
    let first = engine(&session).await?;
    let pool = first.pool(options("p")?)?;
    let create = PoolCreate { sleep_after_ms: Some(300), ..PoolCreate::default() };
    pool.create("a", create).await?;
    while pool.list().await?[0].status == PoolStatus::Running {
        tokio::task::yield_now().await;
    }
    // Whoever looks next notices; and who looks after that has nothing to add.
    for _ in 0..2 {
        engine(&session).await?;
    }
    pool.get("a").await?;
    pool.sleep("a").await?;
    pool.sleep("a").await?;
    pool.close().await?;
    let log = first.events().ok_or("no log")?;
    let told: Vec<_> =
        log.read(1, 1000)?.into_iter().map(|event| (event.kind.name(), event.reason)).collect();
    let names: Vec<_> = told.iter().map(|(name, _)| *name).collect();
    ensure(names == ["created", "slept", "woke", "slept", "destroyed"], format!("{told:?}"))?;
    ensure(told[1].1.contains("nobody used it"), format!("{told:?}"))
}

async fn listing() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = pool(&session, "p").await?;
    let create = PoolCreate { sleep_after_ms: Some(300), ..PoolCreate::default() };
    pool.create("a", create).await?;
    pool.get("a").await?.write("kept", "x").await?;
    // Asking again and again is no use: it falls asleep all the same.
    while pool.list().await?[0].status == PoolStatus::Running {
        tokio::task::yield_now().await;
    }
    ensure(pool.get("a").await?.read_text("kept").await? == "x", "its file is gone")?;
    Ok(pool.close().await?)
}

async fn events() -> Result<(), Failed> {
    let session = Session::new()?;
    let engine = engine(&session).await?;
    let pool = engine.pool(options("p")?)?;
    let sandbox = pool.get("a").await?;
    sandbox.exec("exit 3", ExecOptions::default()).await?;
    sandbox.write("f", "12345").await?;
    let what = eyot_engine::Transfer { from_path: "f".into(), to_path: "g".into(), recursive: false };
    pool.transfer("a", "b", &what).await?;
    pool.browse("a", 80).await?;
    pool.sleep("a").await?;
    pool.get("a").await?;
    pool.close().await?;
    let log = engine.events().ok_or("no log")?;
    let names: Vec<_> = log
        .read(1, 1000)?
        .iter()
        .filter(|event| event.sandbox.as_deref() == Some("a"))
        .map(|event| event.kind.name())
        .collect();
    let expected = [
        "created",
        "exec_started",
        "exec_ended",
        "file_written",
        "port_opened",
        "slept",
        "woke",
        "destroyed",
    ];
    ensure(names == expected, format!("{names:?}"))?;
    log.verify()?;
    Ok(())
}

async fn gone() -> Result<(), Failed> {
    let session = Session::new()?;
    let first = pool(&session, "p").await?;
    let old = first.get("a").await?;
    session.provider()?.remove(old.id().as_str()).await?;
    let engine = engine(&session).await?;
    let pool = engine.pool(options("p")?)?;
    ensure(pool.list().await?.is_empty(), "it is listed")?;
    ensure(engine.reconcile().await?.is_empty(), "it was not put right at the opening")?;
    ensure(pool.get("a").await?.id() != old.id(), "it came back")?;
    Ok(pool.close().await?)
}

/// A provider of this name that lists nothing, as if it could not read its sandboxes for now. Under
/// a name that is not its own it has none of the sandboxes. One called `absent` can't be reached, and nobody knows what one called
/// `broken` has done.
struct Shortsighted(Arc<dyn SandboxProvider>, &'static str);

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl SandboxProvider for Shortsighted {
    fn name(&self) -> &str {
        self.1
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn lives_with_its_process(&self) -> bool {
        self.0.lives_with_its_process()
    }

    async fn isolation(&self) -> eyot::Result<Isolation> {
        self.0.isolation().await
    }

    async fn create(&self, spec: &ValidSpec) -> eyot::Result<Created> {
        let fails = || eyot::Error::new(ErrorKind::Unavailable, "nothing answers");
        match self.1 {
            "absent" => Err(fails().with_no_effect()),
            "broken" => Err(fails()),
            _ => self.0.create(spec).await,
        }
    }

    async fn open(&self, id_or_name: &str) -> eyot::Result<Created> {
        match self.1 {
            "native" => self.0.open(id_or_name).await,
            _ => Err(eyot::Error::new(ErrorKind::NotFound, "there is no such sandbox")),
        }
    }

    async fn list(&self) -> eyot::Result<Vec<SandboxInfo>> {
        Ok(Vec::new())
    }

    async fn list_with_usage(&self) -> eyot::Result<Vec<(SandboxInfo, Option<Usage>)>> {
        Ok(Vec::new())
    }

    async fn info(&self, _: &str) -> eyot::Result<SandboxInfo> {
        Err(eyot::Error::new(ErrorKind::NotFound, "there is no such sandbox"))
    }

    async fn remove(&self, id_or_name: &str) -> eyot::Result<()> {
        match self.1 {
            "absent" | "broken" => Err(eyot::Error::new(ErrorKind::Unavailable, "nothing answers")),
            _ => self.0.remove(id_or_name).await,
        }
    }

    fn images(&self, names: SandboxNamer) -> eyot::Result<Arc<dyn SandboxImages>> {
        self.0.images(names)
    }

    fn cow_mounts(&self) -> eyot::Result<Arc<dyn SandboxCowMounts>> {
        self.0.cow_mounts()
    }

    fn snapshots(&self) -> eyot::Result<Arc<dyn SandboxSnapshots>> {
        self.0.snapshots()
    }

    fn tools(&self) -> Option<Arc<dyn ProviderTools>> {
        self.0.tools()
    }

    async fn sleep(&self, id_or_name: &str) -> eyot::Result<()> {
        self.0.sleep(id_or_name).await
    }

    async fn wake(&self, id_or_name: &str) -> eyot::Result<Created> {
        self.0.wake(id_or_name).await
    }

    async fn has_workspace(&self, id: &str) -> eyot::Result<bool> {
        self.0.has_workspace(id).await
    }
}

async fn left_out() -> Result<(), Failed> {
    let session = Session::new()?;
    let first = pool(&session, "p").await?;
    first.get("a").await?.write("kept", "x").await?;
    let shortsighted = Arc::new(Shortsighted(session.provider()?, "native"));
    let engine = Engine::open(shortsighted, &folder(&session)).await?;
    ensure(
        engine.reconciled_on_open().is_empty() && engine.reconcile().await?.is_empty(),
        "it was put right",
    )?;
    ensure(first.get("a").await?.read_text("kept").await? == "x", "it was made anew")?;
    Ok(first.close().await?)
}

async fn anothers() -> Result<(), Failed> {
    let session = Session::new()?;
    let made = pool(&session, "p").await?;
    made.get("a").await?.write("kept", "x").await?;
    let other = Arc::new(Shortsighted(session.provider()?, "elsewhere"));
    let other = Engine::open(other, &folder(&session)).await?.pool(options("p")?)?;
    let used = other.get("a").await.map(drop);
    for refused in [used, other.remove("a").await, other.sleep("a").await, other.close().await] {
        let error = refused.err().ok_or("another provider's sandbox was used")?;
        let names_both = error.to_string().contains("native made it, and this is elsewhere");
        ensure(error.kind() == ErrorKind::Conflict && names_both, error)?;
    }
    ensure(made.get("a").await?.read_text("kept").await? == "x", "it was made anew")?;
    Ok(made.close().await?)
}

async fn left_name() -> Result<(), Failed> {
    let session = Session::new()?;
    let made = pool(&session, "p").await?;
    let first = made.get("a").await?;
    for (provider, name) in [("absent", "b"), ("broken", "c")] {
        let other = Arc::new(Shortsighted(session.provider()?, provider));
        let other = Engine::open(other, &folder(&session)).await?.pool(options("p")?)?;
        ensure(other.get(name).await.is_err(), "it was made")?;
    }
    let second = made.get("b").await?;
    let spec = SandboxSpec { name: Some(SandboxName::parse("c")?), ..SandboxSpec::default() };
    let tried = async { (made.get("c").await.map(drop), made.as_provider().make(spec).await.map(drop)) };
    let (used, created) = tokio::time::timeout(Duration::from_secs(20), tried).await?;
    for refused in [used, created, made.close().await] {
        let error = refused.err().ok_or("the name of another provider was taken")?;
        ensure(error.kind() == ErrorKind::Conflict && error.to_string().contains("broken made it"), error)?;
    }
    ensure(first.exists("/").await?, "it was destroyed by a close that was refused")?;
    // No pool ends them any more.
    let native = session.provider()?;
    for left in [first, second] {
        native.remove(left.id().as_str()).await?;
    }
    Ok(())
}

async fn anothers_deadline() -> Result<(), Failed> {
    let session = Session::new()?;
    let mut mortal = options("p")?;
    (mortal.template.lifecycle.ttl_ms, mortal.sleep_after_ms) = (Some(1_000), None);
    let first = engine(&session).await?.pool(mortal)?.get("a").await?;
    let provider: Arc<dyn SandboxProvider> = session.provider()?;
    let other = Arc::new(Shortsighted(session.provider()?, "elsewhere"));
    let other = Engine::open(other, &folder(&session)).await?;
    // Without the provider that made it nobody can tell.
    let blind = other.pool(options("p")?)?;
    let other = other.with_other_providers(move |name| (name == "native").then(|| Arc::clone(&provider)));
    let pool = other.pool(options("p")?)?;
    let early = pool.get("a").await.err().ok_or("a sandbox that is there was replaced")?;
    ensure(early.kind() == ErrorKind::Conflict, early)?;
    while first.exists("/").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let refused = blind.get("a").await.err().ok_or("a guess freed the name")?;
    ensure(refused.kind() == ErrorKind::Conflict, refused)?;
    ensure(pool.get("a").await?.id() != first.id(), "it is the old one")?;
    let row = pool.as_provider().id_of("a").await?;
    ensure(row != *first.id(), "the row is the old one")?;
    Ok(pool.close().await?)
}

async fn given_up() -> Result<(), Failed> {
    let session = Session::new()?;
    let pool = pool(&session, "p").await?;
    for _ in 0..20 {
        let asked = tokio::spawn({
            let pool = pool.clone();
            async move { pool.get("a").await.map(drop) }
        });
        tokio::task::yield_now().await;
        asked.abort();
        pool.get("a").await?;
        pool.remove("a").await?;
    }
    // The last one who was interrupted may begin only now; what is made then has a name, and goes with it.
    let gone = async {
        while session.count()? != 0 {
            pool.close().await?;
            tokio::task::yield_now().await;
        }
        Ok::<(), Failed>(())
    };
    tokio::time::timeout(Duration::from_secs(60), gone).await.map_err(|_| "something is left")??;
    Ok(pool.close().await?)
}
