//! Putting a sandbox to sleep. It is marked as asleep, then its guest ends or is killed, then its
//! control groups are removed. Its files, its name and its range of ids stay. If this process is
//! killed in between, the sandbox sleeps, and the next sweep, sleep or wake does the rest.

use std::io;
use std::path::Path;

use crate::cgroup;
use crate::condition::Condition;
use crate::destroy::recorded_guest;
use crate::ready::ReadyMark;
use crate::record::{Lock, Record, kill_and_wait};

/// Marks a sandbox as asleep, and ends what runs of it. The caller holds its lock.
pub(crate) fn put_to_sleep(directory: &Path, record: &Record) -> io::Result<()> {
    note_asleep(directory)?;
    settle(directory, record)
}

/// Marks a sandbox as asleep. The caller holds its lock.
pub(crate) fn note_asleep(directory: &Path) -> io::Result<()> {
    match ReadyMark::read(directory)? {
        None => Err(io::ErrorKind::NotFound.into()),
        Some(ready) if ready == ready.put_to_sleep() => Ok(()),
        Some(ready) => ready.put_to_sleep().change(directory),
    }
}

/// Ends what may be left of a sleeping sandbox's guest. The caller holds its lock.
pub(crate) fn settle(directory: &Path, record: &Record) -> io::Result<()> {
    let ready = ReadyMark::read(directory)?;
    if is_settled(ready, record) {
        return Ok(());
    }
    cgroup::let_die(&record.groups)?;
    if let Some(guest) = recorded_guest(ready, Some(record))? {
        kill_and_wait(&guest)?;
    }
    cgroup::remove(&record.groups)?;
    ReadyMark::ASLEEP.change(directory)
}

/// Tells whether nothing is left of a sleeping sandbox's guest, nor of its groups, which a wake may
/// have made before its process was killed.
fn is_settled(ready: Option<ReadyMark>, record: &Record) -> bool {
    ready == Some(ReadyMark::ASLEEP) && !record.groups.iter().any(|group| group.exists())
}

/// Does the same during a sweep. Does nothing while another process puts the sandbox to sleep or
/// wakes it.
pub(crate) fn settle_if_free(directory: &Path, record: &Record) -> io::Result<()> {
    if is_settled(ReadyMark::read(directory)?, record) {
        return Ok(());
    }
    let Some(_lock) = Lock::take_if_free(directory)? else { return Ok(()) };
    ReadyMark::end_move(directory)?;
    match Condition::of(directory) {
        (Some(record), Condition::Sleeping) => put_to_sleep(directory, &record),
        _ => Ok(()),
    }
}
