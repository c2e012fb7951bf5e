//! Making one sandbox: its directory, its claims, its guest. Everything that is made is owned by [`Unfinished`] until
//! the sandbox is complete, and goes with it if it never is.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use eyot::{
    Error, ErrorKind, NetworkMode, Result, SandboxId, SandboxInfo, SandboxStatus, ValidSpec, WorkspaceSpec,
};
use eyot_egress::control::Start;
use eyot_guest::protocol::{self, GuestConfig, MEMORY_EVENTS_FD};

use crate::cgroup::{CgroupSupport, GroupDescriptors, GroupPlan, Home, Wanted};
use crate::directory::{Layout, check_mounts, make_workspace};
use crate::disk::{self, Disk, Disks};
use crate::egress;
use crate::host::SetupFailure;
use crate::image::{Image, ImageCache};
use crate::isolation;
use crate::launcher::client::{Begun, GuestDescriptors, Launcher};
use crate::plan::{EGRESS_ID, IdMap, Plan};
use crate::record::{GuestProcess, Lock, Record, boot_id, kill_and_wait, socket_path};
use crate::setup::{GUEST_PIDS, Setup};
use crate::state::{StateDir, block_base};
use crate::users::Users;

/// What makes sandboxes.
pub(crate) struct Maker<'a> {
    pub state: &'a StateDir,
    pub launcher: &'a Launcher,
    pub images: &'a ImageCache,
    pub disks: &'a Disks,
    pub egress: &'a egress::Program,
    /// For tests of failing closed: the name of a step that fails.
    pub fail_step: Option<&'a str>,
}

/// A sandbox whose guest runs but has not been adopted yet: dropping it undoes everything.
pub(crate) struct Unfinished {
    state: StateDir,
    record: Record,
    directory: PathBuf,
    claimed_name: bool,
    guest: Option<(GuestProcess, OwnedFd)>,
    finished: bool,
    _lock: Lock,
}

/// What is made on the host for one sandbox alone, and handed to the launcher.
struct Own {
    groups: GroupDescriptors,
    disk: Option<Disk>,
}

fn taken(what: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("create sandbox: {what} is in use"))
}

/// A path's inner failure as the create's.
fn failed(what: &str) -> impl Fn(io::Error) -> Error {
    move |error| SetupFailure::new(what, "", error).into_error()
}

