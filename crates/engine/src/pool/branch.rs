//! Snapshots of a pool's sandboxes: taken, listed, gone back to, compared and removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use eyot::internal::run_detached;
use eyot::{
    BranchPoint, Capability, CompareOptions, Error, ErrorKind, FileChanges, NewSnapshot, Result, SandboxName,
    SandboxProvider, SandboxStatus, SnapshotId, SnapshotInfo,
};

use super::SandboxPool;
use super::branch_options::{
    ComparedPoint, ForkSource, ForkedFiles, RollbackDone, RollbackOptions, SnapshotOptions, SnapshotTaken,
};
use super::still::StillTerms;
use crate::events::EventKind;
use crate::store::{SandboxRow, enforce_sum, too_many_sandboxes};

/// The reason for a wake, in the event log.
const WOKEN_FOR: &str = "a snapshot was taken";

impl SandboxPool {
    /// Keeps the files of a sandbox. One that runs goes on, or is put to sleep for it and is awake again
    /// afterwards, if it can't.
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
        self.refuse_beyond_quota().await?;
        let SnapshotOptions { name, labels, stop, asleep_only, id, for_forks } = options;
        let fresh = self.new_snapshot(&row);
        let new = NewSnapshot { id: id.unwrap_or(fresh.id), name, labels, for_forks, ..fresh };
        self.take(row, new, StillTerms { stop, asleep_only }).await
    }

    /// Refuses another snapshot where the pool has as many as it may.
    async fn refuse_beyond_quota(&self) -> Result<()> {
        let Some(most) = self.options().quotas.max_snapshots else { return Ok(()) };
        let there = self.snapshots().await?.len() as u64;
        if there < most { Ok(()) } else { Err(self.beyond_quota(most, there)) }
    }

    /// Returns the bytes that the pool's quota of the disk leaves for its snapshots beside its sandboxes.
    pub(super) async fn bytes_for_snapshots(&self) -> Result<Option<u64>> {
        let Some(most_mib) = self.options().quotas.disk_mib else { return Ok(None) };
        let pool = self.name().clone();
        let used = self.inner.records.ask(move |store| store.quota_use(&pool)).await?.disk_mib;
        Ok(Some(most_mib.saturating_sub(used).saturating_mul(1 << 20)))
    }

    /// Returns what the snapshots take of the pool's quota of the disk, in MiB.
    pub(super) async fn mib_of_snapshots(&self) -> Result<u64> {
        let has_some = self.provider().capabilities().has(Capability::Snapshots);
        if self.options().quotas.disk_mib.is_none() || !has_some {
            return Ok(0);
        }
        let bytes = self.provider().snapshots()?.bytes_of_pool(self.name()).await?;
        Ok(bytes.div_ceil(1 << 20))
    }

    /// Refuses more sandboxes than the pool may have, or disks of that size.
    pub(super) async fn refuse_more_than_fit(&self, count: usize, disk_mib: Option<u64>) -> Result<()> {
        let quotas = self.options().quotas;
        if (quotas.max_sandboxes, quotas.disk_mib) == (None, None) {
            return Ok(());
        }
        let pool = self.name().clone();
        let there = self.inner.records.ask(move |store| store.quota_use(&pool)).await?;
        if let Some(most) = quotas.max_sandboxes
            && there.sandboxes.saturating_add(count as u64) > most
        {
            return Err(too_many_sandboxes(self.name(), most, there.sandboxes));
        }
        // One without a limit is given the pool's, or is refused when it is made; nothing is copied for it.
        let Some(each) = disk_mib else { return Ok(()) };
        let taken = there.disk_mib.saturating_add(self.mib_of_snapshots().await?);
        enforce_sum(self.name(), "disk_mib", taken, Some(each.saturating_mul(count as u64)), quotas.disk_mib)
    }

    fn beyond_quota(&self, most: u64, there: u64) -> Error {
        let message = format!("pool `{}` may have {most} snapshots and has {there}", self.name());
        Error::new(ErrorKind::Quota, message)
            .with_hint("remove one that is not needed any more (`eyot snapshot rm`)")
    }

    /// Removes a snapshot again that is one too many: of those who took theirs at the same time, the first keep them.
    async fn refuse_if_beyond_quota(&self, id: &SnapshotId) -> Result<()> {
        let Some(most) = self.options().quotas.max_snapshots else { return Ok(()) };
        let all = self.snapshots().await?;
        let place = all.iter().position(|info| info.id == *id);
        if place.is_none_or(|place| (place as u64) < most) {
            return Ok(());
        }
        self.provider().snapshots()?.remove(id).await?;
        Err(self.beyond_quota(most, all.len() as u64 - 1))
    }

    /// Describes a snapshot of a sandbox, without a name.
    pub(super) fn new_snapshot(&self, row: &SandboxRow) -> NewSnapshot {
        NewSnapshot {
            id: SnapshotId::generate(),
            name: None,
            pool: Some(self.name().clone()),
            sandbox_name: row.name.clone(),
            labels: BTreeMap::new(),
            spec: row.spec.clone(),
            for_forks: false,
            most_bytes_of_pool: None,
        }
    }

    pub(super) async fn take(
        &self,
        row: SandboxRow,
        new: NewSnapshot,
        terms: StillTerms,
    ) -> Result<SnapshotTaken> {
        let (pool, reason) =
            (self.clone(), if new.for_forks { "it was forked or committed" } else { "it was asked for" });
        run_detached(async move {
            let most_bytes_of_pool = pool.bytes_for_snapshots().await?;
            let new = NewSnapshot { most_bytes_of_pool, ..new };
            let of_awake = if terms.asleep_only { None } else { pool.take_of_awake(&row, &new).await? };
            let taken = match of_awake {
                Some(snapshot) => SnapshotTaken { snapshot, stopped: Vec::new() },
                None => pool.take_asleep(&row, new, terms).await?,
            };
            let kind = EventKind::SnapshotTaken { snapshot: taken.snapshot.id.to_string() };
            pool.inner.records.record(&row, kind, reason).await?;
            Ok(taken)
        })
        .await
    }

    /// Takes a snapshot of a sandbox that is awake and has nothing to do; `None` if that one has to sleep for it.
    async fn take_of_awake(&self, row: &SandboxRow, new: &NewSnapshot) -> Result<Option<SnapshotInfo>> {
        let taken = match self.provider().snapshots()?.take_awake(&row.id, new).await {
            Ok(Some(taken)) => taken,
            Ok(None) => return Ok(None),
            Err(error) => {
                // It was awake, since nothing is tried with one that sleeps.
                let now = self.provider().info(row.id.as_str()).await;
                if now.is_ok_and(|info| info.status == SandboxStatus::Sleeping) {
                    self.wake_after_snapshot(row, WOKEN_FOR).await?;
                }
                return Err(error);
            }
        };
        let woken = if taken.is_awake { Ok(()) } else { self.wake_after_snapshot(row, WOKEN_FOR).await };
        let snapshot = self.check_taken(&new.id, taken.snapshot).await?;
        woken.map(|()| Some(snapshot))
    }

    /// Takes a snapshot of a sandbox that sleeps, or is put to sleep for it and woken afterwards.
    async fn take_asleep(
        &self,
        row: &SandboxRow,
        new: NewSnapshot,
        terms: StillTerms,
    ) -> Result<SnapshotTaken> {
        let still = self.hold_still(row, "take a snapshot", terms).await?;
        let taken = self.take_of_still(row, new).await;
        let stopped = still.stopped.clone();
        let woken = self.let_go(row, still, WOKEN_FOR).await;
        let snapshot = taken?;
        woken.map(|()| SnapshotTaken { snapshot, stopped })
    }

    /// Takes a snapshot of a sandbox that is kept asleep.
    async fn take_of_still(&self, row: &SandboxRow, new: NewSnapshot) -> Result<SnapshotInfo> {
        let id = new.id.clone();
        let taken = self.provider().snapshots()?.take(&row.id, new).await?;
        self.check_taken(&id, taken).await
    }

    async fn check_taken(&self, id: &SnapshotId, taken: SnapshotInfo) -> Result<SnapshotInfo> {
        // Another one was there before: the sandbox has written nothing since.
        if taken.id == *id {
            self.refuse_if_beyond_quota(&taken.id).await?;
        }
        Ok(taken)
    }

    /// Gives a sandbox the files of a snapshot, and returns the commands that were ended for it. What was changed since is
    /// lost.
    pub async fn roll_back(&self, name: &str, options: &RollbackOptions) -> Result<RollbackDone> {
        self.require_snapshots("rollback")?;
        let (pool, row) = (self.clone(), self.live(name).await?);
        let snapshot = self.find_snapshot(&options.snapshot).await?.id;
        let terms = StillTerms { stop: options.stop, asleep_only: options.asleep_only };
        run_detached(async move {
            let still = pool.hold_still(&row, "roll back", terms).await?;
            let done = pool.roll_still_back(&row, &snapshot).await;
            let stopped = still.stopped.clone();
            let woken = pool.let_go(&row, still, "it was rolled back").await;
            done?;
            woken?;
            let kind = EventKind::RolledBack { snapshot: snapshot.to_string() };
            pool.inner.records.record(&row, kind, "a rollback was asked for").await?;
            Ok(RollbackDone { stopped })
        })
        .await
    }

    async fn roll_still_back(&self, row: &SandboxRow, snapshot: &SnapshotId) -> Result<()> {
        self.provider().snapshots()?.roll_back(&row.id, snapshot).await
    }

    /// Lists the snapshots of the pool, oldest first, with the sizes that are known.
    pub async fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        self.require_snapshots("snapshot ls")?;
        Ok(self.own(self.provider().snapshots()?.list().await?))
    }

    /// Lists the snapshots of the pool, and counts the sizes that are not known.
    pub async fn snapshots_with_sizes(&self) -> Result<Vec<SnapshotInfo>> {
        self.require_snapshots("snapshot ls")?;
        Ok(self.own(self.provider().snapshots()?.list_with_sizes().await?))
    }

    /// Returns the snapshot of this pool that a sandbox is to be made from.
    pub(super) async fn usable_snapshot(&self, id: &SnapshotId) -> Result<SnapshotInfo> {
        self.snapshot_of_id(id).await?.ok_or_else(|| no_snapshot(id.as_str()))
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
        if let Ok(id) = SnapshotId::parse(id_or_name) {
            return self.snapshot_of_id(&id).await;
        }
        let is_it = |info: &SnapshotInfo| info.name.as_ref().is_some_and(|name| name.as_str() == id_or_name);
        Ok(self.snapshots().await?.into_iter().find(is_it))
    }

    /// Finds a snapshot of the pool by its id, one for forks too.
    async fn snapshot_of_id(&self, id: &SnapshotId) -> Result<Option<SnapshotInfo>> {
        let found = self.provider().snapshots()?.find(id).await?;
        Ok(found.filter(|info| info.pool.as_ref() == Some(self.name())))
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

    /// Finds what forks are to be made of: a snapshot or, if there is none of that name, a sandbox.
    pub async fn fork_source(&self, id_or_name: &str) -> Result<ForkSource> {
        self.require_snapshots("fork")?;
        self.branch_source(id_or_name).await
    }

    pub(super) async fn branch_source(&self, id_or_name: &str) -> Result<ForkSource> {
        Ok(ForkSource(match self.snapshot_meant(id_or_name).await? {
            Some(snapshot) => ForkedFiles::Snapshot(Box::new(snapshot)),
            None => ForkedFiles::Sandbox(Box::new(self.live_or_neither(id_or_name).await?)),
        }))
    }

    /// Finds a sandbox where a snapshot could be meant, and there is none of that name.
    async fn live_or_neither(&self, name: &str) -> Result<SandboxRow> {
        self.live(name).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                let message = format!("there is neither a snapshot nor a sandbox `{name}`");
                let hint = "`eyot snapshot ls` and `eyot ls` show those that are there";
                Error::new(ErrorKind::NotFound, message).with_hint(hint)
            }
            _ => error,
        })
    }

    /// Removes a snapshot. Sandboxes that were made from it, and later snapshots, stay as they are.
    pub async fn remove_snapshot(&self, id_or_name: &str) -> Result<()> {
        self.require_snapshots("snapshot rm")?;
        let (pool, info) = (self.clone(), self.find_snapshot(id_or_name).await?);
        run_detached(async move {
            pool.provider().snapshots()?.remove(&info.id).await?;
            pool.inner.records.record_removal(pool.name(), &info).await
        })
        .await
    }

    /// Removes every snapshot of the pool.
    pub(super) async fn remove_snapshots(&self) -> Result<()> {
        remove_snapshots_of(self.provider().as_ref(), self.name()).await
    }

    /// Compares two sides. At most two comparisons of a pool run at once; others wait.
    pub async fn compare(
        &self,
        from: &ComparedPoint,
        to: &ComparedPoint,
        options: &CompareOptions,
    ) -> Result<FileChanges> {
        self.require_snapshots("diff")?;
        let (from, to) = (self.point(from).await?, self.point(to).await?);
        let turn = Arc::clone(&self.inner.comparisons).acquire_owned().await;
        let turn =
            turn.map_err(|error| Error::new(ErrorKind::Internal, "compare files").with_source(error))?;
        let (snapshots, options) = (self.provider().snapshots()?, options.clone());
        // A walk goes on when its caller has left, and keeps its turn for as long.
        run_detached(async move {
            let _turn = turn;
            snapshots.compare(&from, &to, &options).await
        })
        .await
    }

    async fn point(&self, point: &ComparedPoint) -> Result<BranchPoint> {
        match point {
            ComparedPoint::Sandbox(name) => Ok(BranchPoint::Sandbox(self.live(name).await?.id)),
            ComparedPoint::BaseOf(name) => Ok(BranchPoint::Base(self.live(name).await?.id)),
            ComparedPoint::Named(name) => match self.snapshot_meant(name).await? {
                Some(snapshot) => Ok(BranchPoint::Snapshot(snapshot.id)),
                None => Ok(BranchPoint::Sandbox(self.live_or_neither(name).await?.id)),
            },
        }
    }

    pub(super) fn require_snapshots(&self, operation: &str) -> Result<()> {
        let provider = self.provider();
        provider.capabilities().require(Capability::Snapshots, provider.name(), operation, &[])
    }
}

/// Removes every snapshot of a pool, which may be open nowhere.
pub(crate) async fn remove_snapshots_of(provider: &dyn SandboxProvider, pool: &SandboxName) -> Result<()> {
    if !provider.capabilities().has(Capability::Snapshots) {
        return Ok(());
    }
    let snapshots = provider.snapshots()?;
    for info in snapshots.list().await?.into_iter().filter(|info| info.pool.as_ref() == Some(pool)) {
        match snapshots.remove(&info.id).await {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn no_snapshot(id_or_name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no snapshot `{id_or_name}` in this pool"))
        .with_hint("`eyot snapshot ls` shows those that are there")
}
