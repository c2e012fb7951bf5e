//! Lists of sandboxes: what runs is told from outside, without its help.

use std::fs;

use eyot::{ExecOptions, Sandbox, SandboxProvider, SandboxSpec, SandboxStatus};
use libtest_mimic::{Failed, Trial};

use crate::state::{State, wait_for_end};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_list_wakes_no_guest", a_list_wakes_no_guest),
        trial("a_list_tells_running_asleep_and_dead_apart", tells_apart),
        trial("a_list_counts_what_control_groups_count", counts),
    ]
}

/// The number of lists of which one must leave the guest alone: it may have work of its own.
const LISTS: usize = 50;

/// Counts how often the threads of a process were put on a processor.
fn wakes_of(pid: i32) -> Result<u64, Failed> {
    let mut wakes = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
        wakes += switches.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum::<u64>();
    }
    Ok(wakes)
}

async fn a_list_wakes_no_guest() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let guest = state.guest_of(sandbox.id().as_str())?;
    let mut left_alone = false;
    for _ in 0..LISTS {
        let before = wakes_of(guest)?;
        let listed = provider.list_with_usage().await?;
        ensure(listed[0].0.status == SandboxStatus::Running, "it does not run")?;
        left_alone |= wakes_of(guest)? == before;
    }
    ensure(left_alone, "each list woke the guest")?;
    Ok(sandbox.destroy().await?)
}

async fn tells_apart() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let mut expected = Vec::new();
    for status in [SandboxStatus::Running, SandboxStatus::Sleeping, SandboxStatus::Dead] {
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let id = sandbox.id().clone();
        match status {
            SandboxStatus::Sleeping => provider.sleep(id.as_str()).await?,
            SandboxStatus::Dead => {
                let guest = state.guest_of(id.as_str())?;
                let pid = rustix::process::Pid::from_raw(guest).ok_or("not a process number")?;
                rustix::process::kill_process(pid, rustix::process::Signal::KILL)?;
                wait_for_end(guest).await?;
            }
            _ => {}
        }
        expected.push((id, status));
    }
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    // In a process that knows none of them, too.
    for provider in [provider, state.provider()?] {
        let listed = provider.list().await?.into_iter().map(|info| (info.id, info.status));
        let listed: Vec<_> = listed.collect();
        ensure(listed == expected, format!("{listed:?} instead of {expected:?}"))?;
    }
    let provider = state.provider()?;
    for (id, _) in expected {
        provider.remove(id.as_str()).await?;
    }
    state.assert_empty()
}

async fn counts() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let listed = provider.list_with_usage().await?;
    let usage = listed[0].1.unwrap_or_default();
    let has_groups = sandbox.isolation().cgroup_controllers.iter().any(|name| name == "memory");
    ensure(usage.memory_bytes.is_some() == has_groups, format!("{usage:?}"))?;
    if has_groups {
        ensure(usage.processes == Some(0), format!("nothing runs in it, and {usage:?}"))?;
        let asked = sandbox.usage().await?;
        ensure(asked.cpu_ms >= usage.cpu_ms, format!("{usage:?}, then {asked:?}"))?;
        sandbox.exec("sleep 1000 > /dev/null 2>&1 &", ExecOptions::default()).await?;
        let busy = provider.list_with_usage().await?[0].1.unwrap_or_default();
        ensure(busy.processes.is_none(), format!("something runs in it, and {busy:?}"))?;
    }
    Ok(sandbox.destroy().await?)
}
