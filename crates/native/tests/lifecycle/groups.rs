//! Control groups of sandboxes. They are made and removed with the sandbox, whichever process is
//! killed at any moment.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{ErrorKind, ExecOptions, Limits, Sandbox, SandboxProvider, SandboxSpec, WorkspaceSpec};
use eyot_native::{CgroupController, NativeProvider};
use libtest_mimic::{Completion, Failed, Trial};

use crate::ensure;
use crate::maker::Maker;
use crate::state::State;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_sandbox_has_groups_with_its_limits_and_they_go_with_it", limits_are_set),
        trial("fifty_sandboxes_leave_no_group_behind", fifty),
        trial("groups_of_a_maker_that_was_killed_go_with_the_next_sweep", killed_maker),
        trial("a_sandbox_that_is_frozen_stands_still_and_goes_on_when_it_is_thawed", frozen),
        trial("a_sandbox_that_is_frozen_can_be_destroyed", destroyed_while_frozen),
        trial(
            "a_sandbox_that_sleeps_has_no_groups_and_its_limits_hold_again_after_a_wake",
            limits_after_a_wake,
        ),
        trial("groups_of_an_idle_sandbox_that_went_to_sleep_go_with_the_next_sweep", idle_groups),
    ]
}

/// Makes a trial that is ignored on hosts without control groups.
fn trial<F>(name: &str, case: fn(Arc<NativeProvider>, State) -> F) -> Trial
where
    F: Future<Output = Result<(), Failed>> + 'static,
{
    Trial::ignorable_test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async {
            let state = State::new()?;
            let provider = state.provider()?;
            let support = provider.cgroup_support().await?;
            if let (true, Some(cause)) = (support.controllers.is_empty(), support.cause) {
                return Ok(Completion::ignored_with(cause.to_string()));
            }
            tokio::time::timeout(crate::harness::HANG, case(provider, state)).await??;
            Ok(Completion::Completed)
        })
    })
}

/// Lists the directories of these sandboxes' groups.
fn groups_of(ids: &[String]) -> Vec<PathBuf> {
    let mut pending = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if ids.iter().any(|id| name.ends_with(id.as_str())) {
                    found.push(entry.path())
                } else {
                    pending.push(entry.path())
                }
            }
        }
    }
    found
}

fn ensure_no_groups(ids: &[String]) -> Result<(), Failed> {
    let left = groups_of(ids);
    ensure(left.is_empty(), format!("groups are left: {left:?}"))
}

fn holds(groups: &[PathBuf], files: [&str; 2], value: &str) -> bool {
    let read = |group: &Path, file: &str| fs::read_to_string(group.join(file)).unwrap_or_default();
    groups.iter().any(|group| files.iter().any(|file| read(group, file).trim() == value))
}

async fn limits_are_set(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let support = provider.cgroup_support().await?;
    let limits = Limits { memory_mib: Some(100), cpus: Some(0.5), pids: Some(50), ..Limits::default() };
    let sandbox = Sandbox::create(&*provider, SandboxSpec { limits, ..SandboxSpec::default() }).await?;
    let groups = groups_of(&[sandbox.id().to_string()]);
    if support.has(CgroupController::Memory) {
        let is_set = holds(&groups, ["memory.max", "memory.limit_in_bytes"], "104857600");
        ensure(is_set, format!("no memory limit in {groups:?}"))?;
    }
    if support.has(CgroupController::Cpu) {
        let is_set = holds(&groups, ["cpu.max", ""], "50000 100000");
        ensure(
            is_set || holds(&groups, ["cpu.cfs_quota_us", ""], "50000"),
            format!("no quota in {groups:?}"),
        )?;
    }
    let processors = sandbox.exec("nproc", ExecOptions::default()).await?;
    ensure(processors.stdout_text() == "1\n", format!("{processors:?}"))?;
    sandbox.destroy().await?;
    ensure_no_groups(&[sandbox.id().to_string()])?;
    state.assert_empty()
}

async fn fifty(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let mut ids = Vec::new();
    for round in 0..50 {
        // With a workspace that outlives it, its record is written at another time.
        let workspace = match round % 2 {
            0 => WorkspaceSpec::Ephemeral,
            _ => WorkspaceSpec::Persistent { id: "kept".into(), destroy_on_session_destroy: false },
        };
        let sandbox =
            Sandbox::create(&*provider, SandboxSpec { workspace, ..SandboxSpec::default() }).await?;
        ids.push(sandbox.id().to_string());
        ensure(!groups_of(&ids[ids.len() - 1..]).is_empty(), "it has no group")?;
        sandbox.exec("sleep 1000 & echo up", ExecOptions::default()).await?;
        sandbox.destroy().await?;
    }
    ensure_no_groups(&ids)?;
    state.assert_empty()
}

