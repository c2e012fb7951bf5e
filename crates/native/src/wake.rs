//! Waking a sleeping sandbox: a new guest over the same files, from the spec in its record. The
//! sandbox stays marked as asleep until its guest is adopted. So if a step fails or this process is
//! killed, the sandbox still sleeps.

use std::os::unix::net::UnixStream;

use eyot::{Error, ErrorKind, Result, SandboxInfo, ValidSpec};

use crate::create::draw_nonces;
use crate::files_move;
use crate::folder_change;
use crate::host_ranges::{self, HostRanges};
use crate::maker::{Maker, as_root, caller_alone, failed};
use crate::plan::IdMap;
use crate::record::{Lock, Record, boot_id};
use crate::sleep::put_to_sleep;
use crate::unfinished::{Origin, Unfinished};

/// A sleeping sandbox, locked by a process that may wake it.
pub(crate) struct Asleep {
    pub record: Record,
    pub lock: Lock,
}

impl Asleep {
    /// Returns the spec that it was made from.
    pub(crate) fn spec(&self) -> Result<ValidSpec> {
        self.record.info.spec.clone().validate()
    }
}

impl Maker<'_> {
    /// Makes everything up to the running guest. `spec` is the sandbox's own. Blocks for a
    /// millisecond or two.
    pub(crate) fn wake(&self, asleep: Asleep, spec: &ValidSpec) -> Result<(Unfinished, UnixStream)> {
        let Asleep { record, lock } = asleep;
        let map = map_of(&record)?;
        let directory = self.state.sandbox(&record.info.id);
        put_to_sleep(&directory, &record).map_err(failed("end what is left of its last guest"))?;
        folder_change::recover(&directory).map_err(failed("undo an apply"))?;
        let record =
            files_move::complete(self.state, &directory, record).map_err(failed("move its files"))?;
        if let Some(ids) = record.id_block() {
            let ranges = HostRanges::of_host();
            ranges.make().map_err(failed(host_ranges::STEP))?;
            ranges
                .keep(self.state, ids.block, &record.info.id)
                .map_err(failed("keep its range of ids"))??;
        }
        let prepared = self.prepare(spec, Some(&record.lower))?;
        if prepared.cow != record.cow {
            return Err(Error::new(
                ErrorKind::Conflict,
                "create sandbox: the folder of a copy on write was moved",
            )
            .with_hint("move it back: what the sandbox has changed lies above that folder"));
        }
        let record = renewed(record)?;
        let mut unfinished = Unfinished::new(self.state.clone(), record, Origin::Asleep, lock);
        let stream = self.build(prepared, &mut unfinished, map)?;
        Ok((unfinished, stream))
    }
}

/// Makes the record of the next life. It has new secrets, so that clients of the last guest can't
/// reach the new one.
fn renewed(record: Record) -> Result<Record> {
    let [client_nonce, guest_nonce] = draw_nonces()?;
    let boot_id = boot_id().map_err(failed("read the boot id"))?;
    let wakes = record.wakes.saturating_add(1);
    let info = SandboxInfo { life: wakes.to_string(), ..record.info };
    Ok(Record { info, client_nonce, guest_nonce, boot_id, wakes, groups: Vec::new(), ..record })
}

/// Returns the id map that fits the sandbox's files. The host's root is never mapped, whoever made
/// the sandbox.
fn map_of(record: &Record) -> Result<IdMap> {
    match (record.id_block(), as_root()) {
        (Some(ids), true) => Ok(IdMap::Range(ids.range())),
        (None, false) => Ok(caller_alone()),
        (made_by_root, _) => {
            let maker = if made_by_root.is_some() { "root" } else { "an ordinary user" };
            Err(Error::new(ErrorKind::Permission, format!("create sandbox: it was made by {maker}"))
                .with_hint("wake it as the user who made it"))
        }
    }
}
