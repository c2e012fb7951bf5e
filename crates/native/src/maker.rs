//! Builds sandboxes: for `create`, and for `wake`. It does all work between the claims and the
//! running guest. The parts belong to an [`Unfinished`] until the sandbox is complete, and are
//! removed with it if that never happens.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::{Error, NetworkMode, Result, ValidSpec};
use eyot_image::{FileLock, UseGuard};

use crate::cgroup::{CgroupSupport, GroupDescriptors, GroupPlan, GroupRequest, Home};
use crate::cow_mount::CowMount;
use crate::directory::{Layout, check_mounts};
use crate::disk::{self, Disk, Disks};
use crate::egress;
use crate::host::SetupFailure;
use crate::image::{Image, ImageCache, Lower};
use crate::isolation;
use crate::launcher::client::{Launcher, PendingSandbox};
use crate::launcher::guest_file::CheckedGuest;
use crate::plan::{Account, IdMap, Plan, USER_ID};
use crate::record::Record;
use crate::setup::{GUEST_PIDS, Setup};
use crate::snapshot_base;
use crate::state::{IdBlock, StateDir, account_uid};
use crate::unfinished::{ConfigPipe, ConfigSource, Origin, Own, Unfinished};
use crate::users::{SandboxUsers, wishes};

/// Builds sandboxes.
pub(crate) struct Maker<'a> {
    pub state: &'a StateDir,
    pub launcher: Arc<Launcher>,
    pub images: &'a ImageCache,
    pub disks: &'a Disks,
    pub egress: &'a egress::EgressProgram,
    /// The name of a step that fails on purpose: tests use it to show that a create fails closed.
    pub fail_step: Option<&'a str>,
}

/// A checked spec with all that is looked up before anything is claimed.
pub(crate) struct Prepared {
    /// The spec, completed with the image's wishes where the caller left a choice.
    pub spec: ValidSpec,
    pub sources: Vec<String>,
    /// The mounts with a copy on write.
    pub cow: Vec<CowMount>,
    pub disk: Option<disk::DiskRequest>,
    groups: GroupRequest,
    pub image: Image,
    /// Keeps the image's layers until the sandbox's record names them.
    pub held: Option<UseGuard>,
    /// Keeps the snapshot's files until then.
    pub held_snapshot: Option<FileLock>,
}

/// A guest that runs or waits for its configuration.
pub(crate) struct StartedGuest {
    /// The stream to the guest.
    pub stream: UnixStream,
    /// The channel for the listeners of the network `egress`.
    pub channel: Option<egress::Channel>,
}

/// Turns the failure of a step into the error of a create.
pub(crate) fn failed(what: &str) -> impl Fn(io::Error) -> Error {
    move |error| SetupFailure::new(what, "", error).into_error()
}

