//! The end of a sandbox: by destroy, once and for every handle; by its deadlines; and never by a dropped handle.

use std::sync::Arc;
use std::time::Duration;

use super::Fixture;
use super::check::{
    Check, Disposable, cases, ensure, ensure_eq, ensure_fails, is_gone, output, promptly, sh, until,
    with_spec,
};
use super::create::{listed, named, nothing_left};
use crate::error::{Error, ErrorKind};
use crate::exec::{ExecOptions, Outcome};
use crate::files::{ByteRange, CreateDirOptions, RemoveOptions, TarInOptions};
use crate::now::now_ms;
use crate::process::ProcessId;
use crate::sandbox::{Sandbox, StartOptions};
use crate::spec::{Lifecycle, SandboxName};

cases! {
    every_operation_on_a_destroyed_sandbox_is_refused_as_destroyed(fixture) needs [];
    a_destroyed_sandbox_is_noticed_before_a_wrong_argument(fixture) needs [];
    destroying_twice_is_fine_at_once_or_one_after_the_other(fixture) needs [];
    a_destroyed_sandbox_is_gone_and_its_name_is_free(fixture) needs [];
    kept_handles_of_destroyed_sandboxes_hold_up_no_create(fixture) needs [];
    another_handle_notices_that_its_sandbox_was_destroyed(fixture) needs [Shell];
    a_destroy_settles_the_commands_that_run(fixture) needs [Shell];
    a_provider_removes_a_sandbox_by_its_name(fixture) needs [];
    dropping_the_last_handle_destroys_nothing(fixture) needs [Shell];
    a_ttl_destroys_a_sandbox_even_while_it_works(fixture) needs [Shell, Deadlines];
    a_ttl_is_not_early(fixture) needs [Shell, Deadlines];
    deadlines_can_be_changed_while_a_sandbox_lives(fixture) needs [Shell, ChangeDeadlines];
    a_changed_idle_timeout_counts_from_the_change(fixture) needs [ChangeDeadlines];
    an_idle_timeout_destroys_a_sandbox_that_nobody_uses(fixture) needs [Deadlines];
    an_idle_timeout_does_not_count_while_the_sandbox_is_used(fixture) needs [Shell, Deadlines];
    a_started_process_does_not_keep_its_sandbox_from_being_idle(fixture) needs [Shell, Deadlines, Processes];
    deadlines_that_are_switched_off_destroy_nothing(fixture) needs [Shell, Deadlines];
}

/// Returns what every kind of operation says on a sandbox, by name.
async fn every_operation(sandbox: &Sandbox) -> Vec<(&'static str, Option<Error>)> {
    let empty = || futures_util::StreamExt::boxed(futures_util::stream::empty());
    let (workspace, process) = (sandbox.workspace(), ProcessId(1));
    vec![
        ("exec", sh(sandbox, "true").await.err()),
        ("exec_stream", sandbox.exec_stream("true", ExecOptions::default()).await.err()),
        ("read", sandbox.read("x").await.err()),
        ("read_stream", sandbox.read_stream("x", ByteRange::default()).await.err()),
        ("write", sandbox.write("x", "x").await.err()),
        ("stat", sandbox.stat("x").await.err()),
        ("list", sandbox.list(".").await.err()),
        ("exists", sandbox.exists("x").await.err()),
        ("create_dir", sandbox.create_dir("x", CreateDirOptions::default()).await.err()),
        (
            "remove",
            sandbox.remove("x", RemoveOptions { force: true, ..RemoveOptions::default() }).await.err(),
        ),
        ("rename", sandbox.rename("x", "y").await.err()),
        ("tar_out", sandbox.tar_out(".").await.err()),
        ("tar_in", sandbox.tar_in(".", empty(), TarInOptions::default()).await.err()),
        ("dial", sandbox.dial(80).await.err()),
        ("usage", sandbox.usage().await.err()),
        ("start", sandbox.start("true", StartOptions::default()).await.err()),
        ("processes", sandbox.processes().await.err()),
        ("wait", sandbox.wait(process).await.err()),
        ("kill", sandbox.kill(process, None).await.err()),
        ("workspace.exists", workspace.exists("x").await.err()),
        ("workspace.list_files", workspace.list_files(".").await.err()),
        ("workspace.read_file", workspace.read_file("x").await.err()),
        ("workspace.write_file", workspace.write_file("x", "x").await.err()),
    ]
}

