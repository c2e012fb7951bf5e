//! Failures of the Engine itself: it is killed, or its disk is full.

use std::time::Duration;

use eyot::{ExecOptions, Sandbox, SandboxProvider};
use libtest_mimic::{Completion, Trial};

use crate::check::{Check, ensure, ensure_eq, output, refused, until};
use crate::engine::{BUSYBOX, TestEngine, block_on, spec};
use crate::own_engine::OwnEngine;

pub fn trials(engine: &TestEngine) -> Vec<Trial> {
    vec![
        trial(
            engine,
            "an_engine_that_is_killed_in_mid_exec_is_a_typed_error_and_what_is_left_can_be_used",
            killed,
        ),
        trial(engine, "an_engine_whose_disk_is_full_says_what_to_do_and_keeps_nothing", full),
    ]
}

fn trial<F: Future<Output = Check> + 'static>(
    engine: &TestEngine,
    name: &str,
    test: fn(OwnEngine) -> F,
) -> Trial {
    engine.trial(name, BUSYBOX, move || match OwnEngine::missing() {
        Some(reason) => Ok(Completion::ignored_with(reason)),
        None => {
            block_on(async { test(OwnEngine::start(BUSYBOX).await?).await }).map(|()| Completion::Completed)
        }
    })
}

async fn killed(mut engine: OwnEngine) -> Check {
    let provider = engine.provider();
    let sandbox = Sandbox::create(&*provider, spec(BUSYBOX)).await?;
    sandbox.write("note", "kept").await?;
    let running = sandbox.exec("echo begun > begun; sleep 86420", ExecOptions::default());
    let killing = async {
        until("its start", async || Ok(sandbox.exists("begun").await?)).await?;
        engine.kill()
    };
    let (came_to, was_killed) = tokio::join!(tokio::time::timeout(Duration::from_secs(60), running), killing);
    was_killed?;
    let error = refused!(came_to.map_err(|_| "the call hangs")?, Unavailable);
    ensure!(error.hint().is_some(), "it does not say what to do: {error}");
    let error = refused!(sandbox.exists("note").await, Unavailable);
    ensure!(error.to_string().contains("no Docker Engine answers"), "{error}");
    ensure!(error.hint().is_some_and(|hint| hint.contains("start it")), "{:?}", error.hint());

    engine.begin().await?;
    // The Engine ends what it finds running of its last life.
    let woken = Sandbox::wake(&*provider, sandbox.name().as_str()).await?;
    ensure_eq!(output(&woken, "cat note begun").await?, "keptbegun");
    woken.destroy().await?;
    nothing_left(&engine).await
}

async fn full(engine: OwnEngine) -> Check {
    let provider = engine.provider();
    let before = Sandbox::create(&*provider, spec(BUSYBOX)).await?;
    let filled = engine.fill_disk()?;
    let error = refused!(before.write("large", vec![1; 1 << 20]).await, Quota);
    ensure!(error.to_string().contains("`/workspace/large`"), "{error}");
    let error = refused!(Sandbox::create(&*provider, spec(BUSYBOX)).await, Quota);
    ensure!(
        error.hint().is_some_and(|hint| hint.contains("docker system prune")),
        "{error}: {:?}",
        error.hint()
    );
    ensure_eq!(provider.list().await?.len(), 1);
    std::fs::remove_file(filled)?;
    before.write("large", vec![1; 1 << 20]).await?;
    Sandbox::create(&*provider, spec(BUSYBOX)).await?.destroy().await?;
    before.destroy().await?;
    nothing_left(&engine).await
}

/// Checks that no container is left, and no volume but the guest's.
async fn nothing_left(engine: &OwnEngine) -> Check {
    let listed = |arguments: &[&str]| -> Check<String> {
        Ok(String::from_utf8_lossy(&engine.docker().args(arguments).output()?.stdout).into_owned())
    };
    ensure_eq!(listed(&["ps", "-aq"])?, "");
    let volumes = listed(&["volume", "ls", "-q"])?;
    ensure!(volumes.lines().all(|name| name.starts_with("eyot-guest")), "volumes are left: {volumes}");
    Ok(())
}
