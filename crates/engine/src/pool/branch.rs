//! Snapshots of a pool's sandboxes, and what is made of them: forks, and ways back.

use std::collections::{BTreeMap, HashSet};

use eyot::internal::{SandboxInternals, run_detached};
use eyot::{
    BranchPoint, Capability, Error, ErrorKind, FileChanges, LiveProcesses, Manifest, NewSnapshot,
    ProcessInfo, ProcessStatus, Result, Sandbox, SandboxId, SandboxName, SandboxPath, SandboxSpec,
    SandboxStatus, SnapshotId, SnapshotInfo,
};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::as_provider::PoolProvider;
use super::wake::wake_unless_awake;
use super::{LOOK_AGAIN, PATIENCE, SandboxPool};
use crate::events::EventKind;
use crate::store::{Claim, SandboxRow, WakingTurn};

/// Options of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SnapshotOptions {
    /// The name, unique in the pool.
    pub name: Option<SandboxName>,
    /// Labels to select by.
    pub labels: BTreeMap<String, String>,
    /// Ends the commands that run, as sleep does. Otherwise a sandbox that works is refused.
    pub stop: bool,
}

/// A snapshot that was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotTaken {
    /// The snapshot.
    #[serde(flatten)]
    pub snapshot: SnapshotInfo,
    /// The commands that were ended for it. Services, which start again, are not among them.
    pub stopped: Vec<String>,
}

/// Options of forks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkOptions {
    /// The number of sandboxes to make, from 1 to [`ForkOptions::MAX`].
    pub count: usize,
    /// The name of the fork; of several, the beginning of their names. By default the name of what is forked.
    pub name: Option<SandboxName>,
    /// As for a snapshot.
    pub stop: bool,
}

/// The sandboxes that were made of something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forks {
    /// Their names.
    pub names: Vec<SandboxName>,
    /// The commands that were ended for it.
    pub stopped: Vec<String>,
}

impl ForkOptions {
    /// The most forks that are made at once.
    pub const MAX: usize = 64;
}

/// One side of a comparison, by the names of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComparedPoint {
    /// A snapshot or, if there is none of that name, the present files of a sandbox.
    Named(String),
    /// The present files of this sandbox.
    Sandbox(String),
    /// The files below the present changes of this sandbox: see [`BranchPoint::Base`].
    BaseOf(String),
}

impl SandboxPool {
    /// Keeps the files of a sandbox. One that runs is put to sleep for it, and is awake again afterwards.
    ///
    /// # Errors
    /// `conflict` if commands run in it and `stop` is not set; `already_exists` if the pool has a snapshot of that name.
    pub async fn snapshot(&self, name: &str, options: SnapshotOptions) -> Result<SnapshotTaken> {
        self.require_snapshots("snapshot")?;
        eyot::internal::check_labels(&options.labels)?;
        let row = self.live(name).await?;
        if let Some(wanted) = &options.name
            && self.row(wanted).await?.is_some()
        {
            let message = format!("take a snapshot: a sandbox of the pool is called `{wanted}`");
            return Err(Error::new(ErrorKind::AlreadyExists, message).with_hint("take another name"));
        }
        let new = NewSnapshot { name: options.name, labels: options.labels, ..self.new_snapshot(&row) };
        self.take(row, new, options.stop).await
    }

    /// Describes a snapshot of a sandbox, without a name.
    fn new_snapshot(&self, row: &SandboxRow) -> NewSnapshot {
        NewSnapshot {
            id: SnapshotId::generate(),
            name: None,
            pool: Some(self.name().clone()),
            sandbox_name: row.name.clone(),
            labels: BTreeMap::new(),
            spec: row.spec.clone(),
            for_forks: false,
        }
    }

    async fn take(&self, row: SandboxRow, new: NewSnapshot, stop: bool) -> Result<SnapshotTaken> {
        let (pool, reason) = (self.clone(), if new.for_forks { "it was forked" } else { "it was asked for" });
        run_detached(async move {
            let still = pool.hold_still(&row, "take a snapshot", stop).await?;
            let taken = pool.provider().snapshots()?.take(&row.id, new).await;
            let stopped = still.stopped.clone();
            let woken = pool.let_go(&row, still, "a snapshot was taken").await;
            let snapshot = taken?;
            woken?;
            let kind = EventKind::SnapshotTaken { snapshot: snapshot.id.to_string() };
            pool.inner.records.record(&row, kind, reason).await?;
            Ok(SnapshotTaken { snapshot, stopped })
        })
        .await
    }