async fn every_operation_on_a_destroyed_sandbox_is_refused_as_destroyed(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = Disposable(Sandbox::create(&*fixture.provider(), fixture.spec()).await?);
    let clone = sandbox.0.clone();
    sandbox.0.destroy().await?;
    for handle in [&sandbox.0, &clone] {
        for (operation, error) in every_operation(handle).await {
            let kind = error.as_ref().map(Error::kind);
            ensure!(kind == Some(ErrorKind::Destroyed), "{operation} ended with {error:?}");
        }
    }
    Ok(())
}

async fn a_destroyed_sandbox_is_noticed_before_a_wrong_argument(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = Sandbox::create(&*fixture.provider(), fixture.spec()).await?;
    sandbox.destroy().await?;
    ensure_fails!(sandbox.read("").await, Destroyed);
    ensure_fails!(sh(&sandbox, "").await, Destroyed);
    ensure_fails!(sandbox.workspace().read_file("/etc/passwd").await, Destroyed);
    ensure_fails!(sandbox.dial(0).await.map(drop), Destroyed);
    Ok(())
}

async fn destroying_twice_is_fine_at_once_or_one_after_the_other(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let sandbox = Sandbox::create(&*provider, fixture.spec()).await?;
    let other = Sandbox::open(&*provider, sandbox.id().as_str()).await?;
    let (first, second, third) = tokio::join!(sandbox.destroy(), other.destroy(), sandbox.destroy());
    first.and(second).and(third)?;
    sandbox.destroy().await?;
    Ok(other.destroy().await?)
}

async fn a_destroyed_sandbox_is_gone_and_its_name_is_free(fixture: Arc<dyn Fixture>) -> Check {
    let (spec, name) = named(&*fixture);
    let provider = fixture.provider();
    let first = Sandbox::create(&*provider, spec.clone()).await?;
    first.write("note", "x").await?;
    first.destroy().await?;
    nothing_left(&*provider, &name).await?;
    ensure_fails!(Sandbox::open(&*provider, first.id().as_str()).await, NotFound | Destroyed);
    with_spec(&*fixture, spec, async |second: Sandbox| {
        ensure!(second.id() != first.id(), "the id was used again");
        ensure!(!second.exists("note").await?, "a file came back");
        ensure_fails!(first.exists("note").await, Destroyed);
        first.destroy().await?;
        ensure!(listed(&*provider, &name).await?, "destroying the first once more destroyed the second");
        Ok(())
    })
    .await
}

async fn kept_handles_of_destroyed_sandboxes_hold_up_no_create(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let (mut kept, mut living) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let destroyed = promptly("a create", Sandbox::create(&*provider, fixture.spec())).await??;
        destroyed.destroy().await?;
        kept.push(destroyed);
        living.push(Disposable(promptly("a create", Sandbox::create(&*provider, fixture.spec())).await??));
    }
    for sandbox in &living {
        sandbox.0.write("note", "alive").await?;
        sandbox.0.destroy().await?;
    }
    ensure_fails!(kept[0].exists("note").await, Destroyed);
    Ok(())
}

async fn another_handle_notices_that_its_sandbox_was_destroyed(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let sandbox = Sandbox::create(&*provider, fixture.spec()).await?;
    let other = Sandbox::open(&*provider, sandbox.id().as_str()).await?;
    output(&other, "true").await?;
    sandbox.destroy().await?;
    for (operation, error) in promptly("every operation", every_operation(&other)).await? {
        let gone =
            error.as_ref().is_some_and(|error| is_gone(error) || error.kind() == ErrorKind::Unsupported);
        ensure!(gone, "{operation} ended with {error:?}");
    }
    Ok(other.destroy().await?)
}

