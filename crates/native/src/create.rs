//! Making a new sandbox. Its id, its name and its range of ids are claimed, each by one atomic
//! change of the state folder.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result, SandboxId, SandboxInfo, SandboxStatus, ValidSpec};
use eyot_image::FileLock;
use rustix::fs::FlockOperation;

use crate::image::Image;
use crate::isolation;
use crate::maker::{Maker, Prepared, failed};
use crate::plan::IdMap;
use crate::record::{Lock, Record, boot_id};
use crate::unfinished::{Origin, Unfinished};

fn taken(what: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("create sandbox: {what} is in use"))
}

impl Maker<'_> {
    /// Makes everything of a sandbox up to the running guest. Blocks for a millisecond or two.
    pub(crate) fn make(&self, prepared: Prepared) -> Result<(Unfinished, UnixStream)> {
        let mut unfinished = self.claim(&prepared.spec, &prepared.image)?;
        unfinished.record.cow = prepared.cow.clone();
        let map = unfinished.claim_ids()?;
        let stream = self.build(prepared, &mut unfinished, map)?;
        Ok((unfinished, stream))
    }

    /// Claims the id and the name.
    fn claim(&self, spec: &ValidSpec, image: &Image) -> Result<Unfinished> {
        let record = new_record(spec, image)?;
        let lock = self.claim_id(spec.id())?;
        let origin = Origin::New { claimed_name: false };
        let mut unfinished = Unfinished::new(self.state.clone(), record, origin, lock);
        self.claim_name(&mut unfinished)?;
        Ok(unfinished)
    }

    /// Claims the name of a sandbox whose directory is there.
    pub(crate) fn claim_name(&self, unfinished: &mut Unfinished) -> Result<()> {
        let SandboxInfo { id, name, .. } = &unfinished.record.info;
        if !self.state.take_name(name, id).map_err(failed("take its name"))? {
            let error = taken(&format!("name `{name}`"));
            return Err(
                error.with_hint("use another name, or `get_or_create` if the one that is there will do")
            );
        }
        unfinished.origin = Origin::New { claimed_name: true };
        Ok(())
    }

    /// Makes the sandbox's directory and takes its lock.
    fn claim_id(&self, id: &SandboxId) -> Result<Lock> {
        let _together = self.share_gate()?;
        if self.state.trash(id).exists() {
            return Err(taken(&format!("id `{id}`")));
        }
        make_locked(&self.state.sandbox(id), id)
    }

    /// Begins a slot: its directory, locked, and its range of ids.
    pub(crate) fn claim_slot(&self, spec: &ValidSpec, image: &Image) -> Result<(Unfinished, IdMap)> {
        let record = new_record(spec, image)?;
        let lock = {
            let _together = self.share_gate()?;
            make_locked(&self.state.slot(spec.id()), spec.id())?
        };
        let mut unfinished = Unfinished::in_slot(self.state.clone(), record, lock);
        let map = unfinished.claim_ids()?;
        Ok((unfinished, map))
    }

    fn share_gate(&self) -> Result<FileLock> {
        self.state.gate(FlockOperation::LockShared).map_err(failed("pass the gate"))
    }
}

fn make_locked(directory: &Path, id: &SandboxId) -> Result<Lock> {
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(taken(&format!("id `{id}`")));
        }
        made => made.map_err(failed("make its directory"))?,
    }
    Lock::take(directory).map_err(failed("lock its directory"))
}

pub(crate) fn new_record(spec: &ValidSpec, image: &Image) -> Result<Record> {
    let nonces = draw_nonces()?;
    let mut kept = spec.spec().clone();
    kept.image = Some(image.name.clone());
    // Its layers are in the record. A wake needs the snapshot no more, nor does the snapshot need to be there.
    kept.snapshot = None;
    // What was put into the sandbox is in the sandbox; the record would only be a second copy.
    kept.manifest.files.clear();
    let info = SandboxInfo {
        id: spec.id().clone(),
        name: spec.name().clone(),
        pool: None,
        provider: crate::NAME.to_owned(),
        status: SandboxStatus::Running,
        workdir: spec.workdir().clone(),
        created_ms: now_ms(),
        spec: kept,
        isolation: isolation::unknown(),
        life: "0".to_owned(),
    };
    let boot_id = boot_id().map_err(failed("read the boot id"))?;
    Ok(Record {
        info,
        client_nonce: nonces[0],
        guest_nonce: nonces[1],
        boot_id,
        block: None,
        ids: None,
        made_workspace: false,
        groups: Vec::new(),
        lower: image.lower.clone(),
        cow: Vec::new(),
        program_path: image.program_path().map(str::to_owned),
        wakes: 0,
    })
}

/// Draws the two secrets of a connection: the client presents the first to the guest, and the guest
/// answers with the second.
pub(crate) fn draw_nonces() -> Result<[[u8; 16]; 2]> {
    let mut nonces = [[0; 16]; 2];
    for nonce in &mut nonces {
        rustix::rand::getrandom(&mut *nonce, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| failed("draw a nonce")(error.into()))?;
    }
    Ok(nonces)
}
