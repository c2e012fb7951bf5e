//! Sleep and wake: what is kept, what is gone, and what is said of a sandbox that sleeps.

use std::sync::Arc;
use std::time::Duration;

use super::Fixture;
use super::check::{
    Check, Disposable, cases, ensure, ensure_eq, ensure_fails, output, promptly, sh, until, with_spec,
};
use super::create::{listed, named};
use crate::capabilities::Capability;
use crate::created::SandboxStatus;
use crate::error::{Error, ErrorKind};
use crate::exec::ExecOptions;
use crate::provider::SandboxProvider;
use crate::sandbox::{Sandbox, StartOptions};
use crate::spec::{IdleAction, SandboxName, SandboxSpec};

cases! {
    what_was_written_survives_a_sleep(fixture) needs [Sleep, Shell, Symlinks];
    a_file_of_a_hundred_kib_and_a_deep_tree_survive_a_sleep(fixture) needs [Sleep, Shell];
    the_env_the_working_directory_the_id_and_the_name_survive_a_sleep(fixture) needs [Sleep, Shell];
    what_was_removed_stays_removed_over_a_sleep(fixture) needs [Sleep, Shell];
    processes_are_gone_after_a_wake_and_their_numbers_are_not_used_again(fixture) needs [Sleep, Shell, Processes];
    a_sandbox_sleeps_and_wakes_again_and_again(fixture) needs [Sleep, Shell];
    every_life_of_a_sandbox_is_told_apart_from_those_before(fixture) needs [Sleep];
    a_second_sleep_is_fine_and_so_is_a_wake_of_one_that_runs(fixture) needs [Sleep];
    what_sleeps_is_listed_as_sleeping_and_open_says_how_to_wake_it(fixture) needs [Sleep];
    every_handle_says_that_its_sandbox_sleeps_and_not_that_it_was_destroyed(fixture) needs [Sleep, Shell];
    a_handle_from_before_a_sleep_is_not_one_to_the_woken_sandbox(fixture) needs [Sleep];
    a_command_that_runs_when_its_sandbox_is_put_to_sleep_ends(fixture) needs [Sleep, Shell];
    a_command_that_a_sleep_kept_from_beginning_can_be_run_again(fixture) needs [Sleep, Shell];
    a_sandbox_that_sleeps_can_be_removed_and_is_then_destroyed_for_its_handles(fixture) needs [Sleep];
    a_sandbox_that_sleeps_can_be_destroyed_by_a_handle_from_before_and_so_can_a_woken_one(fixture) needs [Sleep];
    neither_a_sleep_nor_a_wake_knows_a_sandbox_that_is_not_there(fixture) needs [Sleep];
    an_idle_sandbox_that_is_to_sleep_sleeps_and_keeps_its_files(fixture) needs [Sleep, Deadlines, Shell];
    time_asleep_is_not_idle_time(fixture) needs [Sleep, Deadlines];
    a_ttl_passes_while_a_sandbox_sleeps(fixture) needs [Sleep, Deadlines];
    a_ttl_destroys_what_is_to_sleep_when_it_is_idle(fixture) needs [Sleep, Deadlines];
    a_ttl_runs_on_after_a_wake(fixture) needs [Sleep, Deadlines];
    of_many_who_wake_one_sandbox_at_once_all_get_the_same(fixture) needs [Sleep, Shell];
    sleeps_and_wakes_at_once_leave_one_sandbox_that_works(fixture) needs [Sleep, Shell];
    get_or_create_wakes_what_sleeps_and_makes_nothing(fixture) needs [Sleep];
}

/// A sandbox of the case's own, and its name.
async fn sandbox(fixture: &dyn Fixture) -> Check<(Disposable, SandboxName)> {
    let (spec, name) = named(fixture);
    Ok((Disposable(Sandbox::create(&*fixture.provider(), spec).await?), name))
}

