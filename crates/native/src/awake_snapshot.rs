//! Snapshots of sandboxes that are awake and have nothing to do. The guest holds every call back, an overlay with an empty layer
//! takes the place of its root, and its old writable layer becomes the snapshot. Its processes, its mounts and its clients go on.
//!
//! The kernel makes sure that the snapshot stays as it is. The old root becomes read-only before another one takes its place, which
//! fails while a file of it is open for writing, whatever the guest says. As long as its change of files stands written down, the sandbox
//! counts as asleep once nobody has its lock. So the next process after one that was killed ends the guest, as after a sleep that was begun.
//! An error in between ends it, too.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eyot::{AwakeSnapshot, Error, NewSnapshot, Result, SandboxId, SnapshotId};
use eyot_guest::client::AskedHold;
use rustix::fs::FlockOperation;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::condition::Condition;
use crate::disk::has_disk;
use crate::files_move::{self, FilesMove, make_next};
use crate::image::{Lower, SnapshotLayer};
use crate::kept_snapshot::KeptSnapshot;
use crate::launcher::client::{NewRoot, PendingSandbox};
use crate::maker::as_root;
use crate::new_snapshot::{NotedSnapshot, TAKE, failed};
use crate::plan::{IdRange, ROOT};
use crate::ready::ReadyMark;
use crate::record::{GuestProcess, Lock, Record, socket_path};
use crate::sandboxes::Sandboxes;
use crate::setup::new_root_plan;
use crate::sleep::put_to_sleep;

/// The longest wait for a guest to hold its calls back.
const HOLD_PATIENCE: Duration = Duration::from_secs(1);

/// A sandbox that is awake, locked by whoever takes a snapshot of it.
struct AwakeSandbox {
    directory: PathBuf,
    record: Record,
    range: IdRange,
    /// The user namespace, the mount namespace and the process of its guest.
    living: [OwnedFd; 3],
}

/// The folders that a snapshot has thrown away in a sandbox's directory, and the sandbox's lock. Dropping it removes those, and then
/// frees the lock. Whoever moves the files next removes what a killed process has left.
pub(crate) struct Discarded {
    directory: PathBuf,
    _lock: Lock,
}

impl Drop for Discarded {
    fn drop(&mut self) {
        if let Err(error) = files_move::remove_discarded(&self.directory) {
            tracing::debug!(%error, "remove what a snapshot has thrown away");
        }
    }
}

impl Sandboxes {
    /// Takes a snapshot of a sandbox that is awake and has nothing to do; `None` if that one has to sleep for it. Blocks for some
    /// milliseconds. What is thrown away is removed when the caller drops the second part.
    pub(crate) fn take_awake(
        &self,
        id: &SandboxId,
        new: NewSnapshot,
    ) -> (Result<Option<AwakeSnapshot>>, Option<Discarded>) {
        // The guest is held only once nobody else has the sandbox or the snapshots.
        match self.locked(id.as_str()) {
            Ok((id, lock)) => {
                let discarded = Discarded { directory: self.state.sandbox(&id), _lock: lock };
                (self.take_of_locked(&id, new), Some(discarded))
            }
            Err(error) => (Err(error), None),
        }
    }

