//! The native provider. It makes sandboxes on this host through a launcher, and keeps them in a
//! state folder.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;
use eyot::internal::system_reason;
use eyot::{
    Capabilities, Capability, ContainerSpec, Created, Error, ErrorKind, Isolation, NetworkMode, PullPolicy,
    Result, SandboxCowMounts, SandboxImages, SandboxInfo, SandboxNamer, SandboxOperationUnsupported,
    SandboxProvider, SandboxSnapshots, SandboxSpec, Usage, ValidSpec,
};
use eyot_guest::client::{Connection, GUEST_CAPABILITIES, GuestDriver, GuestDriverParts, Meter};

use crate::apply::NativeCowMounts;
use crate::blocking::on_blocking_thread;
use crate::cgroup::{self, CgroupSupport};
use crate::condition::Condition;
use crate::destroy::{GuestHandle, destroy};
use crate::disk::Disks;
use crate::egress;
use crate::file_gate::SandboxMounts;
use crate::image::{NativeImages, image_store, is_absent, not_allowed_hint};
use crate::kept_snapshot;
use crate::launcher::client::is_launcher_ended;
use crate::lifecycle;
use crate::maker::support;
use crate::options::NativeOptions;
use crate::owner::{GroupMeter, SandboxDestroyer, verdict};
use crate::record::Record;
use crate::sandboxes::{Sandboxes, connect};
use crate::snapshots::NativeSnapshots;
use crate::unfinished::Unfinished;

/// Makes sandboxes with the Linux kernel alone. Cheap to share. The launcher starts with the first
/// create.
pub struct NativeProvider {
    sandboxes: Arc<Sandboxes>,
    capabilities: Capabilities,
}

impl NativeProvider {
    /// Opens a provider over a state folder. Makes nothing.
    pub fn new(options: NativeOptions) -> Result<Arc<Self>> {
        if options.in_process && options.slots > 0 {
            return Err(Error::invalid("slots", "needs a launcher that is a process, not one `in_process`"));
        }
        let sandboxes = Arc::new(Sandboxes::open(options)?);
        Ok(Arc::new(Self { sandboxes, capabilities: capabilities() }))
    }

    /// Makes the state folder, if need be. [`NativeProvider::new`] does not: a folder is made when
    /// something is to be kept in it, and a create makes it by itself.
    ///
    /// # Errors
    /// The cause, and how to fix it, of a `Setup` error.
    pub fn make_state_folder(&self) -> Result<()> {
        self.sandboxes.state.make().map_err(|error| self.sandboxes.explained(error))
    }

    /// Returns which limits control groups enforce for this provider's sandboxes, and why others
    /// are missing. Starts the launcher.
    pub async fn cgroup_support(&self) -> Result<CgroupSupport> {
        self.blocking(|sandboxes| Ok(support(sandboxes.launcher()?.as_ref()))).await
    }

    /// Fills the slots for creates like this spec, and returns how many there are: half-made sandboxes, so
    /// that such a create has little left to do. A provider with
    /// [`slots`](NativeOptions::slots) does this by itself after each create, for more of the same.
    /// Without slots, and for a spec that can't be made from one (a persistent workspace, a disk of
    /// its own, the host's network, another image than `host`), this does nothing.
    ///
    /// # Errors
    /// Those of a create.
    pub async fn fill_slots(&self, spec: &SandboxSpec) -> Result<usize> {
        let spec = spec.clone().validate()?;
        self.blocking(move |sandboxes| sandboxes.fill_slots(&spec)).await
    }

