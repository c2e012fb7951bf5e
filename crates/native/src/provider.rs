//! The provider: sandboxes of this host, made by a launcher, kept in a state folder.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use async_trait::async_trait;
use eyot::{
    Capabilities, Capability, Created, Error, ErrorKind, Isolation, NetworkMode, Result, SandboxId,
    SandboxInfo, SandboxName, SandboxOperationUnsupported, SandboxProvider, SandboxSpec, SandboxStatus,
    Usage, ValidSpec,
};
use eyot_guest::client::{Connection, Destroyer, GuestDriver, GuestDriverParts, Meter};
use tokio::sync::Semaphore;

use crate::cgroup::{self, CgroupSupport};
use crate::create::{Maker, Unfinished, preview, support};
use crate::destroy::{abandon, destroy, is_alive, sweep};
use crate::disk::Disks;
use crate::egress;
use crate::host::{self, SetupFailure};
use crate::image::ImageCache;
use crate::launcher::client::Launcher;
use crate::record::{GuestProcess, Record, socket_path};
use crate::state::{StateDir, default_state_dir};

/// How a provider is made.
#[derive(Debug, Clone)]
pub struct NativeOptions {
    /// The state folder; made if need be, mode 0700.
    pub state: PathBuf,
    /// Sandboxes are made by this process itself, not by a launcher process that is started with the first one. Quicker
    /// for a program that makes one and ends; slower, and with the sandboxes' first processes as children of its own,
    /// for a server.
    pub in_process: bool,
    /// For tests of failing closed: the step of the set-up with this name fails in every create.
    #[doc(hidden)]
    pub fail_step: Option<String>,
    /// For tests of what is said about a host: facts (see [`crate::host::Facts`]) in the place of those that are found.
    /// They change what is refused and said, never what is enforced.
    #[doc(hidden)]
    pub simulated: Option<serde_json::Value>,
}

impl Default for NativeOptions {
    fn default() -> Self {
        Self { state: default_state_dir(), in_process: false, fail_step: None, simulated: None }
    }
}

/// Makes sandboxes with the Linux kernel's own means. Cheap to share; the launcher is started with the first create.
pub struct NativeProvider {
    host: Arc<Host>,
    capabilities: Capabilities,
}

/// What the provider and its sandboxes share.
pub(crate) struct Host {
    pub(crate) state: StateDir,
    in_process: bool,
    fail_step: Option<String>,
    simulated: Option<serde_json::Value>,
    launcher: OnceLock<Launcher>,
    images: ImageCache,
    disks: Disks,
    egress: egress::Program,
    swept: OnceLock<()>,
    /// How many creates prepare at once. The launcher makes one after the other anyway, and each holds a dozen
    /// descriptors while it prepares.
    turns: Semaphore,
}

/// See [`Host::turns`].
const TURNS: usize = 4;

impl NativeProvider {
    /// A provider over a state folder.
    pub fn new(options: NativeOptions) -> Result<Arc<Self>> {
        let state = StateDir::open(&options.state, options.simulated.as_ref())?;
        let (launcher, images, swept) = (OnceLock::new(), ImageCache::default(), OnceLock::new());
        let host = Arc::new(Host {
            state,
            in_process: options.in_process,
            fail_step: options.fail_step,
            simulated: options.simulated,
            launcher,
            images,
            disks: Disks::default(),
            egress: egress::Program::default(),
            swept,
            turns: Semaphore::new(TURNS),
        });
        Ok(Arc::new(Self { host, capabilities: capabilities() }))
    }

    /// What control groups do for the sandboxes that this provider makes, and why not more. Starts the launcher.
    pub async fn cgroup_support(&self) -> Result<CgroupSupport> {
        self.blocking(|host| Ok(support(host.launcher()?))).await
    }

