//! A sandbox that is being made or woken, with everything that was made for it so far, its guest
//! included. Dropping it undoes exactly that.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use eyot::{Error, ErrorKind, NetworkMode, Result, SandboxSpec, ValidSpec, WorkspaceSpec};
use eyot_egress::control::StartMessage;
use eyot_guest::environment;
use eyot_guest::protocol::{self, GuestConfig, LOG_BYTES, MEMORY_EVENTS_FD};
use rustix::process::{Resource, getrlimit};

use crate::cgroup::GroupDescriptors;
use crate::destroy::GuestHandle;
use crate::disk::Disk;
use crate::egress;
use crate::host_ranges::{self, HostRanges};
use crate::image;
use crate::launcher::client::{GuestDescriptors, PendingSandbox};
use crate::maker::{as_root, caller_alone, failed};
use crate::plan::{EGRESS_ID, IdMap, Plan, pack_filter};
use crate::ready::ReadyMark;
use crate::record::{GuestProcess, Lock, Record, is_running, kill_and_wait, socket_path};
use crate::seccomp::egress_filter;
use crate::state::{IdBlock, StateDir};
use crate::subordinate_ids::SubordinateIds;
use crate::users::SandboxUsers;
use crate::workspace;

/// A sandbox whose guest has not been adopted yet. Dropping it undoes everything.
pub(crate) struct Unfinished {
    pub state: StateDir,
    pub record: Record,
    pub directory: PathBuf,
    pub origin: Origin,
    guest: Option<GuestHandle>,
    finished: bool,
    _lock: Lock,
}

/// The state of the sandbox before.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Origin {
    /// The sandbox did not exist.
    New {
        /// The name was claimed for it.
        claimed_name: bool,
    },
    /// The sandbox was asleep.
    Asleep,
}

/// The parts that are made on the host for one sandbox alone and handed to the launcher.
pub(crate) struct Own {
    pub groups: GroupDescriptors,
    pub disk: Option<Disk>,
}

impl Unfinished {
    /// Begins with a locked directory. Nothing else was made for the sandbox yet.
    pub(crate) fn new(state: StateDir, record: Record, origin: Origin, lock: Lock) -> Self {
        let directory = state.sandbox(&record.info.id);
        Self { state, record, directory, origin, guest: None, finished: false, _lock: lock }
    }

    /// Begins a slot with its locked directory.
    pub(crate) fn in_slot(state: StateDir, record: Record, lock: Lock) -> Self {
        let directory = state.slot(&record.info.id);
        let mut slot = Self::new(state, record, Origin::New { claimed_name: false }, lock);
        slot.directory = directory;
        slot
    }

    /// Makes this slot the sandbox of `record`. Returns `false`, and leaves it a slot, if the id is
    /// in use.
    pub(crate) fn fill_slot(&mut self, record: Record) -> Result<bool> {
        let failed = failed("make a slot its directory");
        // Whoever clears up after this process finds its groups here: they have the slot's name.
        record.write(&self.directory).map_err(&failed)?;
        let block = record.id_block().map_or(0, |ids| ids.block);
        if !self.state.fill_slot(&self.record.info.id, &record.info.id, block).map_err(&failed)? {
            return Ok(false);
        }
        self.directory = self.state.sandbox(&record.info.id);
        self.record = record;
        Ok(true)
    }

    /// Tells whether the guest runs.
    pub(crate) fn has_live_guest(&self) -> bool {
        self.guest.as_ref().is_some_and(|guest| is_running(&guest.pidfd))
    }

    /// Sets the host name of the sandbox, from outside.
    pub(crate) fn set_host_name(&self, name: &str) -> Result<()> {
        let guest = self.guest.as_ref().ok_or_else(no_guest)?;
        crate::sys::set_host_name_of(guest.pidfd.as_fd(), name).map_err(failed("set its host name"))
    }

    /// Writes the record, for other processes.
    pub(crate) fn write_record(&self) -> Result<()> {
        self.record.write(&self.directory).map_err(failed("write its record"))
    }

    /// Claims a range of host ids if the caller is root. An ordinary user is mapped alone.
    pub(crate) fn claim_ids(&mut self) -> Result<IdMap> {
        if !as_root() {
            return Ok(caller_alone());
        }
        let first_try = u32::from_le_bytes([0, 1, 2, 3].map(|index| self.record.client_nonce[index]));
        let ranges = HostRanges::of_host();
        ranges.make().map_err(failed(host_ranges::STEP))?;
        let failed = failed("take a range of ids");
        let others = SubordinateIds::read().map_err(&failed)?;
        let wish = (&self.record.info.id, first_try);
        let block = ranges.take(&self.state, wish, &others).map_err(&failed)?;
        let none_left = || Error::new(ErrorKind::Quota, "create sandbox: every range of host ids is in use");
        let ids = IdBlock::shifted(block.ok_or_else(none_left)?);
        self.record.ids = Some(ids);
        Ok(IdMap::Range(ids.range()))
    }

