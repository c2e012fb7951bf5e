//! A sandbox with Eyot's guest inside, on any backend that opens streams to it: the guest's driver,
//! over a stream that is opened again when it is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use eyot::{
    ByteRange, ByteStream, Capabilities, ConfinedPath, CreateDirOptions, DirEntry, EgressDecision,
    EgressRules, Error, ErrorKind, ExecRequest, Execution, FileStat, GlobOptions, GlobResult, GrepOptions,
    GrepResult, Isolation, KeepRequest, KeptAttachment, KeptControl, KeptInfo, Lifecycle, LiveProcesses, Log,
    LogQuery, ProcessId, ProcessInfo, PublishedPort, RemoveOptions, Result, SandboxDriver,
    SandboxOperationUnsupported, SandboxPath, Signal, StartTerms, TarInOptions, TcpStream, Usage, WatchEvent,
    WatchOptions, WriteOptions,
};
use eyot_guest::client::{Connection, Destroyer, GuestDriver, GuestDriverParts, Verdict};
use eyot_guest::protocol::container::ContainerConfig;
use eyot_guest::protocol::encode;
use futures_util::stream::BoxStream;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;

/// Writes a guest's configuration, to one that waits for it.
pub(crate) async fn send_config(
    stream: &mut (impl AsyncWrite + Unpin),
    config: &ContainerConfig,
) -> Result<()> {
    let config = encode(config);
    let too_large = |_| Error::new(ErrorKind::TooLarge, "the sandbox's variables are too large");
    let length = u32::try_from(config.len()).map_err(too_large)?.to_le_bytes();
    let lost = |error| Error::new(ErrorKind::Unavailable, "the sandbox's guest is gone").with_source(error);
    stream.write_all(&[&length[..], &config].concat()).await.map_err(lost)?;
    stream.flush().await.map_err(lost)
}

/// Makes the error of a call that was in flight when the stream to a sandbox that runs on was lost.
pub(crate) fn lost_stream() -> Error {
    let message = "the stream to the sandbox was lost while the call was in flight";
    Error::new(ErrorKind::Unavailable, message)
        .with_hint("the sandbox runs on; whether the call had its effect is not known")
}

/// Makes the verdict for the calls that were in flight when the backend can't say why a stream ended.
pub(crate) fn unknown_end(error: &Error) -> Verdict {
    let (text, hint) = (error.to_string(), error.hint().map(str::to_owned));
    Arc::new(move || {
        let error = Error::new(ErrorKind::Unavailable, text.clone());
        hint.iter().fold(error, |error, hint| error.with_hint(hint.clone()))
    })
}

/// The backend of one sandbox: the only part of its driver that knows whose it is.
#[async_trait]
pub(crate) trait GuestBackend: Send + Sync + 'static {
    /// Returns the name of the provider.
    fn provider(&self) -> &'static str;

    /// Returns the name of the sandbox.
    fn sandbox(&self) -> String;

    /// Opens another stream to the guest of the same life. If that life has ended, the error says so.
    async fn reconnect(&self) -> Result<Connection>;

    /// Removes the sandbox.
    async fn destroy(&self) -> Result<()>;

    /// Removes the sandbox of a create that failed.
    async fn abandon(&self) -> Result<()>;

    /// Lists the ports that were published.
    async fn published_ports(&self) -> Result<Vec<PublishedPort>>;
}

/// A driver over streams to a guest.
pub(crate) struct LinkedDriver<B> {
    backend: B,
    capabilities: Capabilities,
    isolation: Isolation,
    workdir: SandboxPath,
    current: Mutex<Option<Arc<GuestDriver>>>,
    /// Held while the stream is opened again, so that one task does so.
    turn: Semaphore,
}

/// The guest's driver needs a destroyer, but this driver destroys the sandbox itself.
struct Nobody;

#[async_trait]
impl Destroyer for Nobody {
    async fn destroy(&self) -> Result<()> {
        Ok(())
    }
}