    /// Stops every process of a sandbox where it is, or lets all go on. Calls to one that is stopped wait; it can be
    /// destroyed as it is.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` where the sandbox has no control group that can do so; `Timeout` if a process can't be
    /// stopped now.
    pub async fn freeze(&self, id_or_name: &str, frozen: bool) -> Result<()> {
        let key = id_or_name.to_owned();
        self.blocking(move |host| {
            let record = host.living(&key)?;
            let failed = |error: std::io::Error| {
                let verb = if frozen { "freeze" } else { "thaw" };
                let message = format!("{verb} sandbox `{key}`: {}", crate::sentence(&error));
                Error::new(ErrorKind::Timeout, message).with_source(error)
            };
            match cgroup::freeze(&record.groups, frozen).map_err(failed)? {
                true => Ok(()),
                false => Err(SandboxOperationUnsupported::new("freeze", crate::NAME, &[]).into()),
            }
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Host) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let host = Arc::clone(&self.host);
        on_blocking_thread(move || work(&host)).await
    }

    fn created(&self, connection: Connection, record: Record, guest: Option<OwnedFd>) -> Created {
        // A guest does not come back, so whoever loses it has lost the sandbox.
        let name = record.info.name.clone();
        connection.set_closed_error(ErrorKind::Destroyed, format!("sandbox `{name}` has been destroyed"));
        let owner = Owner {
            host: Arc::clone(&self.host),
            id: record.info.id.clone(),
            guest: guest.map(Arc::new),
            connection: connection.clone(),
        };
        let parts = GuestDriverParts {
            provider: crate::NAME.to_owned(),
            workdir: record.info.workdir.clone(),
            capabilities: self.capabilities.clone(),
            isolation: record.info.isolation.clone(),
            destroyer: Arc::new(owner),
            meter: (!record.groups.is_empty())
                .then(|| Arc::new(GroupMeter(record.groups.clone())) as Arc<dyn Meter>),
        };
        let mut driver = GuestDriver::new(connection, parts);
        if record.info.spec.network == NetworkMode::Egress {
            let directory = self.host.state.sandbox(&record.info.id);
            driver = driver.with_egress(Arc::new(egress::Control::of(directory)));
        }
        Created { info: record.info, driver: Arc::new(driver) }
    }
}

/// Measures a sandbox by its control groups.
struct GroupMeter(Vec<PathBuf>);

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

/// What a sandbox's driver needs to destroy it.
struct Owner {
    host: Arc<Host>,
    id: SandboxId,
    guest: Option<Arc<OwnedFd>>,
    connection: Connection,
}

#[async_trait]
impl Destroyer for Owner {
    async fn destroy(&self) -> Result<()> {
        self.end(destroy).await
    }

    async fn abandon(&self) -> Result<()> {
        self.end(abandon).await
    }
}

impl Owner {
    async fn end(&self, how: fn(&StateDir, &SandboxId, Option<&OwnedFd>) -> Result<bool>) -> Result<()> {
        let (host, id, guest) = (Arc::clone(&self.host), self.id.clone(), self.guest.clone());
        self.connection.set_closed_error(ErrorKind::Destroyed, Error::destroyed(&self.id).to_string());
        on_blocking_thread(move || how(&host.state, &id, guest.as_deref())).await?;
        self.connection.close();
        Ok(())
    }
}

async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorKind::Internal, "a blocking task ended early").with_source(error))?
}

impl Host {
    fn launcher(&self) -> Result<&Launcher> {
        if let Some(launcher) = self.launcher.get() {
            return Ok(launcher);
        }
        // Two first creates may each start one; the second one's ends with its drop.
        let started = Launcher::start(self.in_process)?;
        if let Ok(home) = started.home() {
            cgroup::note(&self.state.cgroups(), home).map_err(|error| {
                let message = format!("note where control groups are made: {}", crate::sentence(&error));
                Error::new(ErrorKind::Setup, message).with_source(error)
            })?;
        }
        Ok(self.launcher.get_or_init(|| started))
    }