    /// Returns the directory of the persistent workspace, if the spec asks for one.
    pub(crate) fn workspace(&self) -> Option<PathBuf> {
        match &self.record.info.spec.workspace {
            WorkspaceSpec::Ephemeral => None,
            WorkspaceSpec::Persistent { id, .. } => Some(self.state.workspace(id)),
        }
    }

    /// Makes the persistent workspace if the spec asks for one and it does not exist. `user` is the
    /// uid and gid that run commands.
    pub(crate) fn make_workspace(&mut self, map: IdMap, user: (u32, u32)) -> Result<()> {
        let info = &self.record.info;
        if let WorkspaceSpec::Persistent { id, .. } = &info.spec.workspace {
            self.record.made_workspace |= workspace::prepare(&self.state, id, &info.id, (map, user))?;
        }
        Ok(())
    }

    /// Has the launcher carry out the plan and start the guest, which reads its configuration from
    /// `config`.
    pub(crate) fn launch(
        &mut self,
        begun: PendingSandbox<'_>,
        plan: Plan,
        config: OwnedFd,
        egress: Option<OwnedFd>,
        own: Own,
    ) -> Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair().map_err(failed("make the guest's stream"))?;
        ours.set_nonblocking(true).map_err(failed("make the guest's stream"))?;
        let (_directory, path) = socket_path(&self.directory).map_err(failed("make the guest's socket"))?;
        let listener = UnixListener::bind(path).map_err(failed("make the guest's socket"))?;
        let (stream, listener) = (theirs.into(), listener.into());
        let Own { groups, disk } = own;
        let disk = disk.map(Disk::into_mount);
        let descriptors = GuestDescriptors { stream, listener, config, disk, egress, groups };
        let (pid, pidfd) = begun.finish(plan, &descriptors)?;
        // Held by pidfd even if its start time can't be read: the drop of `self` then kills it.
        match GuestProcess::of(pid) {
            Ok(process) => self.guest = Some(GuestHandle { process, pidfd }),
            Err(error) => {
                kill_and_wait(&pidfd).map_err(failed("end a guest that ended at once"))?;
                return Err(failed("start the guest")(error));
            }
        }
        Ok(ours)
    }

    /// Starts the egress program.
    pub(crate) fn start_egress(
        &self,
        program: &egress::EgressProgram,
        channel: egress::Channel,
        map: IdMap,
    ) -> Result<()> {
        let guest = self.guest.as_ref().ok_or_else(no_guest)?;
        let start = StartMessage {
            sandbox: self.record.info.name.to_string(),
            owner: rustix::process::geteuid().as_raw(),
            become_id: match map {
                IdMap::Single { .. } => None,
                IdMap::Range(range) => Some(range.host_id(EGRESS_ID)),
            },
            rules: self.record.info.spec.egress.clone(),
            filter: pack_filter(egress_filter()),
        };
        program.start(&self.directory, &guest.pidfd, channel, &start).map_err(failed(egress::STEP))
    }

    /// Records which guest the sandbox has. This completes a new sandbox, except for its adoption.
    /// A sandbox that is woken still counts as asleep: until the guest is adopted, it ends with its
    /// maker.
    pub(crate) fn note_guest(&self) -> Result<()> {
        let ready = self.running()?;
        let noted = match self.origin {
            Origin::New { .. } => ready.make(&self.directory),
            Origin::Asleep => ready.put_to_sleep().change(&self.directory),
        };
        noted.map_err(failed("note that it is ready"))
    }

    /// Records that the guest was adopted: a sandbox that slept is awake.
    pub(crate) fn note_adopted(&self) -> Result<()> {
        match self.origin {
            Origin::New { .. } => Ok(()),
            Origin::Asleep => {
                self.running()?.change(&self.directory).map_err(failed("note that it is ready"))
            }
        }
    }

    fn running(&self) -> Result<ReadyMark> {
        self.guest.as_ref().map(|guest| ReadyMark::running(guest.process)).ok_or_else(no_guest)
    }

    /// Completes the sandbox. From here on only a destroy removes it.
    pub(crate) fn finish(mut self) -> (Record, Option<GuestHandle>) {
        self.finished = true;
        (self.record.clone(), self.guest.take())
    }

    /// Removes a new sandbox. Puts one that was to be woken back to sleep.
    fn undo(&mut self) -> io::Result<()> {
        if let Some(guest) = &self.guest {
            kill_and_wait(&guest.pidfd)?;
        }
        crate::cgroup::remove(&self.record.groups)?;
        match self.origin {
            Origin::New { claimed_name } => self.remove(claimed_name),
            Origin::Asleep => ReadyMark::ASLEEP.change(&self.directory),
        }
    }

    fn remove(&self, claimed_name: bool) -> io::Result<()> {
        let info = &self.record.info;
        if claimed_name {
            self.state.release_name(&info.name, &info.id)?;
        }
        if let Some(made) = self.workspace().filter(|_| self.record.made_workspace) {
            eyot_image::remove_tree(&made)?;
        }
        eyot_image::remove_tree(&self.directory)?;
        match self.record.id_block() {
            Some(ids) => HostRanges::of_host().release(&self.state, ids.block, &info.id),
            None => Ok(()),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if let Err(error) = self.undo() {
            tracing::error!(%error, sandbox = %self.record.info.id, "undo what failed; the next sweep will");
        }
    }
}