    /// Gives a sandbox the files of a snapshot, and returns the commands that were ended for it. What was changed since is
    /// lost.
    pub async fn roll_back(&self, name: &str, snapshot: &str, stop: bool) -> Result<Vec<String>> {
        self.require_snapshots("rollback")?;
        let snapshot = self.find_snapshot(snapshot).await?.id;
        let (pool, row) = (self.clone(), self.live(name).await?);
        run_detached(async move {
            let still = pool.hold_still(&row, "roll back", stop).await?;
            let done = pool.provider().snapshots()?.roll_back(&row.id, &snapshot).await;
            let stopped = still.stopped.clone();
            let woken = pool.let_go(&row, still, "it was rolled back").await;
            done?;
            woken?;
            let kind = EventKind::RolledBack { snapshot: snapshot.to_string() };
            pool.inner.records.record(&row, kind, "a rollback was asked for").await?;
            Ok(stopped)
        })
        .await
    }

    /// Lists the snapshots of the pool, oldest first, with the sizes that are known.
    pub async fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        Ok(self.own(self.provider().snapshots()?.list().await?))
    }

    /// Lists the snapshots of the pool, and counts the sizes that are not known.
    pub async fn snapshots_with_sizes(&self) -> Result<Vec<SnapshotInfo>> {
        Ok(self.own(self.provider().snapshots()?.list_with_sizes().await?))
    }

    /// Returns the snapshot of this pool that a sandbox is to be made from.
    pub(super) async fn usable_snapshot(&self, id: &SnapshotId) -> Result<SnapshotInfo> {
        let found = self.provider().snapshots()?.find(id).await?;
        found.filter(|info| info.pool.as_ref() == Some(self.name())).ok_or_else(|| no_snapshot(id.as_str()))
    }

    fn own(&self, all: Vec<SnapshotInfo>) -> Vec<SnapshotInfo> {
        all.into_iter().filter(|info| info.pool.as_ref() == Some(self.name())).collect()
    }

    /// Finds a snapshot of the pool, by id or name.
    pub async fn find_snapshot(&self, id_or_name: &str) -> Result<SnapshotInfo> {
        let found = self.snapshot_named(id_or_name).await?;
        found.ok_or_else(|| no_snapshot(id_or_name))
    }

    async fn snapshot_named(&self, id_or_name: &str) -> Result<Option<SnapshotInfo>> {
        let is_it = |info: &SnapshotInfo| {
            info.id.as_str() == id_or_name
                || info.name.as_ref().is_some_and(|name| name.as_str() == id_or_name)
        };
        Ok(self.snapshots().await?.into_iter().find(is_it))
    }

    /// Finds a snapshot by id or name where a sandbox could be meant, too. `conflict`: there are both of that name.
    async fn snapshot_meant(&self, id_or_name: &str) -> Result<Option<SnapshotInfo>> {
        let found = self.snapshot_named(id_or_name).await?;
        if let (Some(info), Ok(name)) = (&found, SandboxName::parse(id_or_name))
            && self.row(&name).await?.is_some()
        {
            let message = format!("a snapshot and a sandbox are called `{name}`");
            let hint = format!("say the id of the one that is meant; the snapshot's is {}", info.id);
            return Err(Error::new(ErrorKind::Conflict, message).with_hint(hint));
        }
        Ok(found)
    }

    /// Removes a snapshot. Sandboxes that were made from it, and later snapshots, stay as they are.
    pub async fn remove_snapshot(&self, id_or_name: &str) -> Result<()> {
        let id = self.find_snapshot(id_or_name).await?.id;
        self.provider().snapshots()?.remove(&id).await
    }

    /// Removes every snapshot of the pool.
    pub(super) async fn remove_snapshots(&self) -> Result<()> {
        if !self.provider().capabilities().has(Capability::Snapshots) {
            return Ok(());
        }
        for info in self.snapshots().await? {
            match self.provider().snapshots()?.remove(&info.id).await {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Compares the files below `path` on two sides.
    pub async fn compare(
        &self,
        from: &ComparedPoint,
        to: &ComparedPoint,
        path: &SandboxPath,
    ) -> Result<FileChanges> {
        self.require_snapshots("diff")?;
        let (from, to) = (self.point(from).await?, self.point(to).await?);
        self.provider().snapshots()?.compare(&from, &to, path).await
    }

    async fn point(&self, point: &ComparedPoint) -> Result<BranchPoint> {
        match point {
            ComparedPoint::Sandbox(name) => Ok(BranchPoint::Sandbox(self.live(name).await?.id)),
            ComparedPoint::BaseOf(name) => Ok(BranchPoint::Base(self.live(name).await?.id)),
            ComparedPoint::Named(name) => match self.snapshot_meant(name).await? {
                Some(snapshot) => Ok(BranchPoint::Snapshot(snapshot.id)),
                None => Ok(BranchPoint::Sandbox(self.live(name).await?.id)),
            },
        }
    }

    fn require_snapshots(&self, operation: &str) -> Result<()> {
        let provider = self.provider();
        provider.capabilities().require(Capability::Snapshots, provider.name(), operation, &[])
    }

    /// Puts a sandbox to sleep and keeps it asleep until [`SandboxPool::let_go`]: who wants it awake waits.
    async fn hold_still(&self, row: &SandboxRow, what: &str, stop: bool) -> Result<HeldAsleep> {
        let claim = self.waking_turn(&row.id).await?;
        let still = async {
            let was_running = self.provider().info(row.id.as_str()).await?.status == SandboxStatus::Running;
            let stopped = if was_running { self.working(row).await? } else { Vec::new() };
            if let Some(first) = stopped.first().filter(|_| !stop) {
                let more = if stopped.len() > 1 {
                    format!(" and {} more", stopped.len() - 1)
                } else {
                    String::new()
                };
                let message = format!("{what}: `{first}`{more} runs in sandbox `{}`", row.name);
                return Err(Error::new(ErrorKind::Conflict, message)
                    .with_hint("wait for its end, or say `--stop`, which ends what runs"));
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
    async fn let_go(&self, row: &SandboxRow, still: HeldAsleep, reason: &str) -> Result<()> {
        let woken = if still.was_running {
            wake_unless_awake(&self.inner.records, self.provider().as_ref(), row, reason).await.map(drop)
        } else {
            Ok(())
        };
        self.give_turn_back(&row.id, still.claim).await?;
        woken
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
        if !self.provider().capabilities().has(Capability::LiveProcesses) {
            return Ok(Vec::new());
        }
        let sandbox = Sandbox::from_created(self.provider().open(row.id.as_str()).await?, None);
        let (live, started) = (sandbox.live_processes().await?, sandbox.processes().await?);
        let services: HashSet<&str> = row.services.iter().map(|service| service.command.as_str()).collect();
        Ok(commands_of_others(&live, &started, &services))
    }
}

fn no_snapshot(id_or_name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no snapshot `{id_or_name}` in this pool"))
        .with_hint("`eyot snapshot ls` shows those that are there")
}

/// A sandbox that sleeps, and is kept asleep.
struct HeldAsleep {
    claim: Claim,
    was_running: bool,
    stopped: Vec<String>,
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
    let others = live.processes.iter().filter(|process| !of_services.contains(&process.pid));
    others.map(|process| process.command.clone()).collect()
}

impl PoolProvider {
    /// Makes sandboxes that begin with the files of a snapshot or, if there is none of that name, with the present files of a
    /// sandbox. If one can't be made, none stays.
    pub async fn fork(&self, from: &str, options: &ForkOptions) -> Result<Forks> {
        let pool = self.pool();
        pool.require_snapshots("fork")?;
        if options.count == 0 || options.count > ForkOptions::MAX {
            return Err(Error::invalid("count", format!("must be from 1 to {}", ForkOptions::MAX)));
        }
        match pool.snapshot_meant(from).await? {
            Some(snapshot) => {
                Ok(Forks { names: self.fork_snapshot(&snapshot, options).await?, stopped: Vec::new() })
            }
            None => {
                let row = pool.live(from).await?;
                let new = NewSnapshot { for_forks: true, ..pool.new_snapshot(&row) };
                let SnapshotTaken { snapshot, stopped } = pool.take(row, new, options.stop).await?;
                Ok(Forks { names: self.fork_snapshot(&snapshot, options).await?, stopped })
            }
        }
    }

    async fn fork_snapshot(
        &self,
        snapshot: &SnapshotInfo,
        options: &ForkOptions,
    ) -> Result<Vec<SandboxName>> {
        let names = self.names_of_forks(snapshot, options).await?;
        let made = join_all(names.iter().map(|name| {
            self.make(SandboxSpec {
                id: None,
                name: Some(name.clone()),
                hostname: None,
                image: None,
                snapshot: Some(snapshot.id.clone()),
                manifest: Manifest { env: snapshot.spec.manifest.env.clone(), ..Manifest::default() },
                ..snapshot.spec.clone()
            })
        }));
        let (made, failed): (Vec<_>, Vec<_>) = made.await.into_iter().partition(Result::is_ok);
        let Some(error) = failed.into_iter().find_map(Result::err) else { return Ok(names) };
        for sandbox in made.into_iter().flatten() {
            sandbox.destroy().await?;
        }
        Err(error.context("fork"))
    }

    /// Chooses names that are free: NAME for one with a name, else NAME-1, NAME-2 and so on.
    async fn names_of_forks(
        &self,
        snapshot: &SnapshotInfo,
        options: &ForkOptions,
    ) -> Result<Vec<SandboxName>> {
        if let (Some(name), 1) = (&options.name, options.count) {
            return Ok(vec![name.clone()]);
        }
        let taken: HashSet<SandboxName> = self.pool().rows().await?.into_iter().map(|row| row.name).collect();
        let begins = options.name.as_ref().unwrap_or(&snapshot.sandbox_name).as_str();
        let mut names = Vec::new();
        for number in 1.. {
            let ending = format!("-{number}");
            let kept = begins.len().min(SandboxName::MAX_CHARS - ending.len());
            let name = SandboxName::parse(&format!("{}{ending}", &begins[..kept]))?;
            if !taken.contains(&name) {
                names.push(name);
            }
            if names.len() == options.count {
                break;
            }
        }
        Ok(names)
    }
}
