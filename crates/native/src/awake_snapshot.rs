//! Snapshots of sandboxes that are awake and have nothing to do. The guest holds every call back, its writable layer becomes the
//! snapshot, and an overlay with an empty layer above it takes the place of its root. Its processes, its mounts and its clients
//! go on.
//!
//! The kernel makes sure that the snapshot stays as it is: the old root becomes read-only before its layer is moved, which fails
//! while a file of it is open for writing, whatever the guest says. Meanwhile the sandbox is marked as one that is being moved, which
//! counts as asleep once nobody has its lock. So whoever comes after a process that was killed ends the guest, as after a sleep
//! that was begun, and what goes wrong ends the same way.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use eyot::{AwakeSnapshot, Error, ErrorKind, NewSnapshot, Result, SandboxId};
use eyot_guest::client::CallHold;
use rustix::fs::FlockOperation;

use crate::condition::Condition;
use crate::files_move::{remove_discarded, set_work_aside};
use crate::launcher::client::is_launcher_ended;
use crate::maker::as_root;
use crate::new_snapshot::{NotedSnapshot, TAKE, failed, has_disk};
use crate::plan::{IdRange, Plan};
use crate::ready::ReadyMark;
use crate::record::{GuestProcess, Record};
use crate::sandboxes::{Sandboxes, connect};
use crate::setup::{closed_root_plan, new_root_plan};
use crate::sleep::put_to_sleep;

/// The longest wait for a guest to hold its calls back, or to let them go.
const HOLD_PATIENCE: Duration = Duration::from_secs(1);

/// A sandbox that is awake, locked by whoever takes a snapshot of it.
struct AwakeSandbox {
    directory: PathBuf,
    record: Record,
    ready: ReadyMark,
    range: IdRange,
    /// The namespaces of its users and of its mounts.
    namespaces: [OwnedFd; 2],
}

impl Sandboxes {
    /// Takes a snapshot of a sandbox that is awake and has nothing to do; `None` if that one has to sleep for it. Blocks for some
    /// milliseconds, on a thread of a Tokio runtime.
    pub(crate) fn take_awake(&self, id: &SandboxId, new: NewSnapshot) -> Result<Option<AwakeSnapshot>> {
        // The guest is held only once nobody else is to be waited for.
        let (id, _lock) = self.locked(id.as_str())?;
        let Some(sandbox) = self.awake(&id) else { return Ok(None) };
        self.state.make()?;
        // Alone: of two who want one name, one gets it.
        let _alone = self.state.lock_snapshots(FlockOperation::LockExclusive).map_err(failed(TAKE))?;
        let Some(hold) = self.hold(&sandbox.record) else { return Ok(None) };
        let taken = self.take_of_held(sandbox, new);
        let released = async { tokio::time::timeout(HOLD_PATIENCE, hold.release()).await };
        if !matches!(tokio::runtime::Handle::current().block_on(released), Ok(Ok(()))) {
            tracing::debug!("a guest did not say that it goes on after a snapshot");
        }
        taken
    }

    /// Looks at a sandbox that the caller has locked; `None` unless it is awake and another root can take the place of its own.
    fn awake(&self, id: &SandboxId) -> Option<AwakeSandbox> {
        let directory = self.state.sandbox(id);
        let (Some(record), Condition::Running) = Condition::of(&directory) else { return None };
        let fits = as_root() && record.cow.is_empty() && !record.info.spec.security.readonly_rootfs;
        if !fits || has_disk(&directory) {
            return None;
        }
        let (ready, range) = (ReadyMark::read(&directory).ok()??, record.id_block()?.range());
        let namespaces = namespaces_of(ready.guest?)
            .inspect_err(|error| tracing::debug!(%error, "open the namespaces of a guest"))
            .ok()?;
        Some(AwakeSandbox { directory, record, ready, range, namespaces })
    }

    /// Has the guest hold every call back; `None` while it has something to do.
    fn hold(&self, record: &Record) -> Option<CallHold> {
        let held = async { connect(self, record).await?.hold().await };
        let held = async { tokio::time::timeout(HOLD_PATIENCE, held).await };
        match tokio::runtime::Handle::current().block_on(held) {
            Ok(Ok(hold)) => Some(hold),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a guest holds no calls back");
                None
            }
            Err(_) => None,
        }
    }

    fn take_of_held(&self, sandbox: AwakeSandbox, new: NewSnapshot) -> Result<Option<AwakeSnapshot>> {
        let AwakeSandbox { directory, record, ready, range, namespaces } = sandbox;
        remove_discarded(&directory).map_err(failed(TAKE))?;
        let kept = match self.note_snapshot(&record, &directory, new)? {
            NotedSnapshot::Last(snapshot) => return Ok(Some(AwakeSnapshot { snapshot, is_awake: true })),
            NotedSnapshot::New(kept) => kept,
        };
        ready.begin_move().change(&directory).map_err(failed(TAKE))?;
        if let Err(error) = self.change_root(closed_root_plan(range), &namespaces) {
            tracing::debug!(%error, "the root of a guest stays as it is: its sandbox has to sleep");
            kept.forget(&self.state).map_err(failed(TAKE))?;
            // A launcher that has ended may have closed it before.
            let undone = if is_launcher_ended(&error) {
                put_to_sleep(&directory, &record)
            } else {
                ready.change(&directory)
            };
            return undone.map(|()| None).map_err(failed(TAKE));
        }
        let kept_files = self.keep_files(&kept, &directory, record.clone());
        let goes_on = match &kept_files {
            Ok(record) => self.put_above(&directory, record, range, &namespaces),
            Err(_) => Err(Error::new(ErrorKind::Internal, "its files were not kept")),
        };
        let goes_on = goes_on.and_then(|()| ready.change(&directory).map_err(failed(TAKE)));
        if let Err(error) = &goes_on {
            tracing::debug!(%error, "put a new layer below a guest; the sandbox sleeps for its snapshot");
            put_to_sleep(&directory, &record).map_err(failed("end a sandbox's guest"))?;
        }
        kept_files?;
        if let Err(error) = remove_discarded(&directory) {
            tracing::debug!(%error, "remove what an overlay has left; the next snapshot tries again");
        }
        Ok(Some(AwakeSnapshot { snapshot: kept.info_of_new(), is_awake: goes_on.is_ok() }))
    }

    /// Puts an overlay with the sandbox's new writable layer in the place of its root.
    fn put_above(
        &self,
        directory: &Path,
        record: &Record,
        range: IdRange,
        namespaces: &[OwnedFd; 2],
    ) -> Result<()> {
        set_work_aside(directory).map_err(failed(TAKE))?;
        let path = directory.to_str().ok_or_else(|| Error::invalid("state", "must be a path in UTF-8"))?;
        self.change_root(new_root_plan(path, &record.lower, range), namespaces)
    }

    fn change_root(&self, mut plan: Plan, [users, mounts]: &[OwnedFd; 2]) -> Result<()> {
        if let Some(name) = &self.fail_step {
            plan.force_failure(name);
        }
        self.launcher()?.change_root(plan, [users.as_fd(), mounts.as_fd()])
    }
}

/// Opens the user namespace and the mount namespace of a guest.
fn namespaces_of(guest: GuestProcess) -> io::Result<[OwnedFd; 2]> {
    let namespace = |kind: &str| File::open(format!("/proc/{}/ns/{kind}", guest.pid)).map(OwnedFd::from);
    let namespaces = [namespace("user")?, namespace("mnt")?];
    // Looked at after the opening: it is no later process.
    guest.open()?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    Ok(namespaces)
}