/// Puts it to sleep and wakes it.
async fn nap(provider: &dyn SandboxProvider, name: &SandboxName) -> Check<Sandbox> {
    promptly("the sleep", provider.sleep(name.as_str())).await??;
    Ok(promptly("the wake", Sandbox::wake(provider, name.as_str())).await??)
}

async fn every_life_of_a_sandbox_is_told_apart_from_those_before(fixture: Arc<dyn Fixture>) -> Check {
    let (sandbox, name) = sandbox(&*fixture).await?;
    let provider = fixture.provider();
    let mut lives = vec![sandbox.0.info().life.clone()];
    let again = Sandbox::open(&*provider, name.as_str()).await?;
    ensure_eq!(again.info().life, lives[0]);
    for _ in 0..2 {
        let woken = nap(&*provider, &name).await?;
        ensure!(!lives.contains(&woken.info().life), "{:?} again after {lives:?}", woken.info().life);
        lives.push(woken.info().life.clone());
    }
    Ok(())
}

async fn status(provider: &dyn SandboxProvider, name: &SandboxName) -> Check<Option<SandboxStatus>> {
    let found = provider.list().await?.into_iter().find(|info| info.name == *name);
    Ok(found.map(|info| info.status))
}

async fn sleeps(provider: &dyn SandboxProvider, name: &SandboxName) -> Check<bool> {
    Ok(status(provider, name).await? == Some(SandboxStatus::Sleeping))
}

async fn what_was_written_survives_a_sleep(fixture: Arc<dyn Fixture>) -> Check {
    let (first, name) = sandbox(&*fixture).await?;
    let made = "mkdir -p d/e && printf one > d/f && printf two > ~/home && printf three > /tmp/kept \
                && chmod 751 d/f && chmod 700 d/e && ln -s d/f link && ln d/f hard && mkfifo d/fifo && cd d \
                && ln -s nowhere dangling";
    output(&first.0, made).await?;
    let looked = "cat d/f ~/home /tmp/kept link hard; stat -c '%a %F' d/f d/e d/fifo; stat -c %h hard; \
                  readlink link; readlink d/dangling; stat -c %Y d/f";
    let before = output(&first.0, looked).await?;
    let woken = nap(&*fixture.provider(), &name).await?;
    ensure_eq!(output(&woken, looked).await?, before);
    ensure_eq!(woken.read_text("d/f").await?, "one");
    Ok(woken.destroy().await?)
}

async fn a_file_of_a_hundred_kib_and_a_deep_tree_survive_a_sleep(fixture: Arc<dyn Fixture>) -> Check {
    let (first, name) = sandbox(&*fixture).await?;
    let content: Vec<u8> = (0..100 * 1024_u32).map(|index| (index.wrapping_mul(31) >> 3) as u8).collect();
    first.0.write("large", content.clone()).await?;
    let deep = vec!["d"; 100].join("/");
    first.0.write(&format!("{deep}/file"), "deep").await?;
    let woken = nap(&*fixture.provider(), &name).await?;
    ensure!(woken.read("large").await? == content, "the large file has changed");
    ensure_eq!(woken.read_text(&format!("{deep}/file")).await?, "deep");
    Ok(woken.destroy().await?)
}

async fn the_env_the_working_directory_the_id_and_the_name_survive_a_sleep(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let (mut spec, name) = named(&*fixture);
    spec.env.insert("SPEC".into(), "of the spec".into());
    spec.manifest.env.insert("MANIFEST".into(), "of the manifest".into());
    let first = Disposable(Sandbox::create(&*fixture.provider(), spec).await?);
    let looked = "echo $SPEC, $MANIFEST; pwd; id; echo $HOME $PATH";
    let before = output(&first.0, looked).await?;
    ensure!(before.starts_with("of the spec, of the manifest"), "the env is {before}");
    let woken = nap(&*fixture.provider(), &name).await?;
    ensure_eq!(output(&woken, looked).await?, before);
    let known = |sandbox: &Sandbox| (sandbox.id().clone(), sandbox.name().clone(), sandbox.cwd().clone());
    ensure_eq!(known(&woken), known(&first.0));
    ensure_eq!(woken.info().created_ms, first.0.info().created_ms);
    ensure_eq!(woken.info().spec, first.0.info().spec);
    ensure_eq!(woken.isolation(), first.0.isolation());
    Ok(woken.destroy().await?)
}