impl Maker<'_> {
    /// Makes everything up to the running guest. Blocks for a millisecond or two.
    pub(crate) fn make(&self, spec: &ValidSpec) -> Result<(Unfinished, UnixStream)> {
        let as_root = rustix::process::geteuid().is_root();
        let sources = check_mounts(spec, self.state)?;
        let disk = self.disks.wanted(&spec.spec().limits)?;
        let wanted = wanted_groups(spec);
        let born_in_group = self.launcher.home().is_ok_and(|home| home.plan(&wanted).into);
        let early = match born_in_group {
            true => None,
            false => Some(self.begin(spec, None)?),
        };
        let image = self.images.resolve(self.state, spec.spec().image.as_deref(), as_root)?;
        let mut unfinished = self.claim(spec, &image)?;
        unfinished.record.groups = self.group_paths(spec, &wanted);
        let begun = early.map_or_else(|| self.begin(spec, self.make_birthplace(spec, &wanted)?), Ok)?;
        let groups = self.make_groups(spec, &wanted)?;
        let map = unfinished.claim_ids(as_root)?;
        let users = Users::of(spec, map, image.lower.as_ref())?;
        let disk = disk.map(|wanted| self.make_disk(&wanted, &unfinished.directory)).transpose()?;
        let on_disk = disk.as_ref().map(Disk::path);
        Layout {
            directory: &unfinished.directory,
            files: on_disk.as_ref().unwrap_or(&unfinished.directory),
            spec,
            sources: &sources,
            image: &image,
            users: &users,
            map,
        }
        .make()
        .map_err(failed("prepare its directory"))?;
        unfinished.make_workspace(map)?;
        let plan = self.plan(spec, map, &image, &sources, &unfinished, disk.is_some())?;
        let support = support(self.launcher);
        unfinished.record.info.isolation = isolation::of_plan(&plan, spec, &support);
        isolation::check_required(spec, &unfinished.record.info.isolation, &support, self.disks)?;
        let outlives = unfinished.workspace().is_some();
        if outlives {
            // Whoever removes what is left of a failed create must know which workspace was there before.
            unfinished.write_record()?;
        }
        let own = Own { groups, disk };
        let stream = self.launch(begun, &mut unfinished, plan, spec, &users, own)?;
        if !outlives {
            // The guest starts up meanwhile.
            unfinished.write_record()?;
        }
        Ok((unfinished, stream))
    }

    /// Has its namespaces made while everything else is.
    fn begin(&self, spec: &ValidSpec, into_group: Option<OwnedFd>) -> Result<Begun<'_>> {
        let own_network = spec.spec().network != NetworkMode::Host;
        self.launcher.begin(own_network, into_group.as_ref().map(AsFd::as_fd))
    }

    /// Starts the guest, and whoever serves its network.
    fn launch(
        &self,
        begun: Begun<'_>,
        unfinished: &mut Unfinished,
        plan: Plan,
        spec: &ValidSpec,
        users: &Users,
        own: Own,
    ) -> Result<UnixStream> {
        if spec.spec().network != NetworkMode::Egress {
            return unfinished.launch(begun, plan, spec, users, None, own);
        }
        let (channel, theirs) = egress::Channel::new().map_err(failed(egress::STEP))?;
        let map = plan.map;
        let stream = unfinished.launch(begun, plan, spec, users, Some(theirs), own)?;
        if self.fail_step == Some(egress::STEP) {
            return Err(failed(egress::STEP)(io::ErrorKind::PermissionDenied.into()));
        }
        unfinished.start_egress(self.egress, channel, map)?;
        Ok(stream)
    }

    /// Makes the disk that its files are to lie on.
    fn make_disk(&self, wanted: &disk::Wanted, directory: &Path) -> Result<Disk> {
        let made = wanted.make(self.state, directory).map_err(failed(disk::STEP))?;
        match self.fail_step {
            Some(disk::STEP) => Err(failed(disk::STEP)(io::ErrorKind::PermissionDenied.into())),
            _ => Ok(made),
        }
    }

    /// Takes the id and the name.
    fn claim(&self, spec: &ValidSpec, image: &Image) -> Result<Unfinished> {
        let record = new_record(spec, image)?;
        let (directory, lock) = self.claim_id(spec.id())?;
        let state = self.state.clone();
        let mut unfinished = Unfinished {
            state,
            record,
            directory,
            claimed_name: false,
            guest: None,
            finished: false,
            _lock: lock,
        };
        if !self.state.take_name(spec.name(), spec.id()).map_err(failed("take its name"))? {
            let error = taken(&format!("name `{}`", spec.name()));
            return Err(
                error.with_hint("use another name, or `get_or_create` if the one that is there will do")
            );
        }
        unfinished.claimed_name = true;
        Ok(unfinished)
    }

    /// Makes the sandbox's directory, locked.
    fn claim_id(&self, id: &SandboxId) -> Result<(PathBuf, Lock)> {
        let directory = self.state.sandbox(id);
        let _together =
            self.state.gate(rustix::fs::FlockOperation::LockShared).map_err(failed("pass the gate"))?;
        if self.state.trash(id).exists() {
            return Err(taken(&format!("id `{id}`")));
        }
        match std::fs::create_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(taken(&format!("id `{id}`")));
            }
            other => other.map_err(failed("make its directory"))?,
        }
        let lock = Lock::take(&directory).map_err(failed("lock its directory"))?;
        Ok((directory, lock))
    }

    fn group_paths(&self, spec: &ValidSpec, wanted: &Wanted) -> Vec<PathBuf> {
        self.launcher.home().map_or(Vec::new(), |home| home.paths(spec.id().as_str(), wanted))
    }

    /// Makes the control group that it is born into, if there is to be one. Whoever finds the sandbox unfinished and
    /// without a record knows by its id which groups may have been made.
    fn make_birthplace(&self, spec: &ValidSpec, wanted: &Wanted) -> Result<Option<OwnedFd>> {
        let made = self.launcher.home().map(|home| home.make_birthplace(spec.id().as_str(), wanted));
        made.unwrap_or(Ok(None)).map_err(|(step, error)| failed(step)(error))
    }

    /// Makes its other control groups, limits all, and opens what it takes to enter them.
    fn make_groups(&self, spec: &ValidSpec, wanted: &Wanted) -> Result<GroupDescriptors> {
        let Ok(home) = self.launcher.home() else {
            return Ok(GroupDescriptors::default());
        };
        let groups = home.make(spec.id().as_str(), wanted, self.fail_step);
        let groups = groups.map_err(|(step, error)| failed(step)(error))?;
        groups.descriptors().map_err(failed("open its control groups"))
    }

    fn plan(
        &self,
        spec: &ValidSpec,
        map: IdMap,
        image: &Image,
        sources: &[String],
        unfinished: &Unfinished,
        has_disk: bool,
    ) -> Result<Plan> {
        let in_utf8 = |path: &Path| match path.to_str() {
            Some(path) => Ok(path.to_owned()),
            None => Err(Error::invalid("state", "must be a path in UTF-8")),
        };
        let directory = in_utf8(&unfinished.directory)?;
        let workspace = unfinished.workspace().map(|path| in_utf8(&path)).transpose()?;
        let (directory, workspace) = (directory.as_str(), workspace.as_deref());
        let (landlock_abi, per_namespace_pids) = (crate::sys::landlock_abi(), has_per_namespace_pids());
        let processors = match spec.spec().limits.cpus {
            Some(_) => processors().map_err(failed("find out its processors"))?,
            None => Vec::new(),
        };
        let setup = Setup {
            spec,
            sources,
            map,
            image,
            directory,
            workspace,
            landlock_abi,
            per_namespace_pids,
            fail_at: None,
            groups: self.launcher.home().map_or(GroupPlan::default(), |home| home.plan(&wanted_groups(spec))),
            processors: &processors,
            has_disk,
        };
        let mut plan = setup.plan();
        if let Some(name) = self.fail_step {
            let index = plan.steps.iter().position(|step| step.name() == name);
            let Some(index) = index.and_then(|index| u32::try_from(index).ok()) else {
                // A step that the launcher takes by itself.
                return Err(failed(name)(io::Error::from_raw_os_error(libc::EPERM)));
            };
            plan.fail_at = Some(index);
        }
        Ok(plan)
    }
}

