//! Sessions of the bridge: each stream has one, since the vendor keeps one terminal in each. What a process that was killed has
//! left of them is ended by the next that opens one.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{Error, ErrorKind, Result, SandboxId};
use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

use super::answer::unreadable;
use super::bridge::FailedTry;
use super::host::BridgeHost;
use super::record::BridgeRecord;
use crate::e2b::vendor::FIRST_WAIT;

/// The end of the name of a session's file before it is locked.
const DRAFT: &str = "new";

/// A session that this process uses. While it does, the session's file is locked.
#[derive(Debug)]
pub(super) struct HeldSession {
    pub name: String,
    host: Arc<BridgeHost>,
    id: SandboxId,
    path: PathBuf,
    _lock: File,
}

/// Begins a session. Each try has a name of its own, because the bridge refuses the name of one whose answer was lost; that one
/// is ended.
pub(super) async fn begin(host: &Arc<BridgeHost>, record: &BridgeRecord) -> Result<HeldSession> {
    end_left_behind(host, record)?;
    let mut wait = FIRST_WAIT;
    for tries in 1.. {
        let held = note(host, record)?;
        let asked = async { Ok(host.client.begin_session(&record.bridge_id, &held.name).await) };
        let failed = match host.records.calling(record, asked).await {
            Ok(Ok(())) => return Ok(held),
            Ok(Err(failed)) => failed,
            Err(error) => FailedTry::from(error),
        };
        if failed.is_open() {
            // What it may have begun is ended while others go on.
            tokio::spawn(held.end_if_begun());
        } else {
            held.forget();
        }
        match failed.pause(tries, wait) {
            Some(pause) => tokio::time::sleep(pause).await,
            None => return Err(failed.error),
        }
        wait *= 2;
    }
    Err(unreadable())
}

/// Ends the sessions that processes have left which are gone, in a task of its own.
fn end_left_behind(host: &Arc<BridgeHost>, record: &BridgeRecord) -> Result<()> {
    let left = left_behind(&host.records.sessions(&record.id)).map_err(not_noted)?;
    if left.is_empty() {
        return Ok(());
    }
    let (host, id) = (Arc::clone(host), record.id.clone());
    tokio::spawn(async move {
        for (path, lock) in left {
            end(&host, &id, &path).await;
            drop(lock);
        }
    });
    Ok(())
}

/// Notes a session that is to be begun.
fn note(host: &Arc<BridgeHost>, record: &BridgeRecord) -> Result<HeldSession> {
    let folder = host.records.sessions(&record.id);
    let name = format!("eyot-{}", Uuid::new_v4().simple());
    let path = folder.join(&name);
    let lock = hold(&folder, &path).map_err(not_noted)?;
    Ok(HeldSession { name, host: Arc::clone(host), id: record.id.clone(), path, _lock: lock })
}

fn not_noted(error: io::Error) -> Error {
    Error::host("note a session of the bridge", error)
}

impl HeldSession {
    /// Ends the session, with the program on its terminal.
    pub async fn end(self) {
        end(&self.host, &self.id, &self.path).await;
    }

    /// Ends the session whose begin has no answer. It may begin yet, so it keeps its note unless the bridge says that it has
    /// ended: the next that connects tries once more.
    async fn end_if_begun(self) {
        if let Ok(true) = end_at_bridge(&self.host, &self.id, &self.path).await {
            forget(&self.path);
        }
    }

    /// Forgets one that was not begun.
    fn forget(self) {
        forget(&self.path);
    }
}

/// Ends a session. One of which the bridge has not heard keeps its note, so that the next that connects tries again.
async fn end(host: &BridgeHost, id: &SandboxId, path: &Path) {
    match end_at_bridge(host, id, path).await {
        Err(error) if error.kind() == ErrorKind::Unavailable => {
            tracing::debug!(%error, "a session of the bridge could not be ended");
        }
        // With its sandbox, it may be gone already.
        _ => forget(path),
    }
}

fn forget(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::debug!(%error, "the note of a session could not be removed");
    }
}

/// Asks for the end of a session. Returns whether it has ended.
async fn end_at_bridge(host: &BridgeHost, id: &SandboxId, path: &Path) -> Result<bool> {
    match (host.records.read(id)?, path.file_name().and_then(|name| name.to_str())) {
        (Some(record), Some(session)) => {
            host.records.calling(&record, host.client.end_session(&record.bridge_id, session)).await
        }
        _ => Ok(true),
    }
}

fn hold(folder: &Path, path: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let draft = path.with_extension(DRAFT);
    let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    // Nobody finds it before it is locked.
    fs::rename(draft, path)?;
    Ok(lock)
}

/// Returns the sessions whose processes have gone, each with its lock.
fn left_behind(folder: &Path) -> io::Result<Vec<(PathBuf, File)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut left = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some() {
            continue;
        }
        // One that has just ended is not there any more.
        let Ok(file) = OpenOptions::new().write(true).open(&path) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            left.push((path, file));
        }
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_left_behind_when_its_process_holds_it_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("sessions");
        assert!(left_behind(&folder).unwrap().is_empty());
        let path = folder.join("eyot-1");
        let held = hold(&folder, &path).unwrap();
        assert!(left_behind(&folder).unwrap().is_empty());
        drop(held);
        assert_eq!(left_behind(&folder).unwrap()[0].0, path);
    }
}