async fn what_was_removed_stays_removed_over_a_sleep(fixture: Arc<dyn Fixture>) -> Check {
    let (first, name) = sandbox(&*fixture).await?;
    output(&first.0, "mkdir -p d/e; touch d/e/f g; rm -r d g; mkdir d").await?;
    let woken = nap(&*fixture.provider(), &name).await?;
    ensure_eq!(output(&woken, "find . | sort | tr '\\n' ' '").await?, ". ./d ");
    Ok(woken.destroy().await?)
}

async fn processes_are_gone_after_a_wake_and_their_numbers_are_not_used_again(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let (first, name) = sandbox(&*fixture).await?;
    let started = first.0.start("echo $$ > pid; exec sleep 86400", StartOptions::default()).await?;
    until("its start", async || Ok(first.0.exists("pid").await?)).await?;
    output(&first.0, "sleep 86400 > /dev/null 2>&1 &").await?;
    let woken = nap(&*fixture.provider(), &name).await?;
    ensure!(woken.processes().await?.is_empty(), "there are {:?}", woken.processes().await?);
    let running = "for line in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $line; echo; done";
    let found = output(&woken, running).await?;
    ensure!(!found.contains("sleep 86400"), "it still runs: {found}");
    ensure_fails!(woken.wait(started.id).await, NotFound);
    let again = woken.start("true", StartOptions::default()).await?;
    ensure!(again.id != started.id, "{} was used again", again.id);
    Ok(woken.destroy().await?)
}

async fn a_sandbox_sleeps_and_wakes_again_and_again(fixture: Arc<dyn Fixture>) -> Check {
    let (first, name) = sandbox(&*fixture).await?;
    let mut current = first.0.clone();
    for round in 1..=5 {
        output(&current, &format!("echo {round} >> rounds")).await?;
        current = nap(&*fixture.provider(), &name).await?;
        ensure_eq!(output(&current, "wc -l < rounds").await?.trim(), round.to_string());
    }
    Ok(current.destroy().await?)
}

async fn a_second_sleep_is_fine_and_so_is_a_wake_of_one_that_runs(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (first, name) = sandbox(&*fixture).await?;
    let second = Sandbox::wake(&*provider, name.as_str()).await?;
    second.write("note", "x").await?;
    ensure_eq!(first.0.read_text("note").await?, "x");
    provider.sleep(name.as_str()).await?;
    provider.sleep(first.0.id().as_str()).await?;
    let woken = Sandbox::wake(&*provider, first.0.id().as_str()).await?;
    ensure_eq!(woken.read_text("note").await?, "x");
    Ok(woken.destroy().await?)
}

async fn what_sleeps_is_listed_as_sleeping_and_open_says_how_to_wake_it(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (first, name) = sandbox(&*fixture).await?;
    ensure_eq!(status(&*provider, &name).await?, Some(SandboxStatus::Running));
    provider.sleep(name.as_str()).await?;
    ensure_eq!(status(&*provider, &name).await?, Some(SandboxStatus::Sleeping));
    ensure_eq!(provider.info(name.as_str()).await?.status, SandboxStatus::Sleeping);
    for key in [name.as_str(), first.0.id().as_str()] {
        let error = said(provider.open(key).await.map(drop))?;
        ensure!(says_that_it_sleeps(&error), "open said {error:?}");
        ensure!(error.hint().is_some_and(|hint| hint.contains("wake")), "its hint is {:?}", error.hint());
    }
    let (spec, _) = named(&*fixture);
    let taken = SandboxSpec { name: Some(name.clone()), ..spec };
    ensure_fails!(Sandbox::create(&*provider, taken).await, AlreadyExists);
    Sandbox::wake(&*provider, name.as_str()).await?;
    ensure_eq!(status(&*provider, &name).await?, Some(SandboxStatus::Running));
    Ok(provider.remove(name.as_str()).await?)
}

