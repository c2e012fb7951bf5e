//! The records of a state folder. The bridge knows no names and lists nothing, so what is not recorded here is not found
//! again; a record is there before its sandbox, and until that is gone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eyot::{Error, ErrorKind, Result, SandboxId};
use rustix::fs::{FlockOperation, flock};

use super::record::{BridgeRecord, BridgeState};
use crate::state_secret::{failed, make_folder};

/// The file whose lock whoever changes records holds.
const LOCK: &str = "lock";
const RECORD: &str = "json";
/// The file whose lock the maker of a sandbox holds.
const MAKER: &str = "maker";

/// The file whose lock whoever calls the bridge about a sandbox shares, and who removes that has alone: the bridge would start
/// another container for a call that comes after the removal.
const CALLS: &str = "calls";
/// The longest wait of a call for a removal that is under way.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(30);
/// The longest wait of a removal for the calls that are under way, before its first try, and before the second.
pub(super) const CALLS_PATIENCE: Duration = Duration::from_secs(5);
pub(super) const SLOW_CALLS_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// The pause before the second look whether they are over, and the longest: each is twice as long as the one before. A lock of
/// a file wakes nobody who may leave.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const MAX_LOOK: Duration = Duration::from_millis(250);

/// The records of one folder.
#[derive(Debug, Clone)]
pub(super) struct BridgeRecords(PathBuf);

/// A record whose sandbox this process is making, or removing. Another process finds it out when this one is gone.
#[derive(Debug)]
pub(super) struct HeldRecord {
    _lock: File,
}