    /// An error with its cause on this host, where that is known.
    fn explained(&self, error: Error) -> Error {
        host::explained(error, self.state.root(), self.simulated.as_ref())
    }

    fn make(&self, spec: &ValidSpec) -> Result<(Unfinished, UnixStream)> {
        self.swept.get_or_init(|| self.sweep());
        Maker {
            state: &self.state,
            launcher: self.launcher()?,
            images: &self.images,
            disks: &self.disks,
            egress: &self.egress,
            fail_step: self.fail_step.as_deref(),
        }
        .make(spec)
    }

    fn sweep(&self) {
        if let Err(error) = sweep(&self.state) {
            tracing::warn!(%error, "sweep the state folder");
        }
    }

    fn id_of(&self, id_or_name: &str) -> Result<SandboxId> {
        let not_found = || {
            Error::new(ErrorKind::NotFound, format!("there is no sandbox `{id_or_name}`"))
                .with_hint("`eyot ls` shows those that are there")
        };
        let id = match SandboxId::parse(id_or_name) {
            Ok(id) => Some(id),
            Err(_) => SandboxName::parse(id_or_name).ok().and_then(|name| self.state.id_of_name(&name)),
        };
        id.filter(|id| self.state.sandbox(id).exists()).ok_or_else(not_found)
    }

    /// The record of a sandbox that can be used.
    fn living(&self, id_or_name: &str) -> Result<Record> {
        let id = self.id_of(id_or_name)?;
        let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message);
        let (record, status) = self.look_at(&id);
        match (record, status) {
            (Some(record), SandboxStatus::Running) => Ok(record),
            (Some(record), SandboxStatus::Dead) if record.may_have_expired() => {
                Err(Error::destroyed(id_or_name).with_hint("its deadline (ttl or idle) has passed"))
            }
            (Some(_), SandboxStatus::Dead) => {
                Err(unavailable(format!("sandbox `{id_or_name}` has no processes any more"))
                    .with_hint(format!("the host may have been restarted; remove it: eyot rm {id_or_name}")))
            }
            _ => Err(unavailable(format!("sandbox `{id_or_name}` is still being made"))),
        }
    }

    /// What is known of a sandbox, and how it is now.
    fn look_at(&self, id: &SandboxId) -> (Option<Record>, SandboxStatus) {
        let directory = self.state.sandbox(id);
        let ready = GuestProcess::read(&directory).ok().flatten().is_some();
        let status = match ready {
            false => SandboxStatus::Creating,
            true if is_alive(&directory) => SandboxStatus::Running,
            true => SandboxStatus::Dead,
        };
        let record = Record::read(&directory).ok().map(|mut record| {
            record.info.status = status;
            record
        });
        (record, status)
    }

    fn list(&self) -> Result<Vec<SandboxInfo>> {
        self.sweep();
        let ids = self.state.ids("sandboxes").map_err(|error| {
            Error::new(ErrorKind::Internal, "list sandboxes: read the state folder: failed")
                .with_source(error)
        })?;
        Ok(ids.iter().filter_map(|id| self.look_at(id).0).map(|record| record.info).collect())
    }
}

async fn connect(host: &Host, record: &Record) -> Result<Connection> {
    let directory = host.state.sandbox(&record.info.id);
    let name = &record.info.name;
    let lost = |error: std::io::Error| match directory.exists() {
        true => {
            let failure = SetupFailure::of_goal(&format!("open sandbox `{name}`"), "", error);
            let message = format!("sandbox `{name}` does not answer");
            host.explained(Error::new(ErrorKind::Unavailable, message).with_source(failure))
        }
        false => Error::destroyed(name),
    };
    let (_open, path) = socket_path(&directory).map_err(lost)?;
    let stream = tokio::net::UnixStream::connect(path).await.map_err(lost)?;
    Connection::open(stream, record.client_nonce, record.guest_nonce).await
}

