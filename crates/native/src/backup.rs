//! What a backup of a state folder needs to know of its sandboxes: which can be copied, held still meanwhile; and what must
//! change in their records where the copy is put.

use std::io;
use std::path::Path;

use eyot::{Error, ErrorKind, Result, SandboxId};

use crate::condition::Condition;
use crate::ready::Ready;
use crate::record::{Lock, Record};
use crate::state::StateDir;

/// Sandboxes without processes. None of them is woken or destroyed while this is held.
#[derive(Debug)]
pub struct HeldSandboxes {
    /// By id. Those whose time is over, those that were never completed and damaged ones are not among them.
    pub ids: Vec<SandboxId>,
    _locks: Vec<Lock>,
}

/// Holds the sandboxes of a state folder still. `conflict`: one has processes, or somebody is at work on it.
pub fn hold_still(state: &Path) -> Result<HeldSandboxes> {
    let state = StateDir::open(state, None)?;
    let (mut ids, mut locks, mut busy) = (Vec::new(), Vec::new(), Vec::new());
    for id in state.ids("sandboxes").map_err(failed("list the sandboxes"))? {
        let directory = state.sandbox(&id);
        match Lock::take_if_free(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("hold a sandbox still")(error)),
            Ok(None) => busy.push(name_of(&directory, &id)),
            Ok(Some(lock)) => match Condition::of(&directory).1 {
                Condition::Running => busy.push(name_of(&directory, &id)),
                Condition::Sleeping | Condition::Dead => {
                    ids.push(id);
                    locks.push(lock);
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

/// Makes the records of a state folder's copy, which lies at `copy` now and will be called `state`, those of that place: their
/// layers lie below it, they have no process and no control group, and they sleep. `was`: what the copied one was called.
pub fn settle_copies(copy: &Path, state: &Path, was: &Path) -> Result<()> {
    let copied = StateDir::open(copy, None)?;
    for id in copied.ids("sandboxes").map_err(failed("list the sandboxes"))? {
        let directory = copied.sandbox(&id);
        settle(&directory, state, was).map_err(|error| {
            Error::new(ErrorKind::Conflict, format!("read the record of sandbox `{id}`: it is damaged"))
                .with_source(error)
        })?;
    }
    Ok(())
}

fn settle(directory: &Path, state: &Path, was: &Path) -> io::Result<()> {
    let mut record = Record::read(directory)?;
    if let Ok(below) = Path::new(&record.lower.folder).strip_prefix(was) {
        let moved = state.join(below).into_os_string().into_string();
        record.lower.folder = moved.map_err(|_| io::ErrorKind::InvalidFilename)?;
    }
    record.groups = Vec::new();
    record.write(directory)?;
    match Ready::read(directory)? {
        Some(_) => Ready::ASLEEP.change(directory),
        None => Ready::ASLEEP.make(directory),
    }
}

fn name_of(directory: &Path, id: &SandboxId) -> String {
    Record::read(directory).map_or_else(|_| id.to_string(), |record| record.info.name.to_string())
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::new(ErrorKind::Internal, format!("{what}: failed")).with_source(error)
}