fn said(result: Result<(), Error>) -> Check<Error> {
    match result {
        Err(error) => Ok(error),
        Ok(()) => Err(super::check::Failure::Broken("it succeeded".to_owned())),
    }
}

/// Typed, and for those who read.
fn says_that_it_sleeps(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable && error.is_sleeping() && error.to_string().contains("sleeps")
}

async fn every_handle_says_that_its_sandbox_sleeps_and_not_that_it_was_destroyed(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let provider = fixture.provider();
    let (first, name) = sandbox(&*fixture).await?;
    let second = Sandbox::open(&*provider, name.as_str()).await?;
    provider.sleep(name.as_str()).await?;
    for handle in [&first.0, &second] {
        let operations = [
            ("exec", sh(handle, "true").await.map(drop)),
            ("exec_stream", handle.exec_stream("true", ExecOptions::default()).await.map(drop)),
            ("read", handle.read("x").await.map(drop)),
            ("write", handle.write("x", "x").await.map(drop)),
            ("exists", handle.exists("x").await.map(drop)),
            ("list", handle.list(".").await.map(drop)),
            ("workspace", handle.workspace().read_file("x").await.map(drop)),
        ];
        let has_workspace = handle.capabilities().has(Capability::Beneath);
        for (operation, ended) in operations {
            if operation == "workspace" && !has_workspace {
                continue;
            }
            let error = said(ended)?;
            ensure!(says_that_it_sleeps(&error), "{operation} ended with {error:?}");
            ensure!(error.to_string().contains(name.as_str()), "{operation} does not name it: {error}");
        }
    }
    Ok(provider.remove(name.as_str()).await?)
}

async fn a_handle_from_before_a_sleep_is_not_one_to_the_woken_sandbox(fixture: Arc<dyn Fixture>) -> Check {
    let (first, name) = sandbox(&*fixture).await?;
    let woken = nap(&*fixture.provider(), &name).await?;
    let error = said(first.0.exists("x").await.map(drop))?;
    ensure!(error.is_sleeping(), "it ended with {error:?}");
    ensure!(!woken.exists("x").await?, "there is a file");
    Ok(woken.destroy().await?)
}

async fn a_command_that_runs_when_its_sandbox_is_put_to_sleep_ends(fixture: Arc<dyn Fixture>) -> Check {
    let (first, name) = sandbox(&*fixture).await?;
    let handle = first.0.clone();
    let running = tokio::spawn(async move { sh(&handle, "echo begun; touch started; sleep 86400").await });
    until("its start", async || Ok(first.0.exists("started").await?)).await?;
    let provider = fixture.provider();
    promptly("the sleep", provider.sleep(name.as_str())).await??;
    let settled = promptly("the command", running).await?;
    match settled.map_err(|error| super::check::Failure::Broken(error.to_string()))? {
        Ok(result) => ensure!(!result.success(), "it came to {result:?}"),
        Err(error) => ensure!(says_that_it_sleeps(&error), "it failed with {}: {error}", error.kind()),
    }
    Ok(provider.remove(name.as_str()).await?)
}

async fn a_command_that_a_sleep_kept_from_beginning_can_be_run_again(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (first, name) = sandbox(&*fixture).await?;
    let mut sandbox = first.0.clone();
    for round in 0..4 {
        let commands = (0..8).map(|number| format!("echo x >> {round}-{number}")).collect::<Vec<_>>();
        let runs = commands.iter().map(|command| sh(&sandbox, command));
        let runs = futures_util::future::join_all(runs);
        let (slept, ended) = futures_util::future::join(provider.sleep(name.as_str()), runs).await;
        slept?;
        sandbox = Sandbox::wake(&*provider, name.as_str()).await?;
        for (number, ended) in ended.iter().enumerate() {
            let Err(error) = ended else { continue };
            ensure!(says_that_it_sleeps(error), "it failed with {}: {error}", error.kind());
            if error.had_no_effect() {
                sh(&sandbox, &commands[number]).await?;
                ensure_eq!(sandbox.read_text(format!("{round}-{number}").as_str()).await?, "x\n");
            }
        }
    }
    Ok(provider.remove(name.as_str()).await?)
}