/// Tells the guest that its sandbox is complete. It reads what was sent before it sees an end of the stream, so that the
/// answer need not be waited for: whoever is killed now leaves a complete sandbox.
async fn adopt(connection: &Connection) -> Result<()> {
    let own = connection.clone();
    let mut adopting = Box::pin(async move { own.adopt().await });
    let sent = std::future::poll_fn(|context| Poll::Ready(adopting.as_mut().poll(context))).await;
    if let Poll::Ready(answered) = sent {
        return answered;
    }
    tokio::spawn(async move {
        if let Err(error) = adopting.await {
            tracing::debug!(%error, "a sandbox was gone before it was adopted");
        }
    });
    Ok(())
}

#[async_trait]
impl SandboxProvider for NativeProvider {
    fn name(&self) -> &str {
        crate::NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn isolation(&self) -> Result<Isolation> {
        let spec = SandboxSpec::default().validate()?;
        self.blocking(move |host| preview(&host.state, &host.images, &host.disks, host.launcher()?, &spec))
            .await
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        refuse_what_native_cannot(spec)?;
        let spec = spec.clone();
        let turn = self.host.turns.acquire().await;
        let made = self.blocking(move |host| host.make(&spec).map_err(|error| host.explained(error))).await;
        drop(turn);
        let (unfinished, stream) = made?;
        let lost = |error| {
            Error::new(ErrorKind::Setup, "create sandbox: reach its guest: failed").with_source(error)
        };
        let stream = tokio::net::UnixStream::from_std(stream).map_err(lost)?;
        let record = unfinished.record();
        let connection = Connection::open(stream, record.client_nonce, record.guest_nonce).await?;
        unfinished.mark_ready()?;
        adopt(&connection).await?;
        let (record, guest) = unfinished.finish();
        Ok(self.created(connection, record, guest))
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        let key = id_or_name.to_owned();
        let record = self.blocking(move |host| host.living(&key)).await?;
        let connection = connect(&self.host, &record).await?;
        Ok(self.created(connection, record, None))
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        self.blocking(Host::list).await
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        let key = id_or_name.to_owned();
        self.blocking(move |host| {
            let id = host.id_of(&key)?;
            let removed = destroy(&host.state, &id, None);
            match removed.map_err(|error| error.context(format!("destroy sandbox `{key}`")))? {
                true => Ok(()),
                false => Err(Error::destroyed(&key)),
            }
        })
        .await
    }
}

fn capabilities() -> Capabilities {
    use Capability::{
        Append, Argv, AtomicWrite, Beneath, Deadlines, Dial, Glob, Grep, KillTree, LiveProcesses, Mounts,
        NetworkEgress, NetworkHost, PersistentWorkspace, Processes, Pty, RangedRead, Reopen, Shell, Signals,
        Symlinks, Tar, Usage, Users, Watch,
    };
    let always = [
        Append,
        Argv,
        AtomicWrite,
        Beneath,
        Deadlines,
        Dial,
        Glob,
        Grep,
        KillTree,
        LiveProcesses,
        Mounts,
        NetworkEgress,
        NetworkHost,
        PersistentWorkspace,
        Processes,
        Pty,
        RangedRead,
        Reopen,
        Shell,
        Signals,
        Symlinks,
        Tar,
        Usage,
        Watch,
    ];
    let users = rustix::process::geteuid().is_root().then_some(Users);
    Capabilities::new(always.into_iter().chain(users))
}

/// Refuses, before anything is made, what a spec asks for and native does not do.
fn refuse_what_native_cannot(spec: &ValidSpec) -> Result<()> {
    let refuse =
        |option: &str| Err(SandboxOperationUnsupported::new("create", crate::NAME, &[option]).into());
    let security = &spec.spec().security;
    let drops_all = security.drop_capabilities.iter().any(|name| name.eq_ignore_ascii_case("all"));
    match () {
        () if !security.no_new_privileges => refuse("security.no_new_privileges: false"),
        () if !drops_all => refuse("security.drop_capabilities without ALL"),
        () => Ok(()),
    }
}
