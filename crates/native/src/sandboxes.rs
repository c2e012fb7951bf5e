//! The sandboxes of a state folder, as files and processes: found, listed, made, put to sleep and
//! connected to. Most of it blocks, so it is called on threads that may wait.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use eyot::internal::system_reason;
use eyot::{
    Error, ErrorKind, Isolation, Result, SandboxId, SandboxInfo, SandboxName, SandboxSpec, SandboxStatus,
    Usage, ValidSpec,
};
use eyot_guest::client::Connection;
use tokio::sync::Semaphore;

use crate::cgroup;
use crate::condition::Condition;
use crate::destroy::{FoundSandbox, sweep};
use crate::disk::Disks;
use crate::egress;
use crate::host::{self, SetupFailure};
use crate::host_ranges::HostRanges;
use crate::image::{ImageCache, ImageSources};
use crate::in_parts::in_parts;
use crate::isolation;
use crate::launcher::client::{Launcher, is_launcher_ended};
use crate::launcher::current::CurrentLauncher;
use crate::maker::{Maker, Prepared, as_root, preview};
use crate::options::NativeOptions;
use crate::ready::ReadyMark;
use crate::record::{Lock, Record, socket_path};
use crate::sleep::{note_asleep, put_to_sleep};
use crate::slots::{Shape, SlotStock};
use crate::state::StateDir;
use crate::unfinished::Unfinished;
use crate::wake::Asleep;

/// The sandboxes of a state folder, and what makes them. A provider shares it with the handles of
/// its sandboxes.
pub(crate) struct Sandboxes {
    pub(crate) state: StateDir,
    in_process: bool,
    pub(crate) fail_step: Option<String>,
    simulated: Option<serde_json::Value>,
    launcher: CurrentLauncher,
    images: ImageCache,
    pub(crate) sources: Option<Arc<ImageSources>>,
    pub(crate) disks: Disks,
    egress: egress::EgressProgram,
    swept: OnceLock<()>,
    /// Half-made sandboxes.
    slots: SlotStock,
    always_from_slots: bool,
    /// Limits the number of creates that prepare at once. The launcher makes one after the other
    /// anyway, and each create holds a dozen descriptors while it prepares.
    pub(crate) turns: Semaphore,
}

/// See [`Sandboxes::turns`].
const TURNS: usize = 4;

impl Sandboxes {
    /// Opens those of a state folder. Makes nothing.
    pub(crate) fn open(options: NativeOptions) -> Result<Self> {
        Ok(Self {
            state: StateDir::open(&options.state, options.simulated.as_ref())?,
            in_process: options.in_process,
            fail_step: options.fail_step,
            simulated: options.simulated,
            launcher: CurrentLauncher::default(),
            images: ImageCache::default(),
            sources: options.images,
            disks: Disks::default(),
            egress: egress::EgressProgram::default(),
            swept: OnceLock::new(),
            slots: SlotStock::new(options.slots)?,
            always_from_slots: options.always_from_slots,
            turns: Semaphore::new(TURNS),
        })
    }

    /// Says how a sandbox of this spec would be isolated.
    pub(crate) fn preview(&self, spec: &ValidSpec) -> Result<Isolation> {
        preview(&self.state, &self.images, &self.disks, self.launcher()?.as_ref(), spec)
    }

    /// Returns the launcher, with which things are made: so the state folder is made too.
    pub(crate) fn launcher(&self) -> Result<Arc<Launcher>> {
        self.state.make()?;
        self.launcher_of_existing()
    }

    /// Returns the launcher of a state folder in which there are sandboxes.
    pub(crate) fn launcher_of_existing(&self) -> Result<Arc<Launcher>> {
        self.launcher.get(&self.state, self.in_process)
    }

    /// Makes a sandbox. If the launcher ends meanwhile, the parts made so far are undone, and a new
    /// launcher makes the sandbox.
    pub(crate) fn make(&self, spec: &ValidSpec) -> Result<(Unfinished, UnixStream)> {
        match self.make_once(spec) {
            Err(error) if is_launcher_ended(&error) => self.make_once(spec),
            made => made,
        }
    }

