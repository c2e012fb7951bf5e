//! Survival of sandboxes: of their maker's death, lost streams, and an Engine that is gone for a
//! while. Also the cleanup after an interrupted operation.

use std::sync::Arc;
use std::time::Duration;

use eyot::{ErrorKind, ExecOptions, Sandbox, SandboxProvider, SandboxSpec, SandboxStatus, StartOptions};
use eyot_providers::docker::{DockerOptions, DockerProvider};

use crate::check::{Check, docker, ensure, ensure_eq, inspected, output, refused, until, with_sandbox};
use crate::engine::{BUSYBOX, DEBIAN, TestEngine, spec, state, tests};
use crate::proxy::{Proxy, engine_socket};

tests! {
    a_sandbox_is_found_again_by_its_label_and_its_processes_go_on(BUSYBOX);
    a_lost_stream_is_opened_again(DEBIAN);
    an_engine_that_vanishes_in_mid_call_is_a_typed_error_and_the_handle_works_when_it_is_back(DEBIAN);
    an_engine_that_is_absent_says_what_to_start(BUSYBOX);
    a_container_that_somebody_stops_sleeps_and_can_be_woken(BUSYBOX);
    a_trap_for_the_engine_in_a_sleeping_sandbox_is_taken_away_before_it_is_woken(DEBIAN);
    a_container_that_somebody_kills_is_dead_keeps_its_files_and_can_be_woken(BUSYBOX);
    a_container_that_somebody_removes_is_destroyed(BUSYBOX);
    a_sandbox_whose_time_is_over_frees_its_name_and_is_swept(BUSYBOX);
    a_create_that_is_given_up_leaves_nothing(BUSYBOX);
    other_containers_are_none_of_ours(BUSYBOX);
}

/// Opens a provider, as another process would.
fn another() -> Arc<DockerProvider> {
    DockerProvider::new(DockerOptions::node(state()))
}

async fn a_sandbox_is_found_again_by_its_label_and_its_processes_go_on(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        let started = sandbox.start("echo begun; sleep 86410", StartOptions::default()).await?;
        sandbox.write("note", "kept").await?;
        for key in [sandbox.name().as_str(), sandbox.id().as_str()] {
            let found = Sandbox::open(&*another(), key).await?;
            ensure_eq!(found.read_text("note").await?, "kept");
            let known = found.processes().await?;
            ensure!(known.iter().any(|process| process.id == started.id), "{known:?}");
        }
        let listed = another().list().await?;
        ensure!(listed.iter().any(|info| info.id == *sandbox.id()), "it is not listed");
        Ok(())
    })
    .await
}

async fn a_lost_stream_is_opened_again(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(DEBIAN), async |sandbox| {
        sandbox.write("note", "kept").await?;
        let container = format!("eyot-{}", sandbox.name());
        // As somebody who may: the guest's user, by the Engine's own exec.
        let kill = "for one in /proc/[0-9]*; do case \"$(tr '\\0' ' ' < $one/cmdline)\" in */eyot-guest\\ relay*) \
                    kill -9 ${one#/proc/};; esac; done";
        docker(&["exec", "--user", "65533", &container, "sh", "-c", kill])?;
        // The first call may be the one that notices.
        until("the stream's return", async || Ok(sandbox.read_text("note").await.is_ok_and(|text| text == "kept"))).await?;
        ensure_eq!(output(sandbox, "echo alive").await?, "alive");
        Ok(())
    })
    .await
}