async fn a_sandbox_that_sleeps_can_be_removed_and_is_then_destroyed_for_its_handles(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let provider = fixture.provider();
    let (first, name) = sandbox(&*fixture).await?;
    provider.sleep(name.as_str()).await?;
    provider.remove(name.as_str()).await?;
    ensure!(!listed(&*provider, &name).await?, "it is still listed");
    ensure_fails!(first.0.exists("x").await, Destroyed);
    ensure_fails!(provider.wake(name.as_str()).await.map(drop), NotFound | Destroyed);
    let (spec, _) = named(&*fixture);
    let again = SandboxSpec { name: Some(name), ..spec };
    with_spec(&*fixture, again, async |second: Sandbox| {
        ensure!(second.id() != first.0.id(), "the id was used again");
        Ok(())
    })
    .await
}

async fn a_sandbox_that_sleeps_can_be_destroyed_by_a_handle_from_before_and_so_can_a_woken_one(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let provider = fixture.provider();
    let (first, name) = sandbox(&*fixture).await?;
    provider.sleep(name.as_str()).await?;
    first.0.destroy().await?;
    ensure!(!listed(&*provider, &name).await?, "it is still listed");
    let (second, name) = sandbox(&*fixture).await?;
    let woken = nap(&*provider, &name).await?;
    second.0.destroy().await?;
    ensure!(!listed(&*provider, &name).await?, "it is still listed");
    ensure_fails!(woken.exists("x").await, Destroyed);
    Ok(())
}

async fn neither_a_sleep_nor_a_wake_knows_a_sandbox_that_is_not_there(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (gone, name) = sandbox(&*fixture).await?;
    gone.0.destroy().await?;
    for key in [name.as_str(), gone.0.id().as_str()] {
        ensure_fails!(provider.sleep(key).await, NotFound | Destroyed);
        ensure_fails!(provider.wake(key).await.map(drop), NotFound | Destroyed);
    }
    Ok(())
}

/// A sandbox that sleeps when it is idle for so long.
async fn drowsy(
    fixture: &dyn Fixture,
    ttl_ms: Option<u64>,
    idle_ms: Option<u64>,
) -> Check<(Disposable, SandboxName)> {
    let (mut spec, name) = named(fixture);
    (spec.lifecycle.ttl_ms, spec.lifecycle.idle_timeout_ms) = (ttl_ms, idle_ms);
    spec.lifecycle.on_idle = IdleAction::Sleep;
    Ok((Disposable(Sandbox::create(&*fixture.provider(), spec).await?), name))
}

async fn an_idle_sandbox_that_is_to_sleep_sleeps_and_keeps_its_files(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (first, name) = drowsy(&*fixture, None, Some(500)).await?;
    first.0.write("note", "kept").await?;
    until("its sleep", async || sleeps(&*provider, &name).await).await?;
    let error = said(first.0.exists("note").await.map(drop))?;
    ensure!(says_that_it_sleeps(&error), "an operation ended with {error:?}");
    let woken = Sandbox::wake(&*provider, name.as_str()).await?;
    ensure_eq!(output(&woken, "sleep 1; cat note").await?, "kept");
    until("its second sleep", async || sleeps(&*provider, &name).await).await?;
    Ok(provider.remove(name.as_str()).await?)
}