impl Maker<'_> {
    /// Checks the parts of a spec that depend on the host. `lower` has the layers of a sandbox that
    /// is woken.
    pub(crate) fn prepare(&self, spec: &ValidSpec, lower: Option<&Lower>) -> Result<Prepared> {
        let disk = self.disks.wanted(&spec.spec().limits)?;
        let groups = wanted_groups(spec);
        let name = spec.spec().image.as_deref();
        let (mut held, mut held_snapshot, mut copied) = (None, None, Vec::new());
        let (image, spec) = match (lower, &spec.spec().snapshot) {
            (Some(lower), _) => {
                (self.images.resolve_again(self.state, name, lower, as_root())?, spec.clone())
            }
            (None, Some(snapshot)) => {
                let begun = snapshot_base::begin_with(self.state, self.images, snapshot, as_root())?;
                (held_snapshot, copied) = (Some(begun.held), begun.cow);
                (begun.image, spec.with_image_defaults(begun.defaults)?)
            }
            (None, None) => {
                let (image, guard) = self.images.resolve(self.state, name, as_root())?;
                held = guard;
                let spec = spec.with_image_defaults(wishes(&image)?)?;
                (image, spec)
            }
        };
        let sources = check_mounts(&spec, self.state, &image)?;
        let cow = CowMount::all(spec.spec(), &sources);
        if copied.iter().any(|mount| !cow.contains(mount)) {
            return Err(Error::invalid("mounts", "must have the copies on write that the snapshot has")
                .with_hint("a fork has them: `eyot fork SNAPSHOT`"));
        }
        Ok(Prepared { spec, sources, cow, disk, groups, image, held, held_snapshot })
    }

    /// Builds on the claims everything up to the running guest. Blocks for a millisecond or two.
    pub(crate) fn build(
        &self,
        prepared: Prepared,
        unfinished: &mut Unfinished,
        map: IdMap,
    ) -> Result<UnixStream> {
        let (config, reader) = ConfigPipe::new()?;
        let users = SandboxUsers::of(&prepared.spec, map, &prepared.image.lower)?;
        let outlives = unfinished.workspace().is_some();
        let built =
            self.start_guest(&prepared, unfinished, (map, &users), reader, |record, has_events| {
                let (spec, users, late_files) = (&prepared.spec, &users, Vec::new());
                config.send(ConfigSource {
                    record,
                    spec,
                    users,
                    map,
                    has_memory_events: has_events,
                    late_files,
                })
            })?;
        if let Some(channel) = built.channel {
            self.start_egress(unfinished, channel, map)?;
        }
        if !outlives {
            // The guest starts up meanwhile.
            unfinished.write_record()?;
        }
        Ok(built.stream)
    }

    /// Builds everything up to the running guest, which takes its configuration from `config`.
    /// Right before it starts, `configure` is told the sandbox's record and whether the guest gets
    /// the file of memory events.
    pub(crate) fn start_guest(
        &self,
        prepared: &Prepared,
        unfinished: &mut Unfinished,
        (map, users): (IdMap, &SandboxUsers),
        config: OwnedFd,
        configure: impl FnOnce(&Record, bool) -> Result<()>,
    ) -> Result<StartedGuest> {
        let Prepared { spec, sources, cow, disk, groups: wanted, image, .. } = prepared;
        unfinished.record.groups = self.group_paths(spec, wanted);
        if let Origin::Asleep = unfinished.origin {
            // Whoever clears up after this process looks for its groups here. Those of a new sandbox are found by its id.
            unfinished.write_record()?;
        }
        let account = unfinished.record.id_block().map(|ids| account(spec, ids));
        let begun = self.begin(spec, account, self.make_birthplace(spec, wanted)?)?;
        let groups = self.make_groups(spec, wanted)?;
        let disk = disk.as_ref().map(|wanted| self.make_disk(wanted, unfinished)).transpose()?;
        let on_disk = disk.as_ref().map(Disk::path);
        let layout = Layout {
            directory: &unfinished.directory,
            files: on_disk.as_ref().unwrap_or(&unfinished.directory),
            spec,
            sources,
            cow,
            image,
            users,
            map,
            modes: RefCell::default(),
        };
        let guest_file = self.launcher.guest_file(self.state);
        let guest_path = guest_file.as_ref().and_then(CheckedGuest::path);
        let plan = self.plan(&layout, unfinished.workspace().as_deref(), disk.is_some(), guest_path)?;
        match unfinished.origin {
            Origin::New { .. } => layout.make(),
            Origin::Asleep => layout.renew(&plan),
        }
        .map_err(failed("prepare its directory"))?;
        unfinished.make_workspace(map, users.ids())?;
        let support = support(&self.launcher);
        unfinished.record.info.isolation = isolation::of_plan(&plan, spec, &support);
        self.check_required(spec, unfinished)?;
        if unfinished.workspace().is_some() {
            // Whoever removes what is left of a failed create must know which workspace was there before.
            unfinished.write_record()?;
        }
        let own = Own { groups, disk };
        configure(&unfinished.record, own.groups.memory_events.is_some())?;
        self.launch(begun, unfinished, plan, config, own)
    }

    /// Checks that what was made holds what the spec requires.
    pub(crate) fn check_required(&self, spec: &ValidSpec, made: &Unfinished) -> Result<()> {
        isolation::check_required(spec, &made.record.info.isolation, &support(&self.launcher), self.disks)
    }

    /// Has the launcher make the namespaces while the rest is prepared.
    fn begin(
        &self,
        spec: &ValidSpec,
        account: Option<Account>,
        into_group: Option<OwnedFd>,
    ) -> Result<PendingSandbox<'_>> {
        let own_network = spec.spec().network != NetworkMode::Host;
        self.launcher.begin(own_network, account, into_group.as_ref().map(AsFd::as_fd))
    }

    /// Starts the guest. A sandbox with the network `egress` gets a channel for its listeners.
    fn launch(
        &self,
        begun: PendingSandbox<'_>,
        unfinished: &mut Unfinished,
        plan: Plan,
        config: OwnedFd,
        own: Own,
    ) -> Result<StartedGuest> {
        if unfinished.record.info.spec.network != NetworkMode::Egress {
            let stream = unfinished.launch(begun, plan, config, None, own)?;
            return Ok(StartedGuest { stream, channel: None });
        }
        let (channel, theirs) = egress::Channel::new().map_err(failed(egress::STEP))?;
        let stream = unfinished.launch(begun, plan, config, Some(theirs), own)?;
        Ok(StartedGuest { stream, channel: Some(channel) })
    }

    /// Starts the egress program of a sandbox whose guest runs.
    pub(crate) fn start_egress(
        &self,
        unfinished: &Unfinished,
        channel: egress::Channel,
        map: IdMap,
    ) -> Result<()> {
        if self.fail_step == Some(egress::STEP) {
            return Err(failed(egress::STEP)(io::ErrorKind::PermissionDenied.into()));
        }
        unfinished.start_egress(self.egress, channel, map)
    }

    /// Makes the disk of a new sandbox, or attaches the one of a sandbox that is woken.
    fn make_disk(&self, wanted: &disk::DiskRequest, unfinished: &Unfinished) -> Result<Disk> {
        let made = match unfinished.origin {
            Origin::New { .. } => wanted.make(self.state, &unfinished.directory),
            Origin::Asleep => wanted.attach(&unfinished.directory),
        };
        match self.fail_step {
            Some(disk::STEP) => Err(failed(disk::STEP)(io::ErrorKind::PermissionDenied.into())),
            _ => made.map_err(failed(disk::STEP)),
        }
    }

    fn group_paths(&self, spec: &ValidSpec, wanted: &GroupRequest) -> Vec<PathBuf> {
        self.launcher.home().map_or(Vec::new(), |home| home.paths(spec.id().as_str(), wanted))
    }

    /// Makes the v2 control group that the sandbox is born into, if it gets one. Nothing is
    /// recorded for it: a process that finds an unfinished sandbox without a record derives the
    /// paths of its groups from its id.
    fn make_birthplace(&self, spec: &ValidSpec, wanted: &GroupRequest) -> Result<Option<OwnedFd>> {
        let made = self.launcher.home().map(|home| home.make_birthplace(spec.id().as_str(), wanted));
        made.unwrap_or(Ok(None)).map_err(|(step, error)| failed(step)(error))
    }

    /// Makes the other control groups, sets the limits of all, and opens the files by which the
    /// sandbox enters them.
    fn make_groups(&self, spec: &ValidSpec, wanted: &GroupRequest) -> Result<GroupDescriptors> {
        let Ok(home) = self.launcher.home() else {
            return Ok(GroupDescriptors::default());
        };
        let groups = home.make(spec.id().as_str(), wanted, self.fail_step);
        let groups = groups.map_err(|(step, error)| failed(step)(error))?;
        groups.descriptors().map_err(failed("open its control groups"))
    }

    fn plan(
        &self,
        layout: &Layout<'_>,
        workspace: Option<&Path>,
        has_disk: bool,
        guest_file: Option<&str>,
    ) -> Result<Plan> {
        let in_utf8 = |path: &Path| match path.to_str() {
            Some(path) => Ok(path.to_owned()),
            None => Err(Error::invalid("state", "must be a path in UTF-8")),
        };
        let Layout { spec, sources, image, users, map, .. } = *layout;
        let cow = layout.cow_overlays().map_err(failed("look at a folder to copy"))?;
        let directory = in_utf8(layout.directory)?;
        let workspace = workspace.map(in_utf8).transpose()?;
        let (directory, workspace) = (directory.as_str(), workspace.as_deref());
        let landlock_abi = crate::sys::landlock_abi();
        let processors = match spec.spec().limits.cpus {
            Some(_) => processors().map_err(failed("find out its processors"))?,
            None => Vec::new(),
        };
        let setup = Setup {
            spec,
            sources,
            cow: &cow,
            map,
            user: users.ids(),
            image,
            directory,
            workspace,
            landlock_abi,
            per_namespace_pids: kernel_is_at_least(PER_NAMESPACE_PIDS),
            own_ipc_limits: kernel_is_at_least(OWN_IPC_LIMITS),
            most_watches: most_watches(),
            fail_at: None,
            guest_file,
            groups: self.launcher.home().map_or(GroupPlan::default(), |home| home.plan(&wanted_groups(spec))),
            processors: &processors,
            has_disk,
        };
        let mut plan = setup.plan();
        match self.fail_step {
            // A step that the launcher takes by itself.
            Some(name) if !plan.force_failure(name) => {
                Err(failed(name)(io::Error::from_raw_os_error(libc::EPERM)))
            }
            _ => Ok(plan),
        }
    }
}