/// What would hold around a sandbox of this spec, from its plan alone: nothing is made.
pub(crate) fn preview(
    state: &StateDir,
    images: &ImageCache,
    disks: &Disks,
    launcher: &Launcher,
    spec: &ValidSpec,
) -> Result<eyot::Isolation> {
    let as_root = rustix::process::geteuid().is_root();
    let image = images.resolve(state, spec.spec().image.as_deref(), as_root)?;
    let map = match as_root {
        true => IdMap::Range { base: block_base(1) },
        false => caller_alone(),
    };
    let (landlock_abi, per_namespace_pids) = (crate::sys::landlock_abi(), has_per_namespace_pids());
    let mounts = &spec.spec().mounts;
    let sources: Vec<String> =
        mounts.iter().map(|mount| mount.source.to_string_lossy().into_owned()).collect();
    let setup = Setup {
        spec,
        sources: &sources,
        map,
        image: &image,
        directory: "",
        workspace: None,
        landlock_abi,
        per_namespace_pids,
        fail_at: None,
        groups: GroupPlan::default(),
        processors: &[],
        has_disk: disks.check().is_ok(),
    };
    Ok(isolation::of_plan(&setup.plan(), spec, &support(launcher)))
}

/// What control groups hold for the sandboxes of this launcher.
pub(crate) fn support(launcher: &Launcher) -> CgroupSupport {
    launcher.home().map_or_else(|cause| CgroupSupport::none(cause.clone()), Home::support)
}

fn wanted_groups(spec: &ValidSpec) -> Wanted {
    Wanted::of(spec, u64::from(GUEST_PIDS))
}

/// The processors that this process may run on.
fn processors() -> io::Result<Vec<u32>> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let is_allowed = |number: &u32| allowed.is_set(*number as usize);
    Ok((0..rustix::thread::CpuSet::MAX_CPU as u32).filter(is_allowed).collect())
}