    fn make_once(&self, spec: &ValidSpec) -> Result<(Unfinished, UnixStream)> {
        let maker = self.maker()?;
        let prepared = maker.prepare(spec, None)?;
        match self.make_from_slot(&maker, &prepared) {
            Ok(Some(made)) => Ok(made),
            Ok(None) => maker.make(prepared),
            Err(error) if self.always_from_slots => Err(error),
            Err(error) => {
                tracing::debug!(%error, "make a sandbox from a slot; it is made from nothing");
                maker.make(prepared)
            }
        }
    }

    fn make_from_slot(
        &self,
        maker: &Maker<'_>,
        prepared: &Prepared,
    ) -> Result<Option<(Unfinished, UnixStream)>> {
        if !self.always_from_slots && !self.keeps_slots() {
            return Ok(None);
        }
        let Some(shape) = Shape::of(prepared) else { return Ok(None) };
        let slot = match self.slots.take(&shape) {
            None if self.always_from_slots => maker.make_slot(&shape)?,
            taken => taken,
        };
        slot.map_or(Ok(None), |slot| maker.fill_slot(slot, prepared))
    }

    /// Makes slots for sandboxes like this one. Blocks.
    pub(crate) fn fill_slots(&self, spec: &ValidSpec) -> Result<usize> {
        self.slots.refill().run(&self.maker()?, spec, || true)?;
        Ok(self.slots.count())
    }

    /// Makes slots for more sandboxes like this one while no create is under way: what is asked for
    /// goes first. Blocks.
    pub(crate) fn refill_slots(&self, spec: ValidSpec) {
        let is_idle = || self.turns.available_permits() == TURNS;
        self.slots.refill_for(spec, |refill, spec| {
            if let Err(error) = self.maker().and_then(|maker| refill.run(&maker, spec, is_idle)) {
                tracing::debug!(%error, "make slots");
            }
        });
    }

    /// Removes the slots, and makes no more. Blocks.
    pub(crate) fn close_slots(&self) {
        self.slots.close();
    }

    /// Tells whether there may be slots.
    pub(crate) fn keeps_slots(&self) -> bool {
        self.slots.keeps_any()
    }

    /// Adds the cause on this host to an error, where it is known.
    pub(crate) fn explained(&self, error: Error) -> Error {
        host::explained(error, self.state.root(), self.simulated.as_ref())
    }