async fn a_destroy_settles_the_commands_that_run(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = Disposable(Sandbox::create(&*fixture.provider(), fixture.spec()).await?);
    let handle = sandbox.0.clone();
    let running = tokio::spawn(async move { sh(&handle, "touch started; sleep 86400").await });
    until("its start", async || Ok(sandbox.0.exists("started").await?)).await?;
    promptly("the destroy", sandbox.0.destroy()).await??;
    let settled = promptly("the command", running).await?;
    match settled.map_err(|error| super::check::Failure::Broken(error.to_string()))? {
        Ok(result) => ensure!(!result.success(), "it came to {result:?}"),
        Err(error) => ensure!(is_gone(&error), "it failed with {}: {error}", error.kind()),
    }
    Ok(())
}

async fn a_provider_removes_a_sandbox_by_its_name(fixture: Arc<dyn Fixture>) -> Check {
    let (spec, name) = named(&*fixture);
    let provider = fixture.provider();
    let sandbox = Disposable(Sandbox::create(&*provider, spec).await?);
    provider.remove(name.as_str()).await?;
    nothing_left(&*provider, &name).await?;
    let error = promptly("an operation", sandbox.0.exists("x")).await?.err();
    ensure!(error.as_ref().is_some_and(is_gone), "an operation ended with {error:?}");
    ensure_fails!(provider.remove(name.as_str()).await, NotFound | Destroyed);
    Ok(sandbox.0.destroy().await?)
}

async fn dropping_the_last_handle_destroys_nothing(fixture: Arc<dyn Fixture>) -> Check {
    let (spec, name) = named(&*fixture);
    let provider = fixture.provider();
    let sandbox = Sandbox::create(&*provider, spec).await?;
    output(&sandbox, "echo kept > note").await?;
    drop(sandbox);
    let again = Disposable(Sandbox::open(&*provider, name.as_str()).await?);
    ensure_eq!(output(&again.0, "cat note").await?, "kept");
    Ok(again.0.destroy().await?)
}

/// Makes a sandbox with these deadlines.
async fn mortal(
    fixture: &dyn Fixture,
    ttl_ms: Option<u64>,
    idle_timeout_ms: Option<u64>,
) -> Check<(Disposable, SandboxName)> {
    let (mut spec, name) = named(fixture);
    (spec.lifecycle.ttl_ms, spec.lifecycle.idle_timeout_ms) = (ttl_ms, idle_timeout_ms);
    Ok((Disposable(Sandbox::create(&*fixture.provider(), spec).await?), name))
}

async fn a_ttl_destroys_a_sandbox_even_while_it_works(fixture: Arc<dyn Fixture>) -> Check {
    let (sandbox, name) = mortal(&*fixture, Some(700), None).await?;
    let running = promptly("the command", sh(&sandbox.0, "sleep 86400")).await?;
    match running {
        Ok(result) => ensure!(matches!(result.outcome, Outcome::Signaled(_)), "it came to {result:?}"),
        Err(error) => ensure!(is_gone(&error), "it failed with {}: {error}", error.kind()),
    }
    let provider = fixture.provider();
    until("its removal", async || Ok(!listed(&*provider, &name).await?)).await?;
    ensure_fails!(provider.open(name.as_str()).await.map(drop), NotFound | Destroyed);
    let error = sandbox.0.exists("x").await.err();
    ensure!(error.as_ref().is_some_and(is_gone), "an operation ended with {error:?}");
    Ok(sandbox.0.destroy().await?)
}

async fn a_ttl_is_not_early(fixture: Arc<dyn Fixture>) -> Check {
    let made = std::time::Instant::now();
    let (sandbox, _) = mortal(&*fixture, Some(1500), None).await?;
    while sandbox.0.exists("x").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
        ensure!(made.elapsed() < Duration::from_secs(15), "it does not die");
    }
    ensure!(made.elapsed() >= Duration::from_millis(1500), "it died after {:?}", made.elapsed());
    Ok(sandbox.0.destroy().await?)
}

