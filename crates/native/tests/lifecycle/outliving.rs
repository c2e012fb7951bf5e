//! A sandbox and its maker.

use eyot::{ErrorKind, ExecOptions, Sandbox, SandboxProvider};
use libtest_mimic::{Failed, Trial};

use crate::maker::Maker;
use crate::state::{State, wait_for_end};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_sandbox_made_by_one_process_is_used_by_the_next", used_by_the_next),
        trial("kill_9_of_the_owner_in_mid_command_leaves_a_sandbox_that_works", owner_killed),
        trial("a_launcher_that_was_killed_is_followed_by_a_new_one", launcher_killed),
        trial("the_root_is_volatile_so_that_ending_a_sandbox_syncs_no_disk", volatile),
        trial("a_handle_on_a_sandbox_that_another_process_destroyed_says_destroyed", destroyed_elsewhere),
    ]
}

async fn used_by_the_next() -> Result<(), Failed> {
    let state = State::new()?;
    let mut maker = Maker::start(&state.path(), "make", 0)?;
    let id = maker.line().await?;
    maker.end().await?;

    let provider = state.provider()?;
    let listed = provider.list().await?;
    ensure(listed.len() == 1 && listed[0].id.as_str() == id, format!("listed: {listed:?}"))?;
    let sandbox = Sandbox::open(&*provider, &id).await?;
    let result = sandbox.exec("echo hi", ExecOptions::default()).await?;
    ensure(result.stdout_text() == "hi\n", format!("{result:?}"))?;
    sandbox.destroy().await?;
    state.assert_empty()
}

async fn owner_killed() -> Result<(), Failed> {
    let state = State::new()?;
    let mut maker = Maker::start(&state.path(), "exec", 0)?;
    let id = maker.line().await?;
    ensure(maker.line().await? == "up", "the command did not begin")?;
    maker.kill_9().await?;

    let provider = state.provider()?;
    let sandbox = Sandbox::open(&*provider, &id).await?;
    ensure(sandbox.read_text("marker").await? == "made by another process", "the file is not there")?;
    // The owner's command died with it; what it had started lives on. Signal 0 asks without waiting for any clock.
    let wait = "while pgrep -x -f 'sleep 2000' >/dev/null; do :; done; pgrep -c -x -f 'sleep 1000'";
    let result =
        sandbox.exec(wait, ExecOptions { timeout_ms: Some(60_000), ..ExecOptions::default() }).await?;
    ensure(result.stdout_text() == "1\n", format!("{result:?}"))?;
    let guest = state.guest_of(&id)?;
    provider.remove(&id).await?;
    wait_for_end(guest).await?;
    state.assert_empty()
}

async fn launcher_killed() -> Result<(), Failed> {
    let state = State::new()?;
    let mut maker = Maker::start(&state.path(), "launchers", 0)?;
    let mut made = Vec::new();
    while let Some(id) = maker.line_or_end().await? {
        made.push(id);
    }
    maker.end().await?;

    let provider = state.provider()?;
    let listed: Vec<String> = provider.list().await?.iter().map(|info| info.id.to_string()).collect();
    for id in &made {
        ensure(listed.contains(id), format!("{id} is not among {listed:?}"))?;
    }
    ensure(listed.len() == made.len(), format!("made {made:?}, there are {listed:?}"))?;
    for id in made {
        let sandbox = Sandbox::open(&*provider, &id).await?;
        let result = sandbox.exec("echo hi", ExecOptions::default()).await?;
        ensure(result.stdout_text() == "hi\n", format!("{result:?}"))?;
        sandbox.destroy().await?;
    }
    state.assert_empty()
}

/// Checks that the overlay is mounted `volatile`. Otherwise the end of every sandbox would write
/// the whole file system under the state folder to the disk.
async fn volatile() -> Result<(), Failed> {
    let state = State::new()?;
    let sandbox = Sandbox::create(&*state.provider()?, eyot::SandboxSpec::default()).await?;
    let mounts = sandbox.read_text("/proc/self/mounts").await?;
    let root = mounts.lines().find(|line| line.split(' ').nth(1) == Some("/")).unwrap_or_default().to_owned();
    sandbox.destroy().await?;
    let options = root.split(' ').nth(3).unwrap_or_default();
    ensure(options.split(',').any(|option| option == "volatile" || option == "fsync=volatile"), root.clone())
}

async fn destroyed_elsewhere() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, eyot::SandboxSpec::default()).await?;
    let pending = {
        let sandbox = sandbox.clone();
        tokio::spawn(async move { sandbox.exec("sleep 1000", ExecOptions::default()).await })
    };
    let elsewhere = state.provider()?;
    elsewhere.remove(sandbox.id().as_str()).await?;
    let error = pending.await?.err().ok_or("a command of a destroyed sandbox succeeded")?;
    ensure(error.kind() == ErrorKind::Destroyed, format!("pending: {error}"))?;
    let error = sandbox.read("x").await.err().ok_or("a read of a destroyed sandbox succeeded")?;
    ensure(error.kind() == ErrorKind::Destroyed, format!("later: {error}"))?;
    state.assert_empty()
}
