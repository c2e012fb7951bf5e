//! Snapshots and forks beside creates, in the same pool: of a sandbox with few files in every round, and of one with many files
//! if that is asked for.

use std::sync::Arc;
use std::time::Instant;

use eyot::{DiskEnforcement, ExecOptions, Limits, Sandbox, SandboxName, SandboxProvider, SandboxSpec};
use eyot_engine::{ForkOptions, PoolOptions, SandboxPool, SnapshotOptions};

use super::{Item, Items};
use crate::errors::Failure;

const CREATE: Item = Item::plain("in a pool: create → ready");

/// The rows of one kind of tree.
struct BranchRows {
    snapshot: Item,
    /// The same of a sandbox that sleeps, and has changed nothing since.
    asleep: Option<Item>,
    fork: Item,
    /// The shell line that makes the tree.
    line: &'static str,
    /// The sandbox has a disk of this size: its files are copied.
    disk_mib: Option<u64>,
    /// Nothing is timed before the tree is on the disk: one that still writes it delays whatever is done on it, a create as well.
    waits_for_disk: bool,
}

const FEW: BranchRows = BranchRows {
    snapshot: Item::ratio("snapshot, 10 files, of a sandbox that is awake", CREATE.name, 0.5),
    asleep: Some(Item::ratio("snapshot of a sleeping sandbox", CREATE.name, 0.5)),
    fork: Item::ratio("fork → ready, from a snapshot with 10 files", CREATE.name, 1.3),
    line: "cd && mkdir t && cd t && for f in 0 1 2 3 4 5 6 7 8 9; do echo $f > $f; done",
    disk_mib: None,
    waits_for_disk: false,
};
const FEW_ON_DISK: BranchRows = BranchRows {
    snapshot: Item::beside("snapshot, 10 files, with a disk limit", CREATE.name),
    asleep: None,
    fork: Item::beside("fork → ready, from that", CREATE.name),
    disk_mib: Some(1024),
    ..FEW
};
const THOUSANDS_ON_DISK: BranchRows = BranchRows {
    snapshot: Item::beside("snapshot, 10,000 files and 200 MiB, with a disk limit", CREATE.name),
    asleep: None,
    fork: Item::beside("fork → ready, from those 10,000 files", CREATE.name),
    line: "cd && mkdir t && cd t && for d in $(seq 10); do mkdir $d && (cd $d && seq 1000 | xargs touch); done \
           && head -c 209715200 /dev/urandom > large",
    disk_mib: Some(1024),
    waits_for_disk: true,
};
const MANY: BranchRows = BranchRows {
    snapshot: Item::ratio("snapshot, 100,000 files and 2 GiB, awake", FEW.snapshot.name, 1.5),
    asleep: None,
    fork: Item::ratio("fork → ready, from 100,000 files and 2 GiB", FEW.fork.name, 1.5),
    line: "cd && mkdir t && cd t && for d in $(seq 100); do mkdir $d && (cd $d && seq 1000 | xargs touch); done \
           && head -c 2147483648 /dev/zero > large",
    disk_mib: None,
    waits_for_disk: true,
};

/// A pool whose sandboxes are branched.
pub struct BranchRounds(SandboxPool);

impl BranchRounds {
    /// The number of times that a large tree is made. Each takes seconds.
    pub const LARGE: usize = 5;

    /// Opens the pool.
    pub fn open(provider: Arc<dyn SandboxProvider>) -> Result<Self, Failure> {
        let options = PoolOptions { name: SandboxName::parse("bench")?, ..PoolOptions::default() };
        Ok(Self(SandboxPool::open(provider, options)?))
    }

    /// Measures a create, and the branches of a sandbox with few files.
    pub async fn few(&self, items: &mut Items) -> Result<(), Failure> {
        self.branch(&FEW, items).await
    }

    /// Measures those of a sandbox with many files, and of sandboxes with a disk limit where this host holds one.
    pub async fn many(&self, items: &mut Items, done: &dyn Fn()) -> Result<(), Failure> {
        let has_disks = self.0.provider().isolation().await?.limits.disk == DiskEnforcement::Quota;
        for _ in 0..Self::LARGE {
            if has_disks {
                self.branch(&FEW_ON_DISK, items).await?;
                self.branch(&THOUSANDS_ON_DISK, items).await?;
            }
            self.branch(&MANY, items).await?;
            done();
        }
        Ok(())
    }

    /// Makes the sandbox that is branched.
    async fn parent(&self, rows: &BranchRows, name: &str, items: &mut Items) -> Result<Sandbox, Failure> {
        if rows.disk_mib.is_some() {
            let limits = Limits { disk_mib: rows.disk_mib, ..Limits::default() };
            let spec =
                SandboxSpec { name: Some(SandboxName::parse(name)?), limits, ..SandboxSpec::default() };
            return Ok(Sandbox::create(&*self.0.as_provider(), spec).await?);
        }
        let since = Instant::now();
        let sandbox = self.0.get(name).await?;
        items.note(CREATE, since);
        Ok(sandbox)
    }

    async fn branch(&self, rows: &BranchRows, items: &mut Items) -> Result<(), Failure> {
        let (pool, name) = (&self.0, "parent");
        let sandbox = self.parent(rows, name, items).await?;
        let made = sandbox.exec(rows.line, ExecOptions::default()).await?;
        if !made.success() {
            let message = format!("make the files of a branch: {}", made.stderr_text());
            return Err(eyot::Error::new(eyot::ErrorKind::Internal, message).into());
        }
        if rows.waits_for_disk {
            tokio::task::spawn_blocking(rustix::fs::sync).await.map_err(|error| {
                eyot::Error::new(eyot::ErrorKind::Internal, "wait for the disk").with_source(error)
            })?;
        }
        let since = Instant::now();
        let taken = pool.snapshot(name, SnapshotOptions::default()).await?;
        items.note(rows.snapshot, since);
        let from = taken.snapshot.id.to_string();
        let options = ForkOptions { from: from.clone(), count: 1, name: None, stop: false };
        let since = Instant::now();
        let forks = pool.as_provider().fork(pool.fork_source(&from).await?, options).await?;
        items.note(rows.fork, since);
        if let Some(asleep) = rows.asleep {
            pool.sleep(name).await?;
            let since = Instant::now();
            let second = pool.snapshot(name, SnapshotOptions::default()).await?.snapshot.id;
            items.note(asleep, since);
            pool.remove_snapshot(second.as_str()).await?;
        }
        for fork in &forks.names {
            pool.remove(fork.as_str()).await?;
        }
        pool.remove(name).await?;
        pool.remove_snapshot(&from).await?;
        Ok(())
    }
}
