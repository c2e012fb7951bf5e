//! The native provider. It makes sandboxes on this host through a launcher, and keeps them in a
//! state folder.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use eyot::internal::system_reason;
use eyot::{
    Capabilities, Capability, ContainerSpec, Created, Error, ErrorKind, Isolation, NetworkMode, PullPolicy,
    Result, SandboxId, SandboxImages, SandboxInfo, SandboxName, SandboxNamer, SandboxOperationUnsupported,
    SandboxProvider, SandboxSpec, SandboxStatus, Usage, ValidSpec,
};
use eyot_guest::client::{Connection, GuestDriver, GuestDriverParts, Meter};
use tokio::sync::Semaphore;

use crate::cgroup::{self, CgroupSupport};
use crate::condition::Condition;
use crate::destroy::{FoundSandbox, GuestHandle, destroy, sweep};
use crate::disk::Disks;
use crate::egress;
use crate::file_gate::SandboxMounts;
use crate::host::{self, SetupFailure};
use crate::image::{ImageCache, ImageSources, NativeImages, image_store, is_absent, not_allowed_hint};
use crate::in_parts::in_parts;
use crate::isolation;
use crate::launcher::client::{Launcher, is_launcher_ended};
use crate::launcher::current::CurrentLauncher;
use crate::lifecycle;
use crate::maker::{Maker, preview, support};
use crate::owner::{GroupMeter, SandboxDestroyer, verdict};
use crate::record::{Lock, Record, socket_path};
use crate::sleep::{note_asleep, put_to_sleep};
use crate::state::{StateDir, default_state_dir};
use crate::unfinished::Unfinished;
use crate::wake::Asleep;

/// The options of a provider.
#[derive(Debug, Clone)]
pub struct NativeOptions {
    /// The state folder. The first create makes it if need be, with mode 0700.
    pub state: PathBuf,
    /// Runs the launcher as a thread of this process, not as a process that starts with the first
    /// create. This is faster for a program that makes one sandbox and ends. For a server it is
    /// slower, and the sandboxes' first processes become its children.
    pub in_process: bool,
    /// The sources of images that the state folder's store does not have; none by default.
    pub images: Option<Arc<ImageSources>>,
    /// The name of a step that fails in every create: tests use it to show that a create fails
    /// closed.
    #[doc(hidden)]
    pub fail_step: Option<String>,
    /// Facts (see [`crate::host::Facts`]) that replace those of the host, for tests of diagnoses.
    /// They change what is refused and reported, never what is enforced.
    #[doc(hidden)]
    pub simulated: Option<serde_json::Value>,
}

impl Default for NativeOptions {
    fn default() -> Self {
        Self { state: default_state_dir(), in_process: false, images: None, fail_step: None, simulated: None }
    }
}

/// Makes sandboxes with the Linux kernel alone. Cheap to share. The launcher starts with the first
/// create.
pub struct NativeProvider {
    host: Arc<Host>,
    capabilities: Capabilities,
}

/// The state that the provider shares with its sandboxes.
pub(crate) struct Host {
    pub(crate) state: StateDir,
    in_process: bool,
    fail_step: Option<String>,
    simulated: Option<serde_json::Value>,
    launcher: CurrentLauncher,
    images: ImageCache,
    sources: Option<Arc<ImageSources>>,
    disks: Disks,
    egress: egress::EgressProgram,
    swept: OnceLock<()>,
    /// Limits the number of creates that prepare at once. The launcher makes one after the other
    /// anyway, and each create holds a dozen descriptors while it prepares.
    turns: Semaphore,
}

/// See [`Host::turns`].
const TURNS: usize = 4;

impl NativeProvider {
    /// Opens a provider over a state folder. Makes nothing.
    pub fn new(options: NativeOptions) -> Result<Arc<Self>> {
        let state = StateDir::open(&options.state, options.simulated.as_ref())?;
        let host = Arc::new(Host {
            state,
            in_process: options.in_process,
            fail_step: options.fail_step,
            simulated: options.simulated,
            launcher: CurrentLauncher::default(),
            images: ImageCache::default(),
            sources: options.images,
            disks: Disks::default(),
            egress: egress::EgressProgram::default(),
            swept: OnceLock::new(),
            turns: Semaphore::new(TURNS),
        });
        Ok(Arc::new(Self { host, capabilities: capabilities() }))
    }