async fn time_asleep_is_not_idle_time(fixture: Arc<dyn Fixture>) -> Check {
    let (mut spec, name) = named(&*fixture);
    spec.lifecycle.idle_timeout_ms = Some(1000);
    let provider = fixture.provider();
    let _first = Disposable(Sandbox::create(&*provider, spec).await?);
    provider.sleep(name.as_str()).await?;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    ensure!(sleeps(&*provider, &name).await?, "it does not sleep any more");
    let woken = Sandbox::wake(&*provider, name.as_str()).await?;
    ensure!(!woken.exists("x").await?, "there is a file");
    until("its removal", async || Ok(!listed(&*provider, &name).await?)).await
}

async fn a_ttl_passes_while_a_sandbox_sleeps(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (mut spec, name) = named(&*fixture);
    spec.lifecycle.ttl_ms = Some(1500);
    let first = Disposable(Sandbox::create(&*provider, spec).await?);
    provider.sleep(name.as_str()).await?;
    until("its removal", async || Ok(!listed(&*provider, &name).await?)).await?;
    ensure_fails!(provider.wake(name.as_str()).await.map(drop), NotFound | Destroyed);
    ensure_fails!(first.0.exists("x").await, Destroyed);
    Ok(())
}

async fn a_ttl_destroys_what_is_to_sleep_when_it_is_idle(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (first, name) = drowsy(&*fixture, Some(700), None).await?;
    until("its removal", async || Ok(!listed(&*provider, &name).await?)).await?;
    ensure_fails!(first.0.exists("x").await, Destroyed);
    Ok(())
}

async fn a_ttl_runs_on_after_a_wake(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (_first, name) = drowsy(&*fixture, Some(6_000), None).await?;
    let woken = nap(&*provider, &name).await?;
    until("its removal", async || Ok(!listed(&*provider, &name).await?)).await?;
    ensure_fails!(woken.exists("x").await, Destroyed);
    Ok(())
}

async fn of_many_who_wake_one_sandbox_at_once_all_get_the_same(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (_first, name) = sandbox(&*fixture).await?;
    provider.sleep(name.as_str()).await?;
    let wakes = (0..8).map(|_| Sandbox::wake(&*provider, name.as_str()));
    let woken = promptly("the wakes", futures_util::future::join_all(wakes)).await?;
    let woken: Vec<Sandbox> = woken.into_iter().collect::<Result<_, _>>()?;
    output(&woken[0], "echo one > /dev/shm/here").await?;
    for handle in &woken {
        ensure_eq!(output(handle, "cat /dev/shm/here").await?, "one");
    }
    Ok(woken[0].destroy().await?)
}

async fn sleeps_and_wakes_at_once_leave_one_sandbox_that_works(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (first, name) = sandbox(&*fixture).await?;
    first.0.write("note", "kept").await?;
    let (sleeper, waker) = (provider.clone(), provider.clone());
    let (asleep, awake) = (name.clone(), name.clone());
    let sleeping = tokio::spawn(async move {
        for _ in 0..10 {
            sleeper.sleep(asleep.as_str()).await?;
        }
        Ok::<(), Error>(())
    });
    for _ in 0..10 {
        Sandbox::wake(&*waker, awake.as_str()).await?;
    }
    sleeping.await.map_err(|error| super::check::Failure::Broken(error.to_string()))??;
    let woken = Sandbox::wake(&*provider, name.as_str()).await?;
    ensure_eq!(woken.read_text("note").await?, "kept");
    Ok(woken.destroy().await?)
}

async fn get_or_create_wakes_what_sleeps_and_makes_nothing(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (spec, name) = named(&*fixture);
    let first = Disposable(Sandbox::create(&*provider, spec.clone()).await?);
    first.0.write("note", "kept").await?;
    provider.sleep(name.as_str()).await?;
    let (found, made) = Sandbox::get_or_create(&*provider, spec).await?;
    ensure!(!made && found.id() == first.0.id(), "another one was made");
    ensure_eq!(found.read_text("note").await?, "kept");
    Ok(found.destroy().await?)
}
