//! A sandbox that is put to sleep and kept asleep while something is done with its files.

use std::collections::HashSet;

use eyot::internal::SandboxInternals;
use eyot::{
    Capability, Error, ErrorKind, LiveProcess, LiveProcesses, ProcessInfo, ProcessStatus, Result, Sandbox,
    SandboxId, SandboxStatus,
};
use tokio::time::Instant;

use super::wake::wake_unless_awake;
use super::{LOOK_AGAIN, PATIENCE, SandboxPool};
use crate::store::{Claim, SandboxRow, WakingTurn};

/// A sandbox that sleeps, and is kept asleep.
pub(super) struct HeldAsleep {
    claim: Claim,
    was_running: bool,
    /// The commands that were ended for it.
    pub stopped: Vec<String>,
}

/// The treatment of a sandbox that runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct StillTerms {
    /// Ends the commands that run.
    pub stop: bool,
    /// Refuses a sandbox that runs at all.
    pub asleep_only: bool,
}

impl SandboxPool {
    /// Puts a sandbox to sleep and keeps it asleep until [`SandboxPool::let_go`]: who wants it awake waits.
    pub(super) async fn hold_still(
        &self,
        row: &SandboxRow,
        what: &str,
        terms: StillTerms,
    ) -> Result<HeldAsleep> {
        if let Ok(snapshots) = self.provider().snapshots() {
            snapshots.check_still(&row.id, what).await?;
        }
        let claim = self.waking_turn(&row.id).await?;
        let still = async {
            let was_running = self.provider().info(row.id.as_str()).await?.status == SandboxStatus::Running;
            if was_running && terms.asleep_only {
                let message = format!("{what}: the sandbox `{}` does not sleep", row.name);
                return Err(Error::new(ErrorKind::Conflict, message).with_hint("put it to sleep first"));
            }
            let stopped = if was_running { self.working(row).await? } else { Vec::new() };
            if !terms.stop && !stopped.is_empty() {
                return Err(at_work(what, row, &stopped));
            }
            self.provider().sleep(row.id.as_str()).await?;
            if was_running {
                self.inner.records.record_sleep(row, what).await?;
            }
            Ok((was_running, stopped))
        };
        match still.await {
            Ok((was_running, stopped)) => Ok(HeldAsleep { claim, was_running, stopped }),
            Err(error) => {
                self.give_turn_back(&row.id, claim).await?;
                Err(error)
            }
        }
    }

    /// Ends the stillness of a sandbox. One that ran is woken, with its services.
    pub(super) async fn let_go(&self, row: &SandboxRow, still: HeldAsleep, reason: &str) -> Result<()> {
        let woken = if still.was_running {
            wake_unless_awake(&self.inner.records, self.provider().as_ref(), row, reason).await.map(drop)
        } else {
            Ok(())
        };
        self.give_turn_back(&row.id, still.claim).await?;
        woken
    }

    /// Wakes a sandbox that a snapshot has put to sleep, with its services.
    pub(super) async fn wake_after_snapshot(&self, row: &SandboxRow, reason: &str) -> Result<()> {
        let claim = self.waking_turn(&row.id).await?;
        self.inner.records.record_sleep(row, "take a snapshot").await?;
        self.let_go(row, HeldAsleep { claim, was_running: true, stopped: Vec::new() }, reason).await
    }

    async fn waking_turn(&self, id: &SandboxId) -> Result<Claim> {
        let given_up = Instant::now() + PATIENCE;
        loop {
            let changed = self.inner.changed.notified();
            let asked = id.clone();
            match self.inner.records.store.ask(move |store| store.begin_waking(&asked)).await? {
                WakingTurn::Ours(claim) | WakingTurn::TakenOver(claim) => return Ok(claim),
                WakingTurn::Theirs if Instant::now() > given_up => {
                    let message = format!("use sandbox `{id}`: somebody has been waking it for too long");
                    return Err(Error::new(ErrorKind::Unavailable, message));
                }
                WakingTurn::Theirs => tokio::select! {
                    () = changed => {}
                    // Another process sends no notice.
                    () = tokio::time::sleep(LOOK_AGAIN) => {}
                },
            }
        }
    }