/// Predicts the protections of a sandbox of this spec from its plan alone. Nothing is made.
pub(crate) fn preview(
    state: &StateDir,
    images: &ImageCache,
    disks: &Disks,
    launcher: &Launcher,
    spec: &ValidSpec,
) -> Result<eyot::Isolation> {
    let (image, _held) = images.resolve(state, spec.spec().image.as_deref(), as_root())?;
    let map = if as_root() { IdMap::Range(IdBlock::shifted(1).range()) } else { caller_alone() };
    let landlock_abi = crate::sys::landlock_abi();
    let mounts = &spec.spec().mounts;
    let sources: Vec<String> =
        mounts.iter().map(|mount| mount.source.to_string_lossy().into_owned()).collect();
    let setup = Setup {
        spec,
        sources: &sources,
        cow: &[],
        map,
        user: (USER_ID, USER_ID),
        image: &image,
        directory: "",
        workspace: None,
        landlock_abi,
        per_namespace_pids: kernel_is_at_least(PER_NAMESPACE_PIDS),
        own_ipc_limits: kernel_is_at_least(OWN_IPC_LIMITS),
        most_watches: most_watches(),
        fail_at: None,
        guest_file: None,
        groups: GroupPlan::default(),
        processors: &[],
        has_disk: disks.check().is_ok(),
    };
    Ok(isolation::of_plan(&setup.plan(), spec, &support(launcher)))
}

