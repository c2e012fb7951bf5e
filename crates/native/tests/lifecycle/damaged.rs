//! Sandboxes whose record a power loss has damaged, guests that were killed from outside, and destroys that race with
//! everything else.

use std::fs;
use std::path::Path;

use eyot::{Error, ErrorKind, ExecOptions, Sandbox, SandboxId, SandboxProvider, SandboxSpec, SandboxStatus};
use libtest_mimic::{Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};

use crate::state::{State, wait_for_end};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_sandbox_whose_record_is_damaged_is_listed_so_and_can_only_be_removed", damaged),
        trial("a_sandbox_whose_record_is_missing_is_listed_as_damaged_and_can_be_removed", missing),
        trial("what_a_maker_left_without_a_record_is_swept", left_by_a_maker),
        trial("a_guest_that_was_killed_leaves_a_dead_sandbox_that_can_be_woken", killed),
        trial("a_destroy_that_races_with_sleeps_wakes_and_commands_leaves_nothing", races),
    ]
}

fn directory(state: &State, sandbox: &Sandbox) -> std::path::PathBuf {
    state.path().join("sandboxes").join(sandbox.id().as_str())
}

async fn ensure_only_removable(state: &State, sandbox: &Sandbox) -> Result<(), Failed> {
    let (provider, name) = (state.provider()?, sandbox.name().as_str());
    // Each look sweeps; what is damaged stays.
    for _ in 0..2 {
        let listed = provider.list().await?;
        let facts: Vec<_> =
            listed.iter().map(|info| (info.id.clone(), info.name.clone(), info.status)).collect();
        let expected = [(sandbox.id().clone(), sandbox.name().clone(), SandboxStatus::Damaged)];
        ensure(facts == expected, format!("{facts:?}"))?;
    }
    ensure(provider.info(name).await?.status == SandboxStatus::Damaged, "one look tells something else")?;
    let refused =
        [provider.open(name).await.err(), provider.wake(name).await.err(), provider.sleep(name).await.err()];
    for error in refused {
        let error = error.ok_or("a damaged sandbox was used")?;
        let says_so = error.kind() == ErrorKind::Conflict && error.to_string().contains("is damaged");
        ensure(says_so && error.hint().is_some_and(|hint| hint.contains("eyot rm")), format!("{error:?}"))?;
    }
    provider.remove(name).await?;
    ensure(provider.list().await?.is_empty(), "it is still listed")?;
    state.assert_empty()
}

async fn damaged() -> Result<(), Failed> {
    for torn in [&b""[..], b"{\"info\":", b"\0\0\0\0"] {
        let state = State::new()?;
        let provider = state.provider()?;
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let guest = state.guest_of(sandbox.id().as_str())?;
        fs::write(directory(&state, &sandbox).join("sandbox.json"), torn)?;
        ensure_only_removable(&state, &sandbox).await?;
        wait_for_end(guest).await?;
    }
    Ok(())
}

async fn missing() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    provider.sleep(sandbox.id().as_str()).await?;
    fs::remove_file(directory(&state, &sandbox).join("sandbox.json"))?;
    ensure_only_removable(&state, &sandbox).await
}

async fn left_by_a_maker() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let left = state.path().join("sandboxes").join(SandboxId::generate().as_str());
    fs::create_dir_all(left.join("upper/deep"))?;
    ensure(provider.list().await?.is_empty(), "it is listed")?;
    ensure(!Path::new(&left).exists(), "it was not swept")?;
    state.assert_empty()
}

fn kill_guest(state: &State, sandbox: &Sandbox) -> Result<i32, Failed> {
    let guest = state.guest_of(sandbox.id().as_str())?;
    kill_process(Pid::from_raw(guest).ok_or("no number")?, Signal::KILL)?;
    Ok(guest)
}

fn ensure_dead(error: Option<Error>, what: &str) -> Result<(), Failed> {
    let error = error.ok_or_else(|| format!("{what} succeeded"))?;
    let says_so = error.kind() == ErrorKind::Unavailable && error.is_dead() && error.is_sleeping();
    let hint = error
        .hint()
        .is_some_and(|hint| hint.contains("its files are kept, and what ran in it has ended; wake it"));
    ensure(says_so && hint, format!("{what}: {error:?}"))
}

async fn killed() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    // A deadline that has not come yet has ended nothing.
    let mut mortal = SandboxSpec::default();
    (mortal.lifecycle.ttl_ms, mortal.lifecycle.idle_timeout_ms) = (Some(600_000), Some(600_000));
    for spec in [SandboxSpec::default(), mortal] {
        let sandbox = Sandbox::create(&*provider, spec).await?;
        let id = sandbox.id().as_str();
        sandbox.write("marker", "kept").await?;
        let started = sandbox.clone();
        let running =
            tokio::spawn(
                async move { started.exec("touch begun; sleep 1000", ExecOptions::default()).await },
            );
        while !sandbox.exists("begun").await? {
            tokio::task::yield_now().await;
        }
        wait_for_end(kill_guest(&state, &sandbox)?).await?;
        ensure_dead(running.await?.err(), "the command")?;
        ensure_dead(sandbox.read("marker").await.err(), "a read")?;
        ensure_dead(provider.open(id).await.err(), "an open")?;
        let listed = provider.list().await?;
        ensure(
            listed.len() == 1 && listed[0].status == SandboxStatus::Dead,
            format!("{:?}", listed[0].status),
        )?;
        let woken = Sandbox::wake(&*provider, id).await?;
        ensure(woken.read_text("marker").await? == "kept", "the file is not there")?;
        woken.destroy().await?;
    }
    state.assert_empty()
}

async fn races() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    for round in 0..30 {
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let id = sandbox.id().as_str();
        let command = async {
            sandbox.exec("while :; do echo x > f$RANDOM; done", ExecOptions::default()).await.map(drop)
        };
        let sleep_and_wake = async {
            provider.sleep(id).await?;
            provider.wake(id).await.map(drop)
        };
        let elsewhere = state.provider()?;
        let removes = async {
            // From the beginning of the sleep to the end of the wake.
            tokio::time::sleep(std::time::Duration::from_millis(round)).await;
            let both = tokio::join!(provider.remove(id), elsewhere.remove(id));
            both.0.and(both.1)
        };
        let (ran, moved, removed) = tokio::join!(command, sleep_and_wake, removes);
        for (what, ended) in [("command", ran), ("sleep and wake", moved), ("remove", removed)] {
            let Err(error) = ended else { continue };
            let fine =
                matches!(error.kind(), ErrorKind::Destroyed | ErrorKind::NotFound) || error.is_sleeping();
            ensure(fine, format!("round {round}: {what}: {error:?}"))?;
        }
        state.assert_empty()?;
    }
    Ok(())
}
