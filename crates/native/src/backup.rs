//! The sandboxes of a state folder that a backup can copy. They are locked while it copies them,
//! and their records are adapted to the place where the copy goes.

use std::fs::File;
use std::io;
use std::path::Path;

use eyot::{Error, ErrorKind, Result, SandboxId};

use crate::condition::Condition;
use crate::disk::{self, has_disk};
use crate::files_move::{self, FilesMove};
use crate::kept_snapshot::KeptSnapshot;
use crate::ready::ReadyMark;
use crate::record::{Lock, Record};
use crate::sleep::put_to_sleep;
use crate::state::StateDir;

/// Locks on sandboxes that have no processes. While this value lives, no other process wakes or
/// destroys them.
#[derive(Debug)]
pub struct HeldSandboxes {
    /// The locked sandboxes, by id. Expired, unfinished and damaged sandboxes are left out.
    pub ids: Vec<SandboxId>,
    _locks: Vec<(Lock, Option<File>)>,
}

/// Returns the condition of a sandbox that was just locked.
fn condition_of_held(state: &StateDir, directory: &Path) -> Result<Condition> {
    let settle = || {
        ReadyMark::end_move(directory)?;
        if let (Some(record), Condition::Sleeping) = Condition::of(directory) {
            // With what a killed process has begun or prepared, too: a copy has whole sandboxes only.
            put_to_sleep(directory, &record)?;
            files_move::complete(state, directory, record)?;
        }
        Ok(())
    };
    settle().map_err(failed("hold a sandbox still"))?;
    Ok(Condition::of(directory).1)
}

/// Locks every sandbox of a state folder that can be copied.
///
/// # Errors
/// `Conflict` if a sandbox runs, or another process holds its lock.
pub fn hold_still(state: &Path) -> Result<HeldSandboxes> {
    let state = StateDir::open(state, None)?;
    let (mut ids, mut locks, mut busy) = (Vec::new(), Vec::new(), Vec::new());
    for id in state.ids("sandboxes").map_err(failed("list the sandboxes"))? {
        let directory = state.sandbox(&id);
        match Lock::take_if_free(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("hold a sandbox still")(error)),
            Ok(None) => busy.push(name_of(&directory, &id)),
            Ok(Some(lock)) => match condition_of_held(&state, &directory)? {
                Condition::Running => busy.push(name_of(&directory, &id)),
                Condition::Sleeping | Condition::Dead => {
                    let image = if has_disk(&directory) {
                        let image = disk::lock_image(&directory).map_err(failed("lock a disk"))?;
                        // Somebody compares its files: what was written last may not be in the image yet.
                        if image.is_none() {
                            busy.push(name_of(&directory, &id));
                        }
                        image
                    } else {
                        None
                    };
                    ids.push(id);
                    locks.push((lock, image));
                }
                Condition::Making | Condition::Expired | Condition::Damaged => {}
            },
        }
    }
    if busy.is_empty() {
        Ok(HeldSandboxes { ids, _locks: locks })
    } else {
        let message = format!("these sandboxes run, or somebody is at work on them: {}", busy.join(", "));
        Err(Error::new(ErrorKind::Conflict, message))
    }
}

/// Adapts the records in a copied state folder. The copy lies at `copy`, will be used at `state`,
/// and was taken from `was`. Paths of layers below `was` are moved below `state`, control groups
/// are dropped, and every sandbox is marked as asleep.
pub fn settle_copies(copy: &Path, state: &Path, was: &Path) -> Result<()> {
    let copied = StateDir::open(copy, None)?;
    copied.make()?;
    for id in copied.ids("sandboxes").map_err(failed("list the sandboxes"))? {
        let directory = copied.sandbox(&id);
        settle(&directory, state, was).map_err(|error| {
            Error::new(ErrorKind::Conflict, format!("read the record of sandbox `{id}`: it is damaged"))
                .with_source(error)
        })?;
    }
    for mut snapshot in KeptSnapshot::all(&copied).map_err(failed("list the snapshots"))? {
        let moved = snapshot.lower.move_below(state, was).and_then(|()| snapshot.write(&copied));
        moved.map_err(failed("adapt a snapshot"))?;
    }
    Ok(())
}

fn settle(directory: &Path, state: &Path, was: &Path) -> io::Result<()> {
    let mut record = Record::read(directory)?;
    record.lower.move_below(state, was)?;
    record.groups = Vec::new();
    record.write(directory)?;
    FilesMove::move_below(directory, &record, state, was)?;
    match ReadyMark::read(directory)? {
        Some(_) => ReadyMark::ASLEEP.change(directory),
        None => ReadyMark::ASLEEP.make(directory),
    }
}

fn name_of(directory: &Path, id: &SandboxId) -> String {
    Record::read(directory).map_or_else(|_| id.to_string(), |record| record.info.name.to_string())
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::new(ErrorKind::Internal, format!("{what}: failed")).with_source(error)
}