/// Returns the support of control groups for this launcher's sandboxes.
pub(crate) fn support(launcher: &Launcher) -> CgroupSupport {
    launcher.home().map_or_else(|cause| CgroupSupport::none(cause.clone()), Home::support)
}

fn wanted_groups(spec: &ValidSpec) -> GroupRequest {
    GroupRequest::of(spec, u64::from(GUEST_PIDS), socket_bytes())
}

/// Returns the memory, in bytes, that data in TCP sockets may use on this host before the kernel
/// slows all of them down: the second of three numbers in `tcp_mem`, which counts pages.
fn socket_bytes() -> u64 {
    const UNKNOWN: u64 = 64 << 20;
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_mem").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.map_or(UNKNOWN, |pages| pages.saturating_mul(4096))
}

/// Returns the account of the sandbox with this block of ids: a host user of its own.
fn account(spec: &ValidSpec, ids: IdBlock) -> Account {
    let processes = spec.spec().limits.pids.unwrap_or(eyot::Limits::DEFAULT_PIDS);
    Account { uid: account_uid(ids.block), processes: processes.saturating_add(u64::from(GUEST_PIDS)) }
}

/// Lists the processors that this process may run on.
fn processors() -> io::Result<Vec<u32>> {
    let allowed = rustix::thread::sched_getaffinity(None)?;
    let is_allowed = |number: &u32| allowed.is_set(*number as usize);
    Ok((0..rustix::thread::CpuSet::MAX_CPU as u32).filter(is_allowed).collect())
}

/// The first kernel with a `pid_max` for each process namespace. Before, the number holds for the
/// whole host.
const PER_NAMESPACE_PIDS: (u32, u32) = (6, 14);
/// The first kernel on which the root of a user namespace may set the limits of its IPC namespace.
const OWN_IPC_LIMITS: (u32, u32) = (6, 9);

fn kernel_is_at_least(version: (u32, u32)) -> bool {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(version.0), Some(version.1))
}

/// Returns the number of inotify watches that one user of this host may have. The kernel allows
/// each at least 8,192.
fn most_watches() -> u32 {
    const LEAST: u32 = 8192;
    let text = std::fs::read_to_string("/proc/sys/user/max_inotify_watches").unwrap_or_default();
    text.trim().parse().unwrap_or(LEAST)
}

/// Tells whether this process is root, and so sandboxes get a range of host ids.
pub(crate) fn as_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the id map of an ordinary user's sandbox.
pub(crate) fn caller_alone() -> IdMap {
    IdMap::Single { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
}