async fn an_engine_that_vanishes_in_mid_call_is_a_typed_error_and_the_handle_works_when_it_is_back(
    engine: TestEngine,
) -> Check {
    let Some(socket) = engine_socket() else { return Ok(()) };
    let mut proxy = Proxy::new()?;
    proxy.open(&socket)?;
    let options = DockerOptions { address: Some(proxy.address()), ..DockerOptions::node(state()) };
    let provider = DockerProvider::new(options);
    with_sandbox(&engine, spec(DEBIAN), async |made| {
        let sandbox = Sandbox::open(&*provider, made.name().as_str()).await?;
        let running = sandbox.exec("echo begun > begun; sleep 86411", ExecOptions::default());
        let cutting = async {
            until("its start", async || Ok(made.exists("begun").await?)).await?;
            proxy.cut();
            Check::Ok(())
        };
        let (came_to, cut) = tokio::join!(tokio::time::timeout(Duration::from_secs(60), running), cutting);
        cut?;
        let error = refused!(came_to.map_err(|_| "the call hangs")?, Unavailable);
        ensure!(error.hint().is_some(), "it does not say what to do: {error}");
        let error = refused!(sandbox.exists("begun").await, Unavailable);
        ensure!(error.to_string().contains("no Docker Engine answers"), "{error}");
        // Its command went with its stream; the sandbox did not.
        until("the end of the command", async || {
            let live = made.live_processes().await?;
            Ok(!live.processes.iter().any(|process| process.command.contains("86411")))
        })
        .await?;
        proxy.open(&socket)?;
        ensure!(sandbox.exists("begun").await?, "the file is gone");
        Ok(())
    })
    .await
}

async fn an_engine_that_is_absent_says_what_to_start(_: TestEngine) -> Check {
    let proxy = Proxy::new()?;
    let provider =
        DockerProvider::new(DockerOptions { address: Some(proxy.address()), ..DockerOptions::node(state()) });
    let refusals = [
        Sandbox::create(&*provider, spec(BUSYBOX)).await.err(),
        provider.list().await.err(),
        provider.remove("x").await.err(),
    ];
    for error in refusals {
        let error = error.ok_or("it succeeded without an Engine")?;
        ensure_eq!(error.kind(), ErrorKind::Unavailable);
        ensure!(error.to_string().ends_with("no Docker Engine answers"), "{error}");
        ensure!(error.hint().is_some_and(|hint| hint.contains("start it")), "{:?}", error.hint());
        let source = std::error::Error::source(&error);
        let typed = source
            .and_then(|source| source.downcast_ref::<eyot_providers::docker::SandboxDockerUnavailable>());
        ensure!(typed.is_some(), "its source is another");
    }
    Ok(())
}

async fn status(engine: &TestEngine, sandbox: &Sandbox) -> Check<Option<SandboxStatus>> {
    Ok(engine
        .provider
        .list()
        .await?
        .into_iter()
        .find(|info| info.id == *sandbox.id())
        .map(|info| info.status))
}

async fn a_container_that_somebody_stops_sleeps_and_can_be_woken(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        sandbox.write("note", "kept").await?;
        docker(&["stop", &format!("eyot-{}", sandbox.name())])?;
        ensure_eq!(inspected(sandbox, "{{.State.ExitCode}}")?, "0");
        ensure_eq!(status(&engine, sandbox).await?, Some(SandboxStatus::Sleeping));
        let error = refused!(sandbox.exists("note").await, Unavailable);
        ensure!(error.is_sleeping(), "{error}");
        let woken = Sandbox::wake(&*engine.provider, sandbox.name().as_str()).await?;
        ensure_eq!(woken.read_text("note").await?, "kept");
        Ok(())
    })
    .await
}