/// Whether this kernel has `pid_max` per process namespace: 6.14 and later. Before, the number is the whole host's.
fn has_per_namespace_pids() -> bool {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

fn caller_alone() -> IdMap {
    IdMap::Single { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
}

fn new_record(spec: &ValidSpec, image: &Image) -> Result<Record> {
    let mut nonces = [[0; 16]; 2];
    for nonce in &mut nonces {
        rustix::rand::getrandom(&mut *nonce, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| failed("draw a nonce")(error.into()))?;
    }
    let mut kept = spec.spec().clone();
    kept.image = Some(image.name.clone());
    // What was put into the sandbox is in the sandbox; the record would only be a second copy.
    kept.manifest.files.clear();
    let info = SandboxInfo {
        id: spec.id().clone(),
        name: spec.name().clone(),
        provider: crate::NAME.to_owned(),
        status: SandboxStatus::Running,
        workdir: spec.workdir().clone(),
        created_ms: now_ms(),
        spec: kept,
        isolation: isolation::unknown(),
    };
    let boot_id = boot_id().map_err(failed("read the boot id"))?;
    Ok(Record {
        info,
        client_nonce: nonces[0],
        guest_nonce: nonces[1],
        boot_id,
        block: None,
        made_workspace: false,
        groups: Vec::new(),
    })
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Unfinished {
    /// What is known of the sandbox.
    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    fn write_record(&self) -> Result<()> {
        self.record.write(&self.directory).map_err(failed("write its record"))
    }

    /// Takes a range of host ids for root; an ordinary user is mapped alone.
    fn claim_ids(&mut self, as_root: bool) -> Result<IdMap> {
        if !as_root {
            return Ok(caller_alone());
        }
        let first_try = u32::from_le_bytes([0, 1, 2, 3].map(|index| self.record.client_nonce[index]));
        let block =
            self.state.take_block(&self.record.info.id, first_try).map_err(failed("take a range of ids"))?;
        let none_left = || Error::new(ErrorKind::Quota, "create sandbox: every range of host ids is in use");
        let block = block.ok_or_else(none_left)?;
        self.record.block = Some(block);
        Ok(IdMap::Range { base: block_base(block) })
    }

    /// The directory of its persistent workspace, if it has one.
    fn workspace(&self) -> Option<PathBuf> {
        match &self.record.info.spec.workspace {
            WorkspaceSpec::Ephemeral => None,
            WorkspaceSpec::Persistent { id, .. } => Some(self.state.workspace(id)),
        }
    }

    fn make_workspace(&mut self, map: IdMap) -> Result<()> {
        if let Some(path) = self.workspace() {
            self.record.made_workspace = make_workspace(&path, map).map_err(failed("make its workspace"))?;
        }
        Ok(())
    }

    fn launch(
        &mut self,
        begun: Begun<'_>,
        plan: Plan,
        spec: &ValidSpec,
        users: &Users,
        egress: Option<OwnedFd>,
        own: Own,
    ) -> Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair().map_err(failed("make the guest's stream"))?;
        ours.set_nonblocking(true).map_err(failed("make the guest's stream"))?;
        let (_directory, path) = socket_path(&self.directory).map_err(failed("make the guest's socket"))?;
        let listener = UnixListener::bind(path).map_err(failed("make the guest's socket"))?;
        let mut config = guest_config(&self.record, spec, users, plan.map);
        config.memory_events_fd = own.groups.memory_events.as_ref().map(|_| MEMORY_EVENTS_FD);
        let config = pipe_with(&protocol::encode(&config)).map_err(failed("hand over the configuration"))?;
        let (stream, listener) = (theirs.into(), listener.into());
        let Own { groups, disk } = own;
        let disk = disk.map(Disk::into_mount);
        let descriptors = GuestDescriptors { stream, listener, config, disk, egress, groups };
        let (pid, pidfd) = begun.finish(plan, &descriptors)?;
        // Held by pidfd even if its start time can't be read: the drop of `self` then kills it.
        let process = GuestProcess::of(pid);
        match process {
            Ok(process) => self.guest = Some((process, pidfd)),
            Err(error) => {
                kill_and_wait(&pidfd).map_err(failed("end a guest that ended at once"))?;
                return Err(failed("start the guest")(error));
            }
        }
        Ok(ours)
    }

    /// Starts the program that serves its network.
    fn start_egress(&self, program: &egress::Program, channel: egress::Channel, map: IdMap) -> Result<()> {
        let (_, guest) = self
            .guest
            .as_ref()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "create sandbox: there is no guest to serve"))?;
        let start = Start {
            sandbox: self.record.info.name.to_string(),
            owner: rustix::process::geteuid().as_raw(),
            become_id: match map {
                IdMap::Single { .. } => None,
                IdMap::Range { base } => Some(base + EGRESS_ID),
            },
            rules: self.record.info.spec.egress.clone(),
        };
        program.start(&self.directory, guest, channel, &start).map_err(failed(egress::STEP))
    }

    /// Notes that the sandbox is complete but for its adoption.
    pub(crate) fn mark_ready(&self) -> Result<()> {
        match &self.guest {
            Some((process, _)) => {
                process.mark_ready(&self.directory).map_err(failed("note that it is ready"))
            }
            None => Err(Error::new(ErrorKind::Internal, "create sandbox: there is no guest to note")),
        }
    }

    /// The sandbox is complete: from here on it is removed only by being destroyed.
    pub(crate) fn finish(mut self) -> (Record, Option<OwnedFd>) {
        self.finished = true;
        (self.record.clone(), self.guest.take().map(|(_, pidfd)| pidfd))
    }

    fn undo(&mut self) -> io::Result<()> {
        if let Some((_, pidfd)) = &self.guest {
            kill_and_wait(pidfd)?;
        }
        let info = &self.record.info;
        crate::cgroup::remove(&self.record.groups)?;
        if self.claimed_name {
            self.state.release_name(&info.name, &info.id)?;
        }
        if let Some(made) = self.workspace().filter(|_| self.record.made_workspace) {
            crate::remove::remove_tree(&made)?;
        }
        crate::remove::remove_tree(&self.directory)?;
        match self.record.block {
            Some(block) => self.state.release_block(block, &info.id),
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
            tracing::error!(%error, sandbox = %self.record.info.id, "undo a failed create; the next sweep will");
        }
    }
}