    fn maker(&self) -> Result<Maker<'_>> {
        let launcher = self.launcher()?;
        self.swept.get_or_init(|| self.sweep());
        Ok(Maker {
            state: &self.state,
            launcher,
            images: &self.images,
            disks: &self.disks,
            egress: &self.egress,
            fail_step: self.fail_step.as_deref(),
        })
    }

    pub(crate) fn wake(&self, asleep: Asleep) -> Result<(Unfinished, UnixStream)> {
        let spec = asleep.spec()?;
        self.maker()?.wake(asleep, &spec)
    }

    fn sweep(&self) {
        if let Err(error) = self.swept() {
            tracing::warn!(%error, "sweep the state folder");
        }
        let ranges = HostRanges::of_host();
        if as_root()
            && let Err(error) = ranges.make().and_then(|()| ranges.note_all(&self.state))
        {
            tracing::debug!(%error, "note the ranges of ids of this state folder");
        }
    }

    /// Sweeps the state folder, and returns the sandboxes that are there. Makes what is missing of
    /// an older or a restored folder, because things are moved there.
    fn swept(&self) -> io::Result<Vec<FoundSandbox>> {
        if self.state.has_sandboxes()
            && let Err(error) = self.state.make()
        {
            tracing::warn!(%error, "complete the state folder");
        }
        sweep(&self.state)
    }

    pub(crate) fn id_of(&self, id_or_name: &str) -> Result<SandboxId> {
        let id = match SandboxId::parse(id_or_name) {
            Ok(id) => Some(id),
            Err(_) => SandboxName::parse(id_or_name).ok().and_then(|name| self.state.id_of_name(&name)),
        };
        id.filter(|id| self.state.sandbox(id).exists()).ok_or_else(|| not_found(id_or_name))
    }

    /// Returns the record of a running sandbox.
    pub(crate) fn living(&self, id_or_name: &str) -> Result<Record> {
        let id = self.id_of(id_or_name)?;
        let (record, condition) = Condition::of(&self.state.sandbox(&id));
        match (record, condition) {
            (Some(record), Condition::Running) => Ok(record),
            (_, condition) => Err(condition.refusal(id_or_name)),
        }
    }

    /// Waits for the lock of a completed sandbox. Blocks while another process makes it, puts it to
    /// sleep or wakes it.
    pub(crate) fn locked(&self, id_or_name: &str) -> Result<(SandboxId, Lock)> {
        let id = self.id_of(id_or_name)?;
        let directory = self.state.sandbox(&id);
        let lost = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::destroyed(id_or_name),
            _ => Error::new(ErrorKind::Internal, format!("lock sandbox `{id_or_name}`: failed"))
                .with_source(error),
        };
        let lock = Lock::wait(&directory).map_err(lost)?;
        // An id is never used twice: what is there now is what was locked.
        if !directory.exists() {
            return Err(Error::destroyed(id_or_name));
        }
        ReadyMark::end_move(&directory).map_err(lost)?;
        Ok((id, lock))
    }

    pub(crate) fn sleep(&self, id_or_name: &str) -> Result<()> {
        let (id, _lock) = self.locked(id_or_name)?;
        let directory = self.state.sandbox(&id);
        let (record, is_running) = match Condition::of(&directory) {
            (Some(record), Condition::Running) => (record, true),
            (Some(record), Condition::Sleeping | Condition::Dead) => (record, false),
            (_, condition) => return Err(condition.refusal(id_or_name)),
        };
        let slept = note_asleep(&directory).and_then(|()| {
            if is_running {
                tokio::runtime::Handle::current().block_on(ask_guest_to_end(self, &record));
            }
            put_to_sleep(&directory, &record)
        });
        slept.map_err(|error| {
            if directory.exists() {
                let message = format!("put sandbox `{id_or_name}` to sleep: {}", system_reason(&error));
                Error::new(ErrorKind::Unavailable, message).with_source(error)
            } else {
                Error::destroyed(id_or_name)
            }
        })
    }

    /// Locks a sandbox that can be woken; `None` if it runs.
    pub(crate) fn asleep(&self, id_or_name: &str) -> Result<Option<Asleep>> {
        if self.living(id_or_name).is_ok() {
            return Ok(None);
        }
        let (id, lock) = self.locked(id_or_name)?;
        match Condition::of(&self.state.sandbox(&id)) {
            (_, Condition::Running) => Ok(None),
            (Some(record), Condition::Sleeping | Condition::Dead) => Ok(Some(Asleep { record, lock })),
            (_, condition) => Err(condition.refusal(id_or_name)),
        }
    }

    pub(crate) fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        let id = self.id_of(id_or_name)?;
        let (record, condition) = Condition::of(&self.state.sandbox(&id));
        match condition {
            Condition::Expired => Err(condition.refusal(id_or_name)),
            _ => self.describe((id, record, condition))?.ok_or_else(|| not_found(id_or_name)),
        }
    }

    /// Returns the description of a sandbox; `None` before its record is written and after it is
    /// removed.
    fn describe(&self, (id, record, condition): FoundSandbox) -> Result<Option<SandboxInfo>> {
        match (record, condition) {
            (_, Condition::Damaged) => damaged(&self.state, &id).map(Some),
            (record, _) => Ok(record.map(|record| SandboxInfo { status: condition.status(), ..record.info })),
        }
    }

    /// Lists the sandboxes as a sweep finds them.
    fn found(&self) -> Result<Vec<FoundSandbox>> {
        self.swept().map_err(|error| {
            Error::new(ErrorKind::Internal, "list sandboxes: read the state folder: failed")
                .with_source(error)
        })
    }

    pub(crate) fn list(&self) -> Result<Vec<SandboxInfo>> {
        self.found()?.into_iter().filter_map(|found| self.describe(found).transpose()).collect()
    }

    /// Lists the sandboxes, with what the groups of each running one count.
    pub(crate) fn list_with_usage(&self) -> Result<Vec<(SandboxInfo, Option<Usage>)>> {
        let found = self.found()?;
        let usages = in_parts(&found, |part| {
            let mut reader = cgroup::UsageReader::default();
            part.iter().map(|found| measured(found, &mut reader)).collect()
        });
        let listed = found.into_iter().zip(usages);
        let describe = |(found, usage)| Ok(self.describe(found)?.map(|info| (info, usage)));
        listed.filter_map(|found| describe(found).transpose()).collect()
    }
}

