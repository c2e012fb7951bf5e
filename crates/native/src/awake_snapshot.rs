//! Snapshots of sandboxes that are awake and have nothing to do. The guest holds every call back, its writable layer becomes the
//! snapshot, and an overlay with an empty layer above it takes the place of its root. Its processes, its mounts and its clients
//! notice nothing.
//!
//! The kernel makes sure that the snapshot stays as it is: the old root becomes read-only before anything is done with it, which
//! fails while a file of it is open for writing, whatever the guest says. Meanwhile the sandbox is marked as asleep. So whoever
//! comes after a process that was killed ends the guest, as after a sleep that was begun, and what goes wrong ends the same way.

use std::path::Path;
use std::sync::Arc;

use eyot::{Error, ErrorKind, NewSnapshot, Result, SandboxId, SnapshotInfo};
use rustix::fs::FlockOperation;

use crate::blocking::on_blocking_thread;
use crate::condition::Condition;
use crate::files_move::{remove_discarded, set_work_aside};
use crate::living_root::LivingRoot;
use crate::maker::as_root;
use crate::new_snapshot::{NotedSnapshot, TAKE, failed, has_disk};
use crate::plan::IdRange;
use crate::ready::ReadyMark;
use crate::record::Record;
use crate::sandboxes::{Sandboxes, connect};
use crate::setup::new_root_plan;
use crate::sleep::{note_asleep, put_to_sleep};

/// Takes a snapshot of a sandbox that is awake and has nothing to do; `None` if that one has to sleep for it. Once it has begun, it
/// goes on even if nobody waits for it any more.
pub(crate) async fn take_awake(
    sandboxes: &Arc<Sandboxes>,
    id: &SandboxId,
    new: &NewSnapshot,
) -> Result<Option<SnapshotInfo>> {
    let (sandboxes, id, new) = (Arc::clone(sandboxes), id.clone(), new.clone());
    let taken = tokio::spawn(async move {
        let (known, key) = (Arc::clone(&sandboxes), id.clone());
        let Some(record) = on_blocking_thread(move || Ok(known.awake(&key))).await? else { return Ok(None) };
        let Ok(connection) = connect(&sandboxes, &record).await else { return Ok(None) };
        let Ok(hold) = connection.hold().await else { return Ok(None) };
        let taken = on_blocking_thread(move || sandboxes.take_of_awake(&id, new)).await;
        if let Err(error) = hold.release().await {
            tracing::debug!(%error, "let a guest go on after a snapshot");
        }
        taken
    });
    taken.await.map_err(|error| {
        Error::new(ErrorKind::Internal, format!("{TAKE}: a task ended early")).with_source(error)
    })?
}

impl Sandboxes {
    /// Returns the record of a sandbox that is awake and whose root another one can take the place of.
    fn awake(&self, id: &SandboxId) -> Option<Record> {
        let record = self.living(id.as_str()).ok()?;
        let fits = as_root() && record.id_block().is_some() && record.cow.is_empty();
        (fits && !has_disk(&self.state.sandbox(&record.info.id))).then_some(record)
    }

    /// Takes the snapshot while the guest holds every call back. Blocks for about a millisecond.
    fn take_of_awake(&self, id: &SandboxId, new: NewSnapshot) -> Result<Option<SnapshotInfo>> {
        let (id, _lock) = self.locked(id.as_str())?;
        let directory = self.state.sandbox(&id);
        let (Some(record), Condition::Running) = Condition::of(&directory) else { return Ok(None) };
        let Some((ready, root, range)) = living_root(&directory, &record) else { return Ok(None) };
        self.state.make()?;
        remove_discarded(&directory).map_err(failed(TAKE))?;
        // Alone: of two who want one name, one gets it.
        let _alone = self.state.lock_snapshots(FlockOperation::LockExclusive).map_err(failed(TAKE))?;
        let kept = match self.note_snapshot(&record, &directory, new)? {
            NotedSnapshot::Last(info) => return Ok(Some(info)),
            NotedSnapshot::New(kept) => kept,
        };
        note_asleep(&directory).map_err(failed(TAKE))?;
        let kept_files = self.keep_files(&kept, &directory, record.clone());
        let goes_on = match &kept_files {
            Ok(record) => self.put_above(&directory, record, range, root),
            Err(_) => Err(Error::new(ErrorKind::Internal, "its files were not kept")),
        };
        if let Err(error) = goes_on.and_then(|()| ready.change(&directory).map_err(failed(TAKE))) {
            tracing::debug!(%error, "put a new layer below a guest; the sandbox sleeps for its snapshot");
            put_to_sleep(&directory, &record).map_err(failed("end a sandbox's guest"))?;
        }
        kept_files?;
        if let Err(error) = remove_discarded(&directory) {
            tracing::debug!(%error, "remove what an overlay has left; the next snapshot tries again");
        }
        Ok(Some(kept.info_of_new()))
    }

    /// Puts an overlay with the sandbox's new writable layer in the place of its root.
    fn put_above(&self, directory: &Path, record: &Record, range: IdRange, root: LivingRoot) -> Result<()> {
        set_work_aside(directory).map_err(failed(TAKE))?;
        let path = directory.to_str().ok_or_else(|| Error::invalid("state", "must be a path in UTF-8"))?;
        let namespaces = root.namespaces();
        let mut plan = new_root_plan(path, &record.lower, range, root.points.clone());
        if let Some(name) = &self.fail_step {
            plan.force_failure(name);
        }
        self.launcher()?.replace_root(plan, namespaces)
    }
}

/// Returns the mark of a sandbox, the root of its guest, and its ids; `None` if another root can't take that one's place.
fn living_root(directory: &Path, record: &Record) -> Option<(ReadyMark, LivingRoot, IdRange)> {
    let ready = ReadyMark::read(directory).ok()??;
    let root =
        LivingRoot::of(ready.guest?).inspect_err(|error| tracing::debug!(%error, "look at a guest's root"));
    Some((ready, root.ok()??, record.id_block()?.range()))
}