/// Puts a FIFO in place of files that the Engine reads when it starts a container: it would wait
/// for a writer forever.
async fn a_trap_for_the_engine_in_a_sleeping_sandbox_is_taken_away_before_it_is_woken(
    engine: TestEngine,
) -> Check {
    for trap in [
        "rm /etc/passwd && mkfifo /etc/passwd",
        "mkfifo /srv/trap && ln -s trap /srv/link && ln -sf /srv/link /etc/group && rm -f /etc/passwd",
        "rm /etc/passwd /etc/group && mkdir /etc/passwd && ln -s /nowhere /etc/group",
    ] {
        with_sandbox(&engine, spec(DEBIAN), async |sandbox| {
            output(sandbox, trap).await?;
            engine.provider.sleep(sandbox.name().as_str()).await?;
            let waking = Sandbox::wake(&*engine.provider, sandbox.name().as_str());
            let woken = tokio::time::timeout(Duration::from_secs(60), waking).await;
            let woken = woken.map_err(|_| format!("the Engine hangs after `{trap}`"))??;
            ensure_eq!(output(&woken, "echo alive").await?, "alive");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

async fn a_container_that_somebody_kills_is_dead_keeps_its_files_and_can_be_woken(
    engine: TestEngine,
) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        sandbox.write("note", "kept").await?;
        docker(&["kill", &format!("eyot-{}", sandbox.name())])?;
        ensure_eq!(status(&engine, sandbox).await?, Some(SandboxStatus::Dead));
        let error = refused!(Sandbox::open(&*engine.provider, sandbox.name().as_str()).await, Unavailable);
        ensure!(error.hint().is_some_and(|hint| hint.contains("eyot wake")), "{:?}", error.hint());
        let woken = Sandbox::wake(&*engine.provider, sandbox.name().as_str()).await?;
        ensure_eq!(woken.read_text("note").await?, "kept");
        Ok(())
    })
    .await
}

async fn a_container_that_somebody_removes_is_destroyed(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        let running = sandbox.exec("sleep 86412", ExecOptions::default());
        let removing = async {
            until("its start", async || {
                let live = sandbox.live_processes().await?;
                Ok(live.processes.iter().any(|process| process.command.contains("86412")))
            })
            .await?;
            docker(&["rm", "-f", "-v", &format!("eyot-{}", sandbox.name())])
        };
        let (came_to, removed) = tokio::join!(running, removing);
        removed?;
        let error = came_to.err().ok_or("the command ended by itself")?;
        ensure!(matches!(error.kind(), ErrorKind::Destroyed | ErrorKind::Unavailable), "{error}");
        refused!(sandbox.exists("x").await, Destroyed);
        Ok(())
    })
    .await
}

async fn a_sandbox_whose_time_is_over_frees_its_name_and_is_swept(engine: TestEngine) -> Check {
    let mut wanted =
        SandboxSpec { name: Some(eyot::SandboxName::parse("eyot-test-mortal")?), ..spec(BUSYBOX) };
    wanted.lifecycle.ttl_ms = Some(1_000);
    let first = Sandbox::create(&*engine.provider, wanted.clone()).await?;
    // The guest's own doing: nobody looks meanwhile.
    docker(&["wait", &format!("eyot-{}", first.name())])?;
    wanted.lifecycle.ttl_ms = None;
    let second = Sandbox::create(&*engine.provider, wanted).await?;
    ensure!(first.id() != second.id(), "the same sandbox");
    refused!(first.exists("x").await, Destroyed);
    second.destroy().await?;
    Ok(())
}

async fn a_create_that_is_given_up_leaves_nothing(engine: TestEngine) -> Check {
    for patience_ms in [30, 150, 400] {
        let name = format!("eyot-test-given-up-{patience_ms}-{}", std::process::id());
        let wanted = SandboxSpec { name: Some(eyot::SandboxName::parse(&name)?), ..spec(BUSYBOX) };
        let creating = Sandbox::create(&*engine.provider, wanted.clone());
        match tokio::time::timeout(Duration::from_millis(patience_ms), creating).await {
            Err(_) => {}
            Ok(made) => made?.destroy().await?,
        }
        // The Engine may be at it still, with nothing to be seen yet but the name that is taken.
        until("the removal of what was given up", async || {
            match Sandbox::create(&*engine.provider, wanted.clone()).await {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                made => Ok(made?.destroy().await.is_ok()),
            }
        })
        .await?;
        let left = docker(&["ps", "-aq", "--filter", &format!("name=eyot-{name}")])?;
        ensure!(left.is_empty(), "a container is left: {left}");
    }
    Ok(())
}

async fn other_containers_are_none_of_ours(engine: TestEngine) -> Check {
    let name = "eyot-eyot-test-foreign";
    docker(&["create", "--name", name, "--network", "none", BUSYBOX, "sh"])?;
    let tried = async {
        refused!(engine.provider.open("eyot-test-foreign").await, NotFound);
        refused!(engine.provider.remove("eyot-test-foreign").await, NotFound);
        let wanted =
            SandboxSpec { name: Some(eyot::SandboxName::parse("eyot-test-foreign")?), ..spec(BUSYBOX) };
        refused!(Sandbox::create(&*engine.provider, wanted).await, AlreadyExists);
        ensure!(docker(&["inspect", name]).is_ok(), "it was removed");
        Check::Ok(())
    };
    let came_to = tried.await;
    docker(&["rm", name])?;
    came_to
}