/// Reads what the groups of a running sandbox count.
fn measured(found: &FoundSandbox, reader: &mut cgroup::UsageReader) -> Option<Usage> {
    match found {
        (_, Some(record), Condition::Running) if !record.groups.is_empty() => {
            Some(reader.measure(&record.groups))
        }
        _ => None,
    }
}

/// Describes a sandbox whose record can't be read: its id, its name and its status are true, all
/// else is the default.
fn damaged(state: &StateDir, id: &SandboxId) -> Result<SandboxInfo> {
    let spec = SandboxSpec { id: Some(id.clone()), name: state.name_of(id), ..SandboxSpec::default() };
    let spec = spec.validate()?;
    let made = std::fs::metadata(state.sandbox(id)).and_then(|directory| directory.created()).ok();
    let since_1970 = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Ok(SandboxInfo {
        id: id.clone(),
        name: spec.name().clone(),
        pool: None,
        provider: crate::NAME.to_owned(),
        status: SandboxStatus::Damaged,
        workdir: spec.workdir().clone(),
        created_ms: i64::try_from(since_1970.as_millis()).unwrap_or_default(),
        spec: spec.spec().clone(),
        isolation: isolation::unknown(),
        life: String::new(),
    })
}

/// Makes the error for a sandbox that does not exist.
fn not_found(id_or_name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no sandbox `{id_or_name}`"))
        .with_hint("`eyot ls` shows those that are there")
}

pub(crate) async fn connect(sandboxes: &Sandboxes, record: &Record) -> Result<Connection> {
    let directory = sandboxes.state.sandbox(&record.info.id);
    let name = &record.info.name;
    let lost = |error: std::io::Error| {
        if directory.exists() {
            let failure = SetupFailure::of_goal(&format!("open sandbox `{name}`"), "", error);
            let message = format!("sandbox `{name}` does not answer");
            sandboxes.explained(Error::new(ErrorKind::Unavailable, message).with_source(failure))
        } else {
            Error::destroyed(name)
        }
    };
    let (_open, path) = socket_path(&directory).map_err(lost)?;
    let stream = tokio::net::UnixStream::connect(path).await.and_then(|stream| stream.into_std());
    Connection::reopen_local(stream.map_err(lost)?, record.client_nonce, record.guest_nonce).await
}

/// The longest wait for a guest to end everything before it is killed.
const GUEST_END_PATIENCE: Duration = Duration::from_secs(1);

/// Asks the guest of a sandbox that is marked as asleep to end. It tells its clients which of their
/// calls it never began, so that these can be made again after a wake. A guest that does not answer
/// is killed later.
async fn ask_guest_to_end(sandboxes: &Sandboxes, record: &Record) {
    let end = async { connect(sandboxes, record).await?.shutdown().await };
    match tokio::time::timeout(GUEST_END_PATIENCE, end).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a guest that is to sleep was not asked to end"),
        Err(_) => tracing::debug!("a guest that is to sleep did not end in time"),
    }
}