async fn deadlines_can_be_changed_while_a_sandbox_lives(fixture: Arc<dyn Fixture>) -> Check {
    let (sandbox, name) = mortal(&*fixture, Some(1500), None).await?;
    let provider = fixture.provider();
    let none = Lifecycle::default();
    for wrong in [0, u64::MAX] {
        let lifecycle = Lifecycle { ttl_ms: Some(wrong), ..none.clone() };
        ensure_fails!(sandbox.0.set_lifecycle(&lifecycle).await, Invalid);
    }
    sandbox.0.set_lifecycle(&none).await?;
    let opened = Sandbox::open(&*provider, name.as_str()).await?;
    ensure_eq!(opened.info().spec.lifecycle, none);
    ensure_eq!(output(&sandbox.0, "sleep 2; echo lived").await?, "lived");
    let over = Lifecycle { ttl_ms: Some(1), ..none.clone() };
    ensure_fails!(opened.set_lifecycle(&over).await, Invalid);
    let lived = u64::try_from(now_ms() - opened.info().created_ms).unwrap_or_default();
    opened.set_lifecycle(&Lifecycle { ttl_ms: Some(lived + 1000), ..none }).await?;
    until("its removal", async || Ok(!listed(&*provider, &name).await?)).await?;
    let error = sandbox.0.exists("x").await.err();
    ensure!(error.as_ref().is_some_and(is_gone), "an operation ended with {error:?}");
    Ok(sandbox.0.destroy().await?)
}

async fn a_changed_idle_timeout_counts_from_the_change(fixture: Arc<dyn Fixture>) -> Check {
    let (sandbox, name) = mortal(&*fixture, None, Some(86_400_000)).await?;
    let provider = fixture.provider();
    let idle = Lifecycle { idle_timeout_ms: Some(500), ..Lifecycle::default() };
    sandbox.0.set_lifecycle(&idle).await?;
    until("its removal", async || Ok(!listed(&*provider, &name).await?)).await?;
    Ok(sandbox.0.destroy().await?)
}

async fn an_idle_timeout_destroys_a_sandbox_that_nobody_uses(fixture: Arc<dyn Fixture>) -> Check {
    let (sandbox, name) = mortal(&*fixture, None, Some(500)).await?;
    let provider = fixture.provider();
    // Neither the list nor an open handle is a use.
    until("its removal", async || Ok(!listed(&*provider, &name).await?)).await?;
    let error = sandbox.0.exists("x").await.err();
    ensure!(error.as_ref().is_some_and(is_gone), "an operation ended with {error:?}");
    Ok(sandbox.0.destroy().await?)
}

async fn an_idle_timeout_does_not_count_while_the_sandbox_is_used(fixture: Arc<dyn Fixture>) -> Check {
    let (sandbox, name) = mortal(&*fixture, None, Some(1000)).await?;
    ensure_eq!(output(&sandbox.0, "sleep 2.5; echo lived").await?, "lived");
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        sandbox.0.exists("x").await?;
    }
    let provider = fixture.provider();
    until("its removal", async || Ok(!listed(&*provider, &name).await?)).await
}

async fn a_started_process_does_not_keep_its_sandbox_from_being_idle(fixture: Arc<dyn Fixture>) -> Check {
    let (sandbox, name) = mortal(&*fixture, None, Some(500)).await?;
    // It even writes all the time: a use is what comes from outside.
    sandbox.0.start("while :; do echo on; sleep 0.1; done", StartOptions::default()).await?;
    let provider = fixture.provider();
    until("its removal", async || Ok(!listed(&*provider, &name).await?)).await
}

async fn deadlines_that_are_switched_off_destroy_nothing(fixture: Arc<dyn Fixture>) -> Check {
    let mut spec = fixture.spec();
    (spec.lifecycle.ttl_ms, spec.lifecycle.idle_timeout_ms) = (Some(200), Some(100));
    spec.lifecycle.auto_destroy = false;
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        tokio::time::sleep(Duration::from_millis(800)).await;
        ensure_eq!(output(&sandbox, "echo lived").await?, "lived");
        Ok(())
    })
    .await
}