async fn killed_maker(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let mut maker = Maker::start(&state.path(), "many", 60)?;
    for _ in 0..20 {
        maker.line().await?;
    }
    maker.kill_9().await?;
    let ids: Vec<String> = fs::read_dir(state.path().join("sandboxes"))?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<_>>()?;
    ensure(!groups_of(&ids).is_empty(), "there were no groups")?;
    for info in provider.list().await? {
        provider.remove(info.id.as_str()).await?;
    }
    ensure(provider.list().await?.is_empty(), "sandboxes are left")?;
    ensure_no_groups(&ids)?;
    state.assert_empty()
}

const COUNTER: &str = "i=0; while :; do i=$((i + 1)); echo $i > /workspace/count; done";

async fn frozen(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let id = sandbox.id().to_string();
    sandbox.start(COUNTER, eyot::StartOptions::default()).await?;
    provider.freeze(&id, true).await?;
    let counted = || -> Result<Vec<u64>, Failed> {
        // A frozen process takes no processor time; a read of its file would have to ask its guest.
        let groups = groups_of(std::slice::from_ref(&id));
        let stats = groups.iter().filter_map(|group| fs::read_to_string(group.join("cpu.stat")).ok());
        Ok(stats.filter_map(|text| text.lines().next()?.split(' ').nth(1)?.parse().ok()).collect())
    };
    let before = counted()?;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    ensure(counted()? == before, "it went on")?;
    provider.freeze(&id, false).await?;
    let echoed = sandbox.exec("echo thawed", ExecOptions::default()).await?;
    ensure(echoed.stdout_text() == "thawed\n", format!("{echoed:?}"))?;
    sandbox.destroy().await?;
    let gone = provider.freeze(&id, true).await;
    ensure(
        gone.is_err_and(|error| error.kind() == ErrorKind::NotFound),
        "a sandbox that is gone was frozen",
    )?;
    ensure_no_groups(&[id])?;
    state.assert_empty()
}

async fn destroyed_while_frozen(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    sandbox.start(COUNTER, eyot::StartOptions::default()).await?;
    provider.freeze(sandbox.id().as_str(), true).await?;
    sandbox.destroy().await?;
    ensure_no_groups(&[sandbox.id().to_string()])?;
    state.assert_empty()
}

async fn limits_after_a_wake(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let support = provider.cgroup_support().await?;
    let limits = Limits { memory_mib: Some(64), pids: Some(50), ..Limits::default() };
    let first = Sandbox::create(&*provider, SandboxSpec { limits, ..SandboxSpec::default() }).await?;
    let id = first.id().to_string();
    // Frozen, as it may be.
    provider.freeze(&id, true).await?;
    provider.sleep(&id).await?;
    ensure_no_groups(std::slice::from_ref(&id))?;
    let sandbox = Sandbox::wake(&*provider, &id).await?;
    ensure(sandbox.isolation() == first.isolation(), format!("{:?}", sandbox.isolation()))?;
    let groups = groups_of(std::slice::from_ref(&id));
    if support.has(CgroupController::Memory) {
        let is_set = holds(&groups, ["memory.max", "memory.limit_in_bytes"], "67108864");
        ensure(is_set, format!("no memory limit in {groups:?}"))?;
        let bomb = "python3 -c 'x = bytearray(200 << 20)'";
        let ended = sandbox.exec(bomb, ExecOptions::default()).await?;
        ensure(ended.outcome == eyot::Outcome::OutOfMemory, format!("{ended:?}"))?;
    }
    if support.has(CgroupController::Pids) {
        let groups = groups_of(std::slice::from_ref(&id));
        ensure(groups.iter().any(|group| group.join("pids.max").exists()), "no limit of processes")?;
    }
    sandbox.destroy().await?;
    ensure_no_groups(&[id])?;
    state.assert_empty()
}

async fn idle_groups(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let mut maker = Maker::start(&state.path(), "drowsy", 500)?;
    let id = maker.line().await?;
    maker.end().await?;
    crate::state::wait_for_end(state.guest_of(&id)?).await?;
    ensure(!groups_of(std::slice::from_ref(&id)).is_empty(), "there were no groups")?;
    provider.list().await?;
    ensure_no_groups(std::slice::from_ref(&id))?;
    provider.remove(&id).await?;
    state.assert_empty()
}