    /// Makes the state folder, if need be. [`NativeProvider::new`] does not: a folder is made when
    /// something is to be kept in it, and a create makes it by itself.
    ///
    /// # Errors
    /// The cause, and how to fix it, of a `Setup` error.
    pub fn make_state_folder(&self) -> Result<()> {
        self.host.state.make().map_err(|error| self.host.explained(error))
    }

    /// Returns which limits control groups enforce for this provider's sandboxes, and why others
    /// are missing. Starts the launcher.
    pub async fn cgroup_support(&self) -> Result<CgroupSupport> {
        self.blocking(|host| Ok(support(host.launcher()?.as_ref()))).await
    }

    /// Checks that this host can enforce a disk limit; the error says why not.
    pub(crate) fn check_disk() -> std::result::Result<(), String> {
        Disks::default().check()
    }

    /// Freezes every process of a sandbox, or thaws them. While a sandbox is frozen, commands in it
    /// wait, and other calls fail with `unavailable` after ten seconds. A frozen sandbox can be
    /// destroyed.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` if the sandbox has no control group that can freeze; `Timeout` if
    /// a process could not be stopped in time.
    pub async fn freeze(&self, id_or_name: &str, frozen: bool) -> Result<()> {
        let key = id_or_name.to_owned();
        self.blocking(move |host| {
            let record = host.living(&key)?;
            let failed = |error: std::io::Error| {
                let verb = if frozen { "freeze" } else { "thaw" };
                let message = format!("{verb} sandbox `{key}`: {}", system_reason(&error));
                Error::new(ErrorKind::Timeout, message).with_source(error)
            };
            if cgroup::freeze(&record.groups, frozen).map_err(failed)? {
                Ok(())
            } else {
                Err(SandboxOperationUnsupported::new("freeze", crate::NAME, &[]).into())
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

    async fn make(&self, spec: &ValidSpec) -> Result<(Unfinished, UnixStream)> {
        let spec = spec.clone();
        let _turn = self.host.turns.acquire().await;
        self.blocking(move |host| host.make(&spec).map_err(|error| host.explained(error))).await
    }

    fn refuse_pull_from_nowhere(&self, spec: &ValidSpec) -> Result<()> {
        match (&self.host.sources, spec.spec().container.pull) {
            (None, PullPolicy::Always) => {
                Err(SandboxOperationUnsupported::new("create", crate::NAME, &["container.pull: always"])
                    .into())
            }
            _ => Ok(()),
        }
    }

    /// Fetches the image of a spec into the store, if that is allowed. Returns whether the store
    /// has it then.
    async fn fetch_image(&self, spec: &ValidSpec) -> Result<bool> {
        let spec = spec.spec();
        let (Some(sources), Some(name)) = (&self.host.sources, &spec.image) else { return Ok(false) };
        self.make_state_folder()?;
        let store = image_store(self.host.state.root());
        let fetched = sources.fetch(&store, name, spec.container.pull).await;
        fetched.map_err(|error| error.context("create sandbox"))
    }

    /// Says of an image that is missing and not fetched for clients who can change that.
    fn with_advice(&self, error: Error, spec: &ValidSpec) -> Error {
        let (Some(sources), Some(name)) = (&self.host.sources, &spec.spec().image) else { return error };
        if !is_absent(&error) || !sources.refuses(name) {
            return error;
        }
        error.with_hint(not_allowed_hint(name))
    }

    /// Shakes hands with the guest of a sandbox that was made or woken, and adopts it.
    async fn complete(&self, unfinished: Unfinished, stream: UnixStream) -> Result<Created> {
        let record = &unfinished.record;
        let connection = Connection::open_local(stream, record.client_nonce, record.guest_nonce).await?;
        unfinished.note_guest()?;
        adopt(&connection).await?;
        unfinished.note_adopted()?;
        let (record, guest) = unfinished.finish();
        Ok(self.created(connection, record, guest))
    }

    /// Tells whether a sandbox still runs with the guest that this record describes.
    async fn is_as_known(&self, record: &Record) -> Result<bool> {
        let (id, nonce) = (record.info.id.clone(), record.client_nonce);
        self.blocking(move |host| {
            let (record, condition) = Condition::of(&host.state.sandbox(&id));
            let known = record.is_some_and(|record| record.client_nonce == nonce);
            Ok(known && condition == Condition::Running)
        })
        .await
    }

    async fn wake_once(&self, id_or_name: &str) -> Result<Created> {
        let asleep = loop {
            let key = id_or_name.to_owned();
            match self.blocking(move |host| host.asleep(&key)).await? {
                Some(asleep) => break asleep,
                None => match self.open(id_or_name).await {
                    // Put to sleep once more since it was seen running.
                    Err(error) if error.is_sleeping() => {}
                    opened => return opened,
                },
            }
        };
        let turn = self.host.turns.acquire().await;
        let made = self.blocking(move |host| host.wake(asleep).map_err(|error| host.explained(error))).await;
        drop(turn);
        let woken = match made {
            Ok((unfinished, stream)) => self.complete(unfinished, stream).await,
            Err(error) => Err(error),
        };
        woken.map_err(|error| as_wake(id_or_name, error))
    }

    fn created(&self, connection: Connection, record: Record, guest: Option<GuestHandle>) -> Created {
        let (state, known) = (self.host.state.clone(), record.clone());
        connection.set_verdict(Arc::new(move || verdict(&state, &known)));
        let owner = SandboxDestroyer {
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
        let directory = self.host.state.sandbox(&record.info.id);
        let lifecycle = Arc::new(lifecycle::Keeper(directory.clone()));
        let gate = Arc::new(SandboxMounts::of(&record, directory.clone()));
        let mut driver = GuestDriver::new(connection, parts).with_lifecycle(lifecycle).with_file_gate(gate);
        if record.info.spec.network == NetworkMode::Egress {
            driver = driver.with_egress(Arc::new(egress::EgressProgramClient::of(directory)));
        }
        Created { info: record.info, driver: Arc::new(driver), keeper: None }
    }
}

/// Runs blocking work on a thread where it delays no other task.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorKind::Internal, "a blocking task ended early").with_source(error))?
}

impl Host {
    /// Returns the launcher, with which things are made: so the state folder is made too.
    fn launcher(&self) -> Result<Arc<Launcher>> {
        self.state.make()?;
        self.launcher.get(&self.state, self.in_process)
    }

    /// Makes a sandbox. If the launcher ends meanwhile, the parts made so far are undone, and a new
    /// launcher makes the sandbox.
    fn make(&self, spec: &ValidSpec) -> Result<(Unfinished, UnixStream)> {
        match self.make_once(spec) {
            Err(error) if is_launcher_ended(&error) => self.make_once(spec),
            made => made,
        }
    }

    fn make_once(&self, spec: &ValidSpec) -> Result<(Unfinished, UnixStream)> {
        self.maker()?.make(spec)
    }

    /// Adds the cause on this host to an error, where it is known.
    fn explained(&self, error: Error) -> Error {
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

    fn wake(&self, asleep: Asleep) -> Result<(Unfinished, UnixStream)> {
        let spec = asleep.spec()?;
        self.maker()?.wake(asleep, &spec)
    }

    fn sweep(&self) {
        if let Err(error) = self.swept() {
            tracing::warn!(%error, "sweep the state folder");
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

    fn id_of(&self, id_or_name: &str) -> Result<SandboxId> {
        let id = match SandboxId::parse(id_or_name) {
            Ok(id) => Some(id),
            Err(_) => SandboxName::parse(id_or_name).ok().and_then(|name| self.state.id_of_name(&name)),
        };
        id.filter(|id| self.state.sandbox(id).exists()).ok_or_else(|| not_found(id_or_name))
    }

    /// Returns the record of a running sandbox.
    fn living(&self, id_or_name: &str) -> Result<Record> {
        let id = self.id_of(id_or_name)?;
        let (record, condition) = Condition::of(&self.state.sandbox(&id));
        match (record, condition) {
            (Some(record), Condition::Running) => Ok(record),
            (_, condition) => Err(not_running(id_or_name, condition)),
        }
    }

    /// Waits for the lock of a completed sandbox. Blocks while another process makes it, puts it to
    /// sleep or wakes it.
    fn locked(&self, id_or_name: &str) -> Result<(SandboxId, Lock)> {
        let id = self.id_of(id_or_name)?;
        let directory = self.state.sandbox(&id);
        let lost = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::destroyed(id_or_name),
            _ => Error::new(ErrorKind::Internal, format!("lock sandbox `{id_or_name}`: failed"))
                .with_source(error),
        };
        let lock = Lock::wait(&directory).map_err(lost)?;
        // An id is never used twice: what is there now is what was locked.
        if directory.exists() { Ok((id, lock)) } else { Err(Error::destroyed(id_or_name)) }
    }

    fn sleep(&self, id_or_name: &str) -> Result<()> {
        let (id, _lock) = self.locked(id_or_name)?;
        let directory = self.state.sandbox(&id);
        let (record, is_running) = match Condition::of(&directory) {
            (Some(record), Condition::Running) => (record, true),
            (Some(record), Condition::Sleeping | Condition::Dead) => (record, false),
            (_, condition) => return Err(not_running(id_or_name, condition)),
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
    fn asleep(&self, id_or_name: &str) -> Result<Option<Asleep>> {
        if self.living(id_or_name).is_ok() {
            return Ok(None);
        }
        let (id, lock) = self.locked(id_or_name)?;
        match Condition::of(&self.state.sandbox(&id)) {
            (_, Condition::Running) => Ok(None),
            (Some(record), Condition::Sleeping | Condition::Dead) => Ok(Some(Asleep { record, lock })),
            (_, condition) => Err(not_running(id_or_name, condition)),
        }
    }

    fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        let id = self.id_of(id_or_name)?;
        let (record, condition) = Condition::of(&self.state.sandbox(&id));
        match condition {
            Condition::Expired => Err(not_running(id_or_name, condition)),
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

    fn list(&self) -> Result<Vec<SandboxInfo>> {
        self.found()?.into_iter().filter_map(|found| self.describe(found).transpose()).collect()
    }

    /// Lists the sandboxes, with what the groups of each running one count.
    fn list_with_usage(&self) -> Result<Vec<(SandboxInfo, Option<Usage>)>> {
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

fn not_running(id_or_name: &str, condition: Condition) -> Error {
    let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message);
    match condition {
        Condition::Sleeping => Error::sleeping(id_or_name),
        Condition::Expired => Error::past_deadline(id_or_name),
        Condition::Dead => Error::dead(id_or_name),
        Condition::Damaged => {
            let message = format!("sandbox `{id_or_name}` is damaged: its record can't be read");
            Error::new(ErrorKind::Conflict, message).with_hint(format!("remove it: eyot rm {id_or_name}"))
        }
        Condition::Making | Condition::Running => {
            unavailable(format!("sandbox `{id_or_name}` is still being made"))
        }
    }
}

/// Turns the error of a create into that of a wake, which goes through the same steps.
fn as_wake(name: &str, error: Error) -> Error {
    let text = error.to_string();
    let Some(reason) = text.strip_prefix("create sandbox: ") else {
        return error.context(format!("wake sandbox `{name}`"));
    };
    let told = Error::new(error.kind(), format!("wake sandbox `{name}`: {reason}"));
    let told = match error.hint() {
        Some(hint) => told.with_hint(hint),
        None => told,
    };
    told.with_source(error)
}

async fn connect(host: &Host, record: &Record) -> Result<Connection> {
    let directory = host.state.sandbox(&record.info.id);
    let name = &record.info.name;
    let lost = |error: std::io::Error| {
        if directory.exists() {
            let failure = SetupFailure::of_goal(&format!("open sandbox `{name}`"), "", error);
            let message = format!("sandbox `{name}` does not answer");
            host.explained(Error::new(ErrorKind::Unavailable, message).with_source(failure))
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
async fn ask_guest_to_end(host: &Host, record: &Record) {
    let end = async { connect(host, record).await?.shutdown().await };
    match tokio::time::timeout(GUEST_END_PATIENCE, end).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a guest that is to sleep was not asked to end"),
        Err(_) => tracing::debug!("a guest that is to sleep did not end in time"),
    }
}

/// Tells the guest that its sandbox is complete. Does not wait for the answer: the guest reads the
/// message before it sees an end of the stream, so if this process is killed now, it leaves a
/// complete sandbox.
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

    fn images(&self, names: SandboxNamer) -> Result<Arc<dyn SandboxImages>> {
        let (state, sources) = (self.host.state.root().to_owned(), self.host.sources.clone());
        Ok(Arc::new(NativeImages { state, sources, names }))
    }

    async fn isolation(&self) -> Result<Isolation> {
        let spec = SandboxSpec::default().validate()?;
        self.blocking(move |host| {
            preview(&host.state, &host.images, &host.disks, host.launcher()?.as_ref(), &spec)
        })
        .await
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        refuse_what_native_cannot(spec)?;
        self.refuse_pull_from_nowhere(spec)?;
        if spec.spec().container.pull == PullPolicy::Always {
            self.fetch_image(spec).await?;
        }
        let made = match self.make(spec).await {
            Err(error) if is_absent(&error) && self.fetch_image(spec).await? => self.make(spec).await,
            made => made,
        };
        let (unfinished, stream) = made.map_err(|error| self.with_advice(error, spec))?;
        self.complete(unfinished, stream).await
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        loop {
            let key = id_or_name.to_owned();
            let record = self.blocking(move |host| host.living(&key)).await?;
            match connect(&self.host, &record).await {
                Ok(connection) => return Ok(self.created(connection, record, None)),
                // Put to sleep, and perhaps woken, between the two: then the next look says so.
                Err(error) if !self.is_as_known(&record).await? => {
                    tracing::debug!(%error, "a sandbox changed while it was opened");
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn sleep(&self, id_or_name: &str) -> Result<()> {
        let key = id_or_name.to_owned();
        self.blocking(move |host| host.sleep(&key)).await
    }

    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        match self.wake_once(id_or_name).await {
            // It sleeps on, and a new launcher wakes it.
            Err(error) if is_launcher_ended(&error) => self.wake_once(id_or_name).await,
            woken => woken,
        }
    }

    async fn has_workspace(&self, id: &str) -> Result<bool> {
        let id = id.to_owned();
        self.blocking(move |host| {
            let is_there = host.state.workspace(&id).try_exists();
            is_there.map_err(|error| Error::host(format!("look for the workspace `{id}`"), error))
        })
        .await
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        self.blocking(Host::list).await
    }

    async fn list_with_usage(&self) -> Result<Vec<(SandboxInfo, Option<Usage>)>> {
        self.blocking(Host::list_with_usage).await
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        let key = id_or_name.to_owned();
        self.blocking(move |host| host.info(&key)).await
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        let key = id_or_name.to_owned();
        self.blocking(move |host| {
            let id = host.id_of(&key)?;
            let removed = destroy(&host.state, &id, None);
            if removed.map_err(|error| error.context(format!("destroy sandbox `{key}`")))? {
                Ok(())
            } else {
                Err(Error::destroyed(&key))
            }
        })
        .await
    }
}

/// Returns the capabilities of this provider's sandboxes, which are the same on every host.
pub fn capabilities() -> Capabilities {
    use Capability::{
        Append, Argv, AtomicWrite, Beneath, ChangeDeadlines, Deadlines, Dial, Glob, Grep, KillTree,
        LiveProcesses, Mounts, NetworkEgress, NetworkHost, PersistentWorkspace, Processes, Pty, RangedRead,
        Reopen, Shell, Signals, Sleep, Symlinks, Tar, Usage, Users, Watch,
    };
    let always = [
        Append,
        Argv,
        AtomicWrite,
        Beneath,
        ChangeDeadlines,
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
        Sleep,
        Symlinks,
        Tar,
        Usage,
        Watch,
    ];
    let users = rustix::process::geteuid().is_root().then_some(Users);
    Capabilities::new(always.into_iter().chain(users))
}

/// The container options that a spec may set although native has no container engine: the pull
/// policy alone.
fn all_but_pull(spec: &ValidSpec) -> ContainerSpec {
    ContainerSpec { pull: spec.spec().container.pull, ..ContainerSpec::default() }
}

/// Refuses a spec that asks for something that native can't do. Nothing is made before.
fn refuse_what_native_cannot(spec: &ValidSpec) -> Result<()> {
    let refuse =
        |option: &str| Err(SandboxOperationUnsupported::new("create", crate::NAME, &[option]).into());
    let security = &spec.spec().security;
    let drops_all = security.dropped_capabilities() == u64::MAX;
    match () {
        () if spec.spec().container != all_but_pull(spec) => refuse("container"),
        () if spec.spec().network == NetworkMode::Bridge => refuse("network: bridge"),
        () if !security.no_new_privileges => refuse("security.no_new_privileges: false"),
        () if !drops_all => refuse("security.drop_capabilities without ALL"),
        () => Ok(()),
    }
}
