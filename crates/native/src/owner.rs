//! The rights of a sandbox's driver beside its connection: to destroy and to measure the sandbox,
//! and to find out why its guest ended.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use eyot::{Error, ErrorKind, Result, SandboxId, Usage};
use eyot_guest::client::{Connection, Destroyer, Meter};

use crate::blocking::on_blocking_thread;
use crate::cgroup;
use crate::condition::Condition;
use crate::destroy::{GuestHandle, abandon, destroy};
use crate::ready::ReadyMark;
use crate::record::Record;
use crate::sandboxes::Sandboxes;
use crate::state::StateDir;

/// Makes the error for calls on a sandbox whose guest has ended. It may sleep, or have been put to
/// sleep and be awake again; its guest may have been killed from outside; a deadline may have ended
/// it, or a destroy. `known` is the sandbox's record of the guest that ended.
pub(crate) fn verdict(state: &StateDir, known: &Record) -> Error {
    let (directory, name) = (state.sandbox(&known.info.id), &known.info.name);
    let (ready, record) = (ReadyMark::read(&directory).ok().flatten(), Record::read(&directory).ok());
    let Some((ready, record)) = ready.zip(record) else {
        return Error::destroyed(name);
    };
    let was_woken = record.client_nonce != known.client_nonce;
    match record.without_guest(ready) {
        Condition::Expired if record.ttl_has_passed() => Error::expired(name),
        Condition::Expired => Error::destroyed(name),
        Condition::Dead if !was_woken => Error::dead(name),
        _ => Error::sleeping(name),
    }
}

/// Measures a sandbox by its control groups.
pub(crate) struct GroupMeter(pub Vec<PathBuf>);

#[async_trait]
impl Meter for GroupMeter {
    async fn measure(&self, mut usage: Usage) -> Result<Usage> {
        let groups = self.0.clone();
        let counted = on_blocking_thread(move || Ok(cgroup::measure(&groups))).await?;
        usage.memory_bytes = counted.memory_bytes.or(usage.memory_bytes);
        usage.memory_peak_bytes = counted.memory_peak_bytes;
        usage.cpu_ms = counted.cpu_ms.or(usage.cpu_ms);
        Ok(usage)
    }
}

/// The parts that a driver needs to destroy its sandbox.
pub(crate) struct SandboxDestroyer {
    pub sandboxes: Arc<Sandboxes>,
    pub id: SandboxId,
    pub guest: Option<Arc<GuestHandle>>,
    pub connection: Connection,
}

#[async_trait]
impl Destroyer for SandboxDestroyer {
    async fn destroy(&self) -> Result<()> {
        self.end(destroy).await
    }

    async fn abandon(&self) -> Result<()> {
        self.end(abandon).await
    }
}

impl SandboxDestroyer {
    async fn end(&self, how: fn(&StateDir, &SandboxId, Option<&GuestHandle>) -> Result<bool>) -> Result<()> {
        let (sandboxes, id, guest) = (Arc::clone(&self.sandboxes), self.id.clone(), self.guest.clone());
        self.connection.set_closed_error(ErrorKind::Destroyed, Error::destroyed(&self.id).to_string());
        self.connection.revoke_files();
        on_blocking_thread(move || how(&sandboxes.state, &id, guest.as_deref())).await?;
        self.connection.close();
        Ok(())
    }
}