    fn take_of_locked(&self, id: &SandboxId, new: NewSnapshot) -> Result<Option<AwakeSnapshot>> {
        let Some(sandbox) = self.awake(id) else { return Ok(None) };
        let launcher = self.launcher_of_existing()?;
        // Alone: of two who want one name, one gets it.
        let _alone = self.state.lock_snapshots(FlockOperation::LockExclusive).map_err(failed(TAKE))?;
        let replacement = launcher.begin_replacement()?;
        // The guest answers while the record is written and the next directories are made, which changes nothing yet.
        let Some(asked) = ask_for_hold(&sandbox) else { return Ok(None) };
        let noted = self.note_snapshot(&sandbox.record, &sandbox.directory, new, None)?;
        if let NotedSnapshot::New(kept) = &noted
            && let Err(error) = make_next(&sandbox.directory)
        {
            kept.forget(&self.state).map_err(failed(TAKE))?;
            return Err(failed(TAKE)(error));
        }
        let held = asked
            .wait(HOLD_PATIENCE)
            .inspect_err(|error| tracing::debug!(%error, "a guest holds no calls back"));
        let (kept, hold) = match (noted, held) {
            (NotedSnapshot::Last(snapshot), Ok(Some(_))) => {
                return Ok(Some(AwakeSnapshot { snapshot: *snapshot, is_awake: true }));
            }
            (NotedSnapshot::New(kept), Ok(Some(hold))) => (kept, hold),
            (NotedSnapshot::Last(_), _) => return Ok(None),
            (NotedSnapshot::New(kept), _) => {
                return kept.forget(&self.state).map(|()| None).map_err(failed(TAKE));
            }
        };
        let taken = self.take_of_held(sandbox, kept, replacement);
        if let Err(error) = hold.release() {
            tracing::debug!(%error, "let a guest go on after a snapshot");
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
        let living = living_parts(ready.guest?)
            .inspect_err(|error| tracing::debug!(%error, "open the namespaces of a guest"))
            .ok()?;
        Some(AwakeSandbox { directory, record, range, living })
    }

    fn take_of_held(
        &self,
        sandbox: AwakeSandbox,
        kept: Box<KeptSnapshot>,
        replacement: PendingSandbox<'_>,
    ) -> Result<Option<AwakeSnapshot>> {
        let AwakeSandbox { directory, record, .. } = &sandbox;
        let begun = self.begin_move(&sandbox, &kept, replacement);
        let is_awake = matches!(&begun, Ok((NewRoot::InPlace, _)));
        let end = || match begun {
            Ok((root, change)) => {
                if root == NewRoot::Missing {
                    put_to_sleep(directory, record)?;
                }
                change.make_written(&self.state, directory, record.clone()).map(|_| true)
            }
            Err(error) => {
                tracing::debug!(%error, "the root of a guest stays as it is: its sandbox has to sleep");
                FilesMove::forget(directory)?;
                kept.forget(&self.state).map(|()| false)
            }
        };
        match end() {
            Ok(is_kept) => Ok(is_kept.then(|| AwakeSnapshot { snapshot: kept.info_of_new(), is_awake })),
            Err(error) => {
                // Its guest must not go on in a sandbox that counts as asleep.
                put_to_sleep(directory, record).map_err(failed(TAKE))?;
                Err(failed(TAKE)(error))
            }
        }
    }

    /// Writes down that the files are to be moved, and has the launcher replace the root. Returns the change that was written. An error
    /// means that the root is as it was.
    fn begin_move(
        &self,
        sandbox: &AwakeSandbox,
        kept: &KeptSnapshot,
        replacement: PendingSandbox<'_>,
    ) -> Result<(NewRoot, FilesMove)> {
        let AwakeSandbox { directory, record, range, living: [users, mounts, guest], .. } = sandbox;
        let (change, lower) = (self.move_into(kept, directory)?, lower_above(directory, record)?);
        let written = change.begin_below(directory, record).map_err(failed(TAKE))?;
        let mut plan = new_root_plan(utf_8(directory)?, &lower, *range);
        if let Some(name) = &self.fail_step {
            plan.force_failure(name);
        }
        let root = replacement.replace_root(plan, [users.as_fd(), mounts.as_fd(), guest.as_fd()], || {
            FilesMove::begin_to_write_out(directory);
        })?;
        Ok((root, written))
    }
}

/// Returns the layers of a sandbox above its present writable layer, which still lies where it was.
fn lower_above(directory: &Path, record: &Record) -> Result<Lower> {
    let folder = format!("{}/{ROOT}", utf_8(directory)?);
    let present = SnapshotLayer { id: SnapshotId::generate(), folder, ids: record.id_block() };
    let snapshots = [vec![present], record.lower.snapshots.clone()].concat();
    Ok(Lower { snapshots, ..record.lower.clone() })
}

fn utf_8(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| Error::invalid("state", "must be a path in UTF-8"))
}

/// Asks the guest to hold every call back; `None` if it can't be asked.
fn ask_for_hold(sandbox: &AwakeSandbox) -> Option<AskedHold> {
    let record = &sandbox.record;
    let asked = guest_socket(&sandbox.directory)
        .map_err(failed(TAKE))
        .and_then(|socket| AskedHold::ask(socket, record.client_nonce, record.guest_nonce));
    asked.inspect_err(|error| tracing::debug!(%error, "ask a guest to hold its calls back")).ok()
}

/// Connects to a guest, unless it would have to be waited for.
fn guest_socket(directory: &Path) -> io::Result<UnixStream> {
    let (_open, path) = socket_path(directory)?;
    let how = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, how, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

/// Opens the user namespace and the mount namespace of a guest, and its process.
fn living_parts(guest: GuestProcess) -> io::Result<[OwnedFd; 3]> {
    let namespace = |kind: &str| File::open(format!("/proc/{}/ns/{kind}", guest.pid)).map(OwnedFd::from);
    let (users, mounts) = (namespace("user")?, namespace("mnt")?);
    // Opened after the namespaces: it is no later process that has them.
    let guest = guest.open()?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    Ok([users, mounts, guest])
}