/// The variables that every command has, whoever runs it. The user's own come from the guest.
const BASIC_ENV: [(&str, &str); 2] = [("LANG", "C.UTF-8"), ("TZ", "UTC")];
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How much of a started process's log is kept.
const LOG_BYTES: u64 = 1 << 20;

fn guest_config(record: &Record, spec: &ValidSpec, users: &Users, map: IdMap) -> GuestConfig {
    let lifecycle = &spec.spec().lifecycle;
    let deadline = |deadline: Option<u64>| deadline.filter(|_| lifecycle.auto_destroy);
    let mut env: Vec<(String, String)> =
        BASIC_ENV.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    env.push(("PATH".to_owned(), format!("{}/.local/bin:{SYSTEM_PATH}", users.default.home)));
    if spec.spec().network == NetworkMode::Egress {
        env.extend(egress::variables());
    }
    GuestConfig {
        client_nonce: record.client_nonce,
        guest_nonce: record.guest_nonce,
        ttl_ms: deadline(lifecycle.ttl_ms),
        idle_timeout_ms: deadline(lifecycle.idle_timeout_ms),
        user: users.default.clone(),
        users: users.others.clone(),
        env,
        switch_user: matches!(map, IdMap::Range { .. }),
        log_bytes: LOG_BYTES,
        forbid_setuid: spec.spec().mounts.iter().any(|mount| mount.writable),
        max_processes: Some(spec.spec().limits.pids.unwrap_or(eyot::Limits::DEFAULT_PIDS)),
        memory_events_fd: None,
    }
}

/// A pipe that holds these bytes and nothing else. What does not fit into a pipe is an error: 64 KiB.
fn pipe_with(bytes: &[u8]) -> io::Result<OwnedFd> {
    let (reader, writer) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK)?;
    std::fs::File::from(writer).write_all(bytes)?;
    rustix::io::ioctl_fionbio(&reader, false)?;
    Ok(reader)
}