    async fn give_turn_back(&self, id: &SandboxId, claim: Claim) -> Result<()> {
        let id = id.clone();
        self.inner.records.ask(move |store| store.finish_waking(&id)).await?;
        claim.finish();
        self.inner.changed.notify_waiters();
        Ok(())
    }

    /// Lists the commands that run in a sandbox, without those of its services.
    async fn working(&self, row: &SandboxRow) -> Result<Vec<String>> {
        let capabilities = self.provider().capabilities();
        if !capabilities.has(Capability::Processes) {
            return Ok(Vec::new());
        }
        let sandbox = Sandbox::from_created(self.provider().open(row.id.as_str()).await?, None);
        let services: HashSet<&str> = row.services.iter().map(|service| service.command.as_str()).collect();
        let started = sandbox.processes().await?;
        if capabilities.has(Capability::LiveProcesses) {
            return Ok(commands_of_others(&sandbox.live_processes().await?, &started, &services));
        }
        let running =
            if capabilities.has(Capability::Usage) { sandbox.usage().await?.processes } else { None };
        Ok(started_by_others(&started, running.unwrap_or_default(), &services))
    }
}

/// Lists the commands of a sandbox, where only those that were started are known, and how many run in all.
fn started_by_others(started: &[ProcessInfo], running: u64, services: &HashSet<&str>) -> Vec<String> {
    let alive: Vec<_> = started.iter().filter(|process| process.status == ProcessStatus::Running).collect();
    let others = alive.iter().filter(|process| !services.contains(process.command.as_str()));
    let mut commands: Vec<String> = others.map(|process| process.command.clone()).collect();
    let unknown = running.saturating_sub(alive.len() as u64);
    commands.extend((0..unknown).map(|_| UNKNOWN_COMMAND.to_owned()));
    commands
}

/// The state of a process that has ended.
const ENDED: char = 'Z';

/// The words for a command that a provider does not name.
const UNKNOWN_COMMAND: &str = "a command";

fn at_work(what: &str, row: &SandboxRow, commands: &[String]) -> Error {
    let more = if commands.len() > 1 { format!(" and {} more", commands.len() - 1) } else { String::new() };
    let first = commands.first().map(String::as_str).unwrap_or_default();
    let message = format!("{what}: `{first}`{more} runs in sandbox `{}`", row.name);
    Error::new(ErrorKind::Conflict, message)
        .with_hint("wait for its end, or say `stop` (`--stop`), which ends what runs")
}

/// Lists the commands of a sandbox but those that its services started.
fn commands_of_others(
    live: &LiveProcesses,
    started: &[ProcessInfo],
    services: &HashSet<&str>,
) -> Vec<String> {
    let is_service = |process: &&ProcessInfo| {
        process.status == ProcessStatus::Running && services.contains(process.command.as_str())
    };
    let mut of_services: HashSet<u32> =
        started.iter().filter(is_service).map(|process| process.pid).collect();
    // A child may have a smaller number than its parent.
    loop {
        let known = of_services.len();
        let children = live.processes.iter().filter(|process| of_services.contains(&process.parent_pid));
        let children: Vec<u32> = children.map(|process| process.pid).collect();
        of_services.extend(children);
        if of_services.len() == known {
            break;
        }
    }
    // One that has ended is listed until its parent has heard of it.
    let is_alive = |process: &&LiveProcess| process.state != ENDED;
    let others = live.processes.iter().filter(|process| !of_services.contains(&process.pid));
    others.filter(is_alive).map(|process| process.command.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, state: char) -> LiveProcess {
        LiveProcess {
            pid,
            parent_pid: 1,
            user: "user".to_owned(),
            state,
            cpu_ms: None,
            memory_bytes: None,
            command: format!("command {pid}"),
        }
    }

    #[test]
    fn a_process_that_has_ended_and_is_still_listed_does_not_run() {
        let processes = vec![process(7, 'Z'), process(8, 'S'), process(9, 'T')];
        let live = LiveProcesses { processes, truncated: false };
        assert_eq!(commands_of_others(&live, &[], &HashSet::new()), ["command 8", "command 9"]);
    }
}