fn no_guest() -> Error {
    Error::new(ErrorKind::Internal, "create sandbox: it has no guest")
}

/// The numbers of started processes continue at the next multiple of this after each wake, because
/// the host does not know how many an earlier guest has used.
const PROCESSES_PER_WAKE: u32 = 100_000;

/// The facts that a guest's configuration is made of.
pub(crate) struct ConfigSource<'a> {
    pub record: &'a Record,
    pub spec: &'a ValidSpec,
    pub users: &'a SandboxUsers,
    pub map: IdMap,
    /// The guest was handed the file that counts kills for want of memory.
    pub has_memory_events: bool,
    /// See [`GuestConfig::late_files`].
    pub late_files: Vec<(String, String)>,
}

impl ConfigSource<'_> {
    fn config(self) -> GuestConfig {
        let Self { record, spec, users, .. } = self;
        let lifecycle = &spec.spec().lifecycle;
        let deadline = |deadline: Option<u64>| deadline.filter(|_| lifecycle.auto_destroy);
        let path = record.program_path.iter().map(|path| ("PATH".to_owned(), path.clone()));
        let mut env = environment::completed(&path.collect::<Vec<_>>());
        environment::put_own_programs_first(&mut env, &users.default.home);
        if image::is_host(spec.spec().image.as_deref()) {
            env.extend(image::HOST_VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
        if spec.spec().network == NetworkMode::Egress {
            env.extend(egress::variables());
        }
        GuestConfig {
            client_nonce: record.client_nonce,
            guest_nonce: record.guest_nonce,
            ttl_ms: match record.wakes {
                0 => deadline(lifecycle.ttl_ms),
                _ => record.ttl_left_ms().map(|left| left.max(1)),
            },
            idle_timeout_ms: deadline(lifecycle.idle_timeout_ms),
            user: users.default.clone(),
            users: users.others.clone(),
            env,
            switch_user: matches!(self.map, IdMap::Range(_)),
            log_bytes: LOG_BYTES,
            forbid_setuid: writes_to_host(spec.spec()),
            max_processes: Some(most_processes(spec.spec().limits.pids)),
            memory_events_fd: self.has_memory_events.then_some(MEMORY_EVENTS_FD),
            last_process_id: record.wakes.wrapping_mul(PROCESSES_PER_WAKE),
            later_users: users.later.clone(),
            late_files: self.late_files,
        }
    }
}

/// Tells whether files that the sandbox writes outlive it on the host.
fn writes_to_host(spec: &SandboxSpec) -> bool {
    let is_persistent = matches!(spec.workspace, WorkspaceSpec::Persistent { .. });
    is_persistent || spec.mounts.iter().any(|mount| mount.writable)
}

/// The way of a guest's configuration to the guest. If it is dropped before it is used, the guest
/// ends.
#[derive(Debug)]
pub(crate) struct ConfigPipe(File);

impl ConfigPipe {
    /// Makes the pipe, and the guest's end of it.
    pub(crate) fn new() -> Result<(Self, OwnedFd)> {
        let flags = rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK;
        let made = rustix::pipe::pipe_with(flags).and_then(|(reader, writer)| {
            rustix::io::ioctl_fionbio(&reader, false)?;
            Ok((Self(File::from(writer)), reader))
        });
        made.map_err(|error| failed("hand over the configuration")(error.into()))
    }

    /// Hands over the configuration. More than a pipe's 64 KiB is an error.
    pub(crate) fn send(mut self, facts: ConfigSource<'_>) -> Result<()> {
        let bytes = protocol::encode(&facts.config());
        self.0.write_all(&bytes).map_err(failed("hand over the configuration"))
    }
}

/// Returns the process limit of every command. What is asked for can't be more than what our own user may have.
fn most_processes(asked: Option<u64>) -> u64 {
    let own = getrlimit(Resource::Nproc).maximum.unwrap_or(u64::MAX);
    asked.unwrap_or(eyot::Limits::DEFAULT_PIDS).min(own)
}