impl<B: GuestBackend> LinkedDriver<B> {
    /// Makes a driver with an open connection.
    pub(crate) fn new(
        backend: B,
        capabilities: Capabilities,
        (isolation, workdir): (Isolation, SandboxPath),
        connection: Connection,
    ) -> Self {
        let (current, turn) = (Mutex::new(None), Semaphore::new(1));
        let driver = Self { backend, capabilities, isolation, workdir, current, turn };
        driver.hold(connection);
        driver
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<GuestDriver>>> {
        // Only a plain value is moved in and out.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, connection: Connection) -> Arc<GuestDriver> {
        let parts = GuestDriverParts {
            provider: self.backend.provider().to_owned(),
            workdir: self.workdir.clone(),
            capabilities: self.capabilities.clone(),
            isolation: self.isolation.clone(),
            destroyer: Arc::new(Nobody),
            meter: None,
        };
        let guest = Arc::new(GuestDriver::new(connection, parts));
        *self.lock() = Some(Arc::clone(&guest));
        guest
    }

    fn open_one(&self) -> Option<Arc<GuestDriver>> {
        self.lock().as_ref().filter(|guest| !guest.connection().is_closed()).cloned()
    }

    /// Returns the guest's driver over an open stream.
    async fn guest(&self) -> Result<Arc<GuestDriver>> {
        if let Some(guest) = self.open_one() {
            return Ok(guest);
        }
        let _turn = self.turn.acquire().await;
        if let Some(guest) = self.open_one() {
            return Ok(guest);
        }
        Ok(self.hold(self.backend.reconnect().await?))
    }

    fn say_destroyed(&self) -> Option<Connection> {
        let connection = self.lock().as_ref().map(|guest| guest.connection().clone());
        if let Some(connection) = &connection {
            let reason = Error::destroyed(self.backend.sandbox()).to_string();
            connection.set_closed_error(ErrorKind::Destroyed, reason);
        }
        connection
    }
}

// A method that is added to the trait must be answered here, too.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl<B: GuestBackend> SandboxDriver for LinkedDriver<B> {
    fn provider(&self) -> &str {
        self.backend.provider()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn workdir(&self) -> &SandboxPath {
        &self.workdir
    }

    fn is_connected(&self) -> bool {
        self.open_one().is_some()
    }

    async fn destroy(&self) -> Result<()> {
        let connection = self.say_destroyed();
        self.backend.destroy().await?;
        connection.iter().for_each(Connection::close);
        Ok(())
    }

    async fn abandon(&self) -> Result<()> {
        let connection = self.say_destroyed();
        self.backend.abandon().await?;
        connection.iter().for_each(Connection::close);
        Ok(())
    }

    async fn read(&self, file: &ConfinedPath, range: ByteRange) -> Result<ByteStream> {
        self.guest().await?.read(file, range).await
    }

    async fn write(&self, file: &ConfinedPath, content: ByteStream, options: WriteOptions) -> Result<u64> {
        self.guest().await?.write(file, content, options).await
    }

    async fn stat(&self, file: &ConfinedPath) -> Result<FileStat> {
        self.guest().await?.stat(file).await
    }

    async fn list(&self, directory: &ConfinedPath) -> Result<Vec<DirEntry>> {
        self.guest().await?.list(directory).await
    }

    async fn exists(&self, file: &ConfinedPath) -> Result<bool> {
        self.guest().await?.exists(file).await
    }

    async fn create_dir(&self, directory: &ConfinedPath, options: CreateDirOptions) -> Result<()> {
        self.guest().await?.create_dir(directory, options).await
    }

    async fn remove(&self, file: &ConfinedPath, options: RemoveOptions) -> Result<()> {
        self.guest().await?.remove(file, options).await
    }

    async fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> Result<()> {
        self.guest().await?.rename(from, to).await
    }

    async fn exec(&self, request: ExecRequest) -> Result<Execution> {
        self.guest().await?.exec(request).await
    }

    async fn glob(&self, options: &GlobOptions) -> Result<GlobResult> {
        self.guest().await?.glob(options).await
    }

    async fn grep(&self, options: &GrepOptions) -> Result<GrepResult> {
        self.guest().await?.grep(options).await
    }

    async fn tar_out(&self, root: &ConfinedPath) -> Result<ByteStream> {
        self.guest().await?.tar_out(root).await
    }

    async fn tar_in(&self, directory: &ConfinedPath, tar: ByteStream, options: TarInOptions) -> Result<u64> {
        self.guest().await?.tar_in(directory, tar, options).await
    }

    async fn watch(
        &self,
        place: &ConfinedPath,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, Result<WatchEvent>>> {
        self.guest().await?.watch(place, options).await
    }

    async fn dial(&self, port: u16) -> Result<Box<dyn TcpStream>> {
        self.guest().await?.dial(port).await
    }

    async fn published_ports(&self) -> Result<Vec<PublishedPort>> {
        self.backend.published_ports().await
    }

    async fn usage(&self) -> Result<Usage> {
        self.guest().await?.usage().await
    }

    async fn live_processes(&self) -> Result<LiveProcesses> {
        self.guest().await?.live_processes().await
    }

    async fn start(&self, request: ExecRequest, terms: StartTerms) -> Result<ProcessInfo> {
        self.guest().await?.start(request, terms).await
    }

    async fn write_stdin(&self, process: ProcessId, data: Bytes, ends: bool) -> Result<()> {
        self.guest().await?.write_stdin(process, data, ends).await
    }

    async fn processes(&self) -> Result<Vec<ProcessInfo>> {
        self.guest().await?.processes().await
    }

    async fn wait(&self, process: ProcessId) -> Result<ProcessInfo> {
        self.guest().await?.wait(process).await
    }

    async fn observe_end(&self, process: ProcessId) -> Result<ProcessInfo> {
        self.guest().await?.observe_end(process).await
    }

    async fn logs(&self, process: ProcessId, query: LogQuery) -> Result<Log> {
        self.guest().await?.logs(process, query).await
    }

    async fn kill(&self, process: ProcessId, signal: Option<Signal>) -> Result<()> {
        self.guest().await?.kill(process, signal).await
    }

    async fn keep(&self, request: KeepRequest) -> Result<KeptAttachment> {
        self.guest().await?.keep(request).await
    }

    async fn attach(&self, id: &str, from: Option<u64>) -> Result<KeptAttachment> {
        self.guest().await?.attach(id, from).await
    }

    async fn kept_commands(&self) -> Result<Vec<KeptInfo>> {
        self.guest().await?.kept_commands().await
    }

    async fn kept_end(&self, id: &str) -> Result<KeptInfo> {
        self.guest().await?.kept_end(id).await
    }

    async fn control_kept(&self, id: &str, control: KeptControl) -> Result<()> {
        self.guest().await?.control_kept(id, control).await
    }

    // The backend's record holds the deadlines, which no call changes, and no proxy of ours is on its way out.

    async fn set_lifecycle(&self, _: &Lifecycle) -> Result<()> {
        self.unsupported("set_lifecycle")
    }

    async fn egress_rules(&self) -> Result<EgressRules> {
        self.unsupported("egress_rules")
    }

    async fn set_egress_rules(&self, _: &EgressRules) -> Result<()> {
        self.unsupported("set_egress_rules")
    }

    async fn egress_decisions(
        &self,
        _: usize,
        _: bool,
    ) -> Result<BoxStream<'static, Result<EgressDecision>>> {
        self.unsupported("egress_decisions")
    }
}

impl<B: GuestBackend> LinkedDriver<B> {
    fn unsupported<T>(&self, operation: &str) -> Result<T> {
        Err(SandboxOperationUnsupported::new(operation, self.backend.provider(), &[]).into())
    }
}