    /// Fills the slots in the background, for more sandboxes like this one.
    fn refill_slots(&self, spec: &ValidSpec) {
        if !self.sandboxes.keeps_slots() {
            return;
        }
        let (sandboxes, spec) = (Arc::clone(&self.sandboxes), spec.clone());
        tokio::task::spawn_blocking(move || sandboxes.refill_slots(spec));
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
        self.blocking(move |sandboxes| {
            let record = sandboxes.living(&key)?;
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
        work: impl FnOnce(&Sandboxes) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let sandboxes = Arc::clone(&self.sandboxes);
        on_blocking_thread(move || work(&sandboxes)).await
    }

    async fn make(&self, spec: &ValidSpec) -> Result<(Unfinished, UnixStream)> {
        let spec = spec.clone();
        let _turn = self.sandboxes.turns.acquire().await;
        self.blocking(move |sandboxes| sandboxes.make(&spec).map_err(|error| sandboxes.explained(error)))
            .await
    }

    fn refuse_pull_from_nowhere(&self, spec: &ValidSpec) -> Result<()> {
        match (&self.sandboxes.sources, spec.spec().container.pull) {
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
        let (Some(sources), Some(name)) = (&self.sandboxes.sources, &spec.image) else { return Ok(false) };
        self.make_state_folder()?;
        let store = image_store(self.sandboxes.state.root());
        let fetched = sources.fetch(&store, name, spec.container.pull).await;
        fetched.map_err(|error| error.context("create sandbox"))
    }

    /// Says of an image that is missing and not fetched for clients who can change that.
    fn with_advice(&self, error: Error, spec: &ValidSpec) -> Error {
        let (Some(sources), Some(name)) = (&self.sandboxes.sources, &spec.spec().image) else { return error };
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
        self.blocking(move |sandboxes| {
            let (record, condition) = Condition::of(&sandboxes.state.sandbox(&id));
            let known = record.is_some_and(|record| record.client_nonce == nonce);
            Ok(known && condition == Condition::Running)
        })
        .await
    }

    async fn wake_once(&self, id_or_name: &str) -> Result<Created> {
        let asleep = loop {
            let key = id_or_name.to_owned();
            match self.blocking(move |sandboxes| sandboxes.asleep(&key)).await? {
                Some(asleep) => break asleep,
                None => match self.open(id_or_name).await {
                    // Put to sleep once more since it was seen running.
                    Err(error) if error.is_sleeping() => {}
                    opened => return opened,
                },
            }
        };
        let turn = self.sandboxes.turns.acquire().await;
        let made = self
            .blocking(move |sandboxes| sandboxes.wake(asleep).map_err(|error| sandboxes.explained(error)))
            .await;
        drop(turn);
        let woken = match made {
            Ok((unfinished, stream)) => self.complete(unfinished, stream).await,
            Err(error) => Err(error),
        };
        woken.map_err(|error| as_wake(id_or_name, error))
    }

    fn created(&self, connection: Connection, record: Record, guest: Option<GuestHandle>) -> Created {
        let (state, known) = (self.sandboxes.state.clone(), record.clone());
        connection.set_verdict(Arc::new(move || verdict(&state, &known)));
        let owner = SandboxDestroyer {
            sandboxes: Arc::clone(&self.sandboxes),
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
        let directory = self.sandboxes.state.sandbox(&record.info.id);
        let lifecycle = Arc::new(lifecycle::Keeper(directory.clone()));
        let gate = Arc::new(SandboxMounts::of(&record, directory.clone()));
        let mut driver = GuestDriver::new(connection, parts).with_lifecycle(lifecycle).with_file_gate(gate);
        if record.info.spec.network == NetworkMode::Egress {
            driver = driver.with_egress(Arc::new(egress::EgressProgramClient::of(directory)));
        }
        Created { info: record.info, driver: Arc::new(driver), keeper: None }
    }
}

impl Drop for NativeProvider {
    /// Removes the slots, even if a handle of a sandbox outlives the provider.
    fn drop(&mut self) {
        self.sandboxes.close_slots();
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
        let (state, sources) = (self.sandboxes.state.root().to_owned(), self.sandboxes.sources.clone());
        Ok(Arc::new(NativeImages { state, sources, names }))
    }

    async fn isolation(&self) -> Result<Isolation> {
        let spec = SandboxSpec::default().validate()?;
        self.blocking(move |sandboxes| sandboxes.preview(&spec)).await
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
        let created = self.complete(unfinished, stream).await?;
        self.refill_slots(spec);
        Ok(created)
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        loop {
            let key = id_or_name.to_owned();
            let record = self.blocking(move |sandboxes| sandboxes.living(&key)).await?;
            match connect(&self.sandboxes, &record).await {
                Ok(connection) => return Ok(self.created(connection, record, None)),
                // Put to sleep, and perhaps woken, between the two: then the next look says so.
                Err(error) if !self.is_as_known(&record).await? => {
                    tracing::debug!(%error, "a sandbox changed while it was opened");
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn snapshots(&self) -> Result<Arc<dyn SandboxSnapshots>> {
        Ok(Arc::new(NativeSnapshots(Arc::clone(&self.sandboxes))))
    }

    fn cow_mounts(&self) -> Result<Arc<dyn SandboxCowMounts>> {
        Ok(Arc::new(NativeCowMounts(Arc::clone(&self.sandboxes))))
    }

    async fn sleep(&self, id_or_name: &str) -> Result<()> {
        let key = id_or_name.to_owned();
        self.blocking(move |sandboxes| sandboxes.sleep(&key)).await
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
        self.blocking(move |sandboxes| {
            let is_there = sandboxes.state.workspace(&id).try_exists();
            is_there.map_err(|error| Error::host(format!("look for the workspace `{id}`"), error))
        })
        .await
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        self.blocking(Sandboxes::list).await
    }

    async fn list_with_usage(&self) -> Result<Vec<(SandboxInfo, Option<Usage>)>> {
        self.blocking(Sandboxes::list_with_usage).await
    }

    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        let key = id_or_name.to_owned();
        self.blocking(move |sandboxes| sandboxes.info(&key)).await
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        let key = id_or_name.to_owned();
        self.blocking(move |sandboxes| {
            let id = sandboxes.id_of(&key)?;
            let lay_above_some = kept_snapshot::lies_above_some(&sandboxes.state, &id);
            let removed = destroy(&sandboxes.state, &id, None);
            if removed.map_err(|error| error.context(format!("destroy sandbox `{key}`")))? {
                if lay_above_some
                    && let Err(error) = kept_snapshot::collect(&sandboxes.state)
                {
                    tracing::warn!(%error, "remove the snapshots that nobody needs; a later removal tries again");
                }
                Ok(())
            } else {
                Err(Error::destroyed(&key))
            }
        })
        .await
    }
}

/// Returns the capabilities of this provider's sandboxes, which are the same on every sandboxes.
pub fn capabilities() -> Capabilities {
    use Capability::{
        ChangeDeadlines, Commit, CowMounts, Mounts, NetworkEgress, NetworkHost, PersistentWorkspace, Sleep,
        Snapshots, Users,
    };
    let own = [
        ChangeDeadlines,
        Commit,
        CowMounts,
        Mounts,
        NetworkEgress,
        NetworkHost,
        PersistentWorkspace,
        Sleep,
        Snapshots,
    ];
    let users = rustix::process::geteuid().is_root().then_some(Users);
    Capabilities::new(GUEST_CAPABILITIES.into_iter().chain(own).chain(users))
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