fn host(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::host(what, error)
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

impl BridgeRecords {
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    fn path(&self, id: &SandboxId, kind: &str) -> PathBuf {
        self.0.join(format!("{id}.{kind}"))
    }

    fn lock(&self) -> Result<File> {
        make_folder(&self.0).map_err(|error| failed("make the folder of Cloudflare's sandboxes", error))?;
        let lock = open_lock(&self.0.join(LOCK)).map_err(host("lock the records"))?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| host("lock the records")(error.into()))?;
        Ok(lock)
    }

    /// Writes the record of a sandbox that is to be made, or adopted.
    ///
    /// # Errors
    /// `already_exists` if its id or name is in use, or if the sandbox is known here.
    pub fn reserve(&self, record: &BridgeRecord) -> Result<HeldRecord> {
        let _lock = self.lock()?;
        for known in self.all()? {
            let taken = [record.id.as_str(), record.name.as_str()].into_iter().find(|key| known.is(key));
            // One that is being removed has its id still, and gives its name away.
            let taken = taken.filter(|_| known.state != BridgeState::Ending || known.id == record.id);
            if let Some(taken) = taken {
                return Err(Error::new(
                    ErrorKind::AlreadyExists,
                    format!("create sandbox: `{taken}` is in use"),
                ));
            }
            if known.bridge_id == record.bridge_id {
                return Err(Error::new(ErrorKind::Conflict, "it is known here already"));
            }
        }
        let held = self
            .hold(&record.id)?
            .ok_or_else(|| Error::new(ErrorKind::Conflict, "another process makes it"))?;
        self.write(record)?;
        Ok(held)
    }

    /// Takes the place of the process that makes or removes a sandbox; `None`: it is alive.
    pub fn hold(&self, id: &SandboxId) -> Result<Option<HeldRecord>> {
        let lock = open_lock(&self.path(id, MAKER)).map_err(host("hold a record"))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(HeldRecord { _lock: lock })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(host("hold a record")(error.into())),
        }
    }

    fn write(&self, record: &BridgeRecord) -> Result<()> {
        let text = serde_json::to_vec(record)
            .map_err(|error| Error::new(ErrorKind::Internal, "write a record").with_source(error))?;
        let written = || {
            let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.0)?;
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(self.path(&record.id, RECORD)).map_err(|error| error.error)?;
            File::open(&self.0)?.sync_all()
        };
        written().map_err(host("write a record"))
    }

    /// Writes a record anew, unless the sandbox was forgotten, or is of another life.
    ///
    /// # Errors
    /// `destroyed`, `conflict`.
    pub fn change(&self, before: &BridgeRecord, after: &BridgeRecord) -> Result<()> {
        let _lock = self.lock()?;
        match self.read(&before.id)? {
            None => Err(Error::destroyed(&before.name)),
            Some(now) if now.state == BridgeState::Ending => Err(Error::destroyed(&before.name)),
            Some(now) if now.life != before.life => {
                Err(Error::new(ErrorKind::Conflict, "another process changes it"))
            }
            Some(_) => self.write(after),
        }
    }

    /// Notes that a sandbox is being removed. Returns its record as it was; `None`: it was removed before.
    pub fn end(&self, id: &SandboxId) -> Result<Option<BridgeRecord>> {
        let _lock = self.lock()?;
        let Some(record) = self.read(id)? else { return Ok(None) };
        self.write(&BridgeRecord { state: BridgeState::Ending, ..record.clone() })?;
        Ok(Some(record))
    }

    /// Forgets a sandbox, unless another one was made under its id since. One that is not recorded is fine.
    pub fn forget_if_same(&self, record: &BridgeRecord) -> Result<()> {
        let _lock = self.lock()?;
        match self.read(&record.id)? {
            Some(now) if now.bridge_id != record.bridge_id => Ok(()),
            _ => self.forget(&record.id),
        }
    }

    /// Forgets a sandbox. One that is not recorded is fine.
    pub fn forget(&self, id: &SandboxId) -> Result<()> {
        let sessions = self.sessions(id);
        for removed in [
            fs::remove_file(self.path(id, RECORD)),
            fs::remove_file(self.path(id, MAKER)),
            fs::remove_file(self.path(id, CALLS)),
            fs::remove_dir_all(sessions),
        ] {
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(host("remove a record")(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes a call about a sandbox, unless it is being removed.
    ///
    /// # Errors
    /// `destroyed`, and those of the call.
    pub async fn calling<T>(
        &self,
        record: &BridgeRecord,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let is_there =
            || self.read(&record.id).map(|now| now.is_some_and(|now| now.state != BridgeState::Ending));
        if !is_there()? {
            return Err(Error::destroyed(&record.name));
        }
        let shared =
            self.take_calls(&record.id, FlockOperation::NonBlockingLockShared, REMOVAL_PATIENCE).await?;
        // While a removal is under way, it is noted.
        if shared.is_none() || !is_there()? {
            return Err(Error::destroyed(&record.name));
        }
        call.await
    }

    /// Makes the call that removes a sandbox which is noted as being removed, once other calls are over, or at the latest after
    /// so long. Returns whether they are over: one that was still under way may have made the sandbox's container anew.
    pub async fn removing(
        &self,
        id: &SandboxId,
        patience: Duration,
        call: impl Future<Output = Result<()>>,
    ) -> Result<bool> {
        let alone = self.take_calls(id, FlockOperation::NonBlockingLockExclusive, patience).await?;
        call.await?;
        Ok(alone.is_some())
    }

    /// Takes the lock of calls; `None`: others have kept it for too long.
    async fn take_calls(
        &self,
        id: &SandboxId,
        how: FlockOperation,
        patience: Duration,
    ) -> Result<Option<File>> {
        let lock = open_lock(&self.path(id, CALLS)).map_err(host("call the bridge in turn"))?;
        let taken = async {
            let mut pause = FIRST_LOOK;
            while flock(&lock, how).is_err() {
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(MAX_LOOK);
            }
        };
        Ok(tokio::time::timeout(patience, taken).await.ok().map(|()| lock))
    }

    /// Reads the record of a sandbox.
    pub fn read(&self, id: &SandboxId) -> Result<Option<BridgeRecord>> {
        match fs::read(self.path(id, RECORD)) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| {
                Error::new(ErrorKind::Internal, format!("the record of sandbox `{id}` can't be read"))
                    .with_source(error)
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(host("read a record")(error)),
        }
    }

    /// Reads every record, the oldest first.
    pub fn all(&self) -> Result<Vec<BridgeRecord>> {
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(host("list the records")(error)),
        };
        let mut all = Vec::new();
        for entry in entries {
            let name = entry.map_err(host("list the records"))?.file_name();
            // Other files may lie there.
            let id = name.to_str().and_then(|name| SandboxId::parse(name.strip_suffix(".json")?).ok());
            if let Some(id) = id {
                all.extend(self.read(&id)?);
            }
        }
        all.sort_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
        Ok(all)
    }

    /// Finds a sandbox by its id or name.
    ///
    /// # Errors
    /// `not_found`.
    pub fn find(&self, key: &str) -> Result<BridgeRecord> {
        let found = self.all()?.into_iter().find(|record| record.is(key));
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no sandbox `{key}`")))
    }

    /// Returns the folder of the sessions that were opened in a sandbox.
    pub fn sessions(&self, id: &SandboxId) -> PathBuf {
        self.path(id, "sessions")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> (tempfile::TempDir, BridgeRecords) {
        let folder = tempfile::tempdir().unwrap();
        let records = BridgeRecords::new(folder.path().join("cloudflare"));
        (folder, records)
    }

    #[test]
    fn a_name_an_id_and_a_sandbox_are_there_once() {
        let (_folder, records) = records();
        let record = BridgeRecord::adopting("abc234", 1).unwrap();
        let held = records.reserve(&record).unwrap();
        let other =
            BridgeRecord { name: record.name.clone(), ..BridgeRecord::adopting("abc235", 2).unwrap() };
        assert_eq!(records.reserve(&other).unwrap_err().kind(), ErrorKind::AlreadyExists);
        let same = BridgeRecord::adopting("abc234", 2).unwrap();
        assert_eq!(records.reserve(&same).unwrap_err().kind(), ErrorKind::Conflict);
        assert!(records.hold(&record.id).unwrap().is_none(), "its maker lives");
        drop(held);
        assert!(records.hold(&record.id).unwrap().is_some());
        records.forget(&record.id).unwrap();
        records.forget(&record.id).unwrap();
        assert_eq!(records.find(record.name.as_str()).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_sandbox_that_is_being_removed_is_not_changed_any_more() {
        let (_folder, records) = records();
        let record = BridgeRecord::adopting("abc234", 1).unwrap();
        drop(records.reserve(&record).unwrap());
        let made = BridgeRecord { state: BridgeState::Made, ..record.clone() };
        records.change(&record, &made).unwrap();
        assert_eq!(records.end(&record.id).unwrap(), Some(made));
        assert_eq!(records.change(&record, &record).unwrap_err().kind(), ErrorKind::Destroyed);
    }
}
