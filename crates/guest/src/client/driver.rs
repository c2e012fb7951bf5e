//! A guest as a `SandboxDriver`: each method is one call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use eyot::{
    ByteRange, ByteStream, Capabilities, ConfinedPath, CreateDirOptions, DirEntry, EgressDecision,
    EgressRules, Error, ErrorKind, ExecRequest, Execution, FileStat, GlobOptions, GlobResult, GrepOptions,
    GrepResult, Isolation, KILL_CONFIRM_MS, KeepRequest, KeptAttachment, KeptControl, KeptInfo, Lifecycle,
    LiveProcesses, Log, LogQuery, ProcessId, ProcessInfo, RemoveOptions, Result, SandboxDriver,
    SandboxOperationUnsupported, SandboxPath, Signal, StartTerms, TarInOptions, TcpStream, Usage, WatchEvent,
    WatchOptions, WriteOptions,
};
use futures_util::stream::BoxStream;

use super::call::Call;
use super::connection::Connection;
use super::convert::{
    exec, file_stat, glob_result, grep_result, live_processes, location, log_range, log_request,
    process_info, unexpected, usage, write_how,
};
use super::dial::PortStream;
use super::exec::execution;
use super::fault::Fault;
use super::feed::feed;
use super::file_check::FileGate;
use super::kept::{self, attachment, control_request};
use super::listing::{ListingError, collect};
use super::logs::chunks_of;
use super::passed_read::{self, ReadOpening};
use super::passed_write::{self, WrittenContent, chained};
use super::stream::bytes_of;
use super::watch::events_of;
use crate::protocol::{Event, KEEPS_COMMANDS, KeepTerms, ProcessTerms, Reply, Request, STARTS_ON_TERMS};

/// A guest that shows no sign of life for so long does not take the order to kill. A tree may take its time to die,
/// and on a busy host a guest takes some to say that it is there. The caller hears of a guest that was silent from the
/// start before [`KILL_CONFIRM_MS`] have passed.
const KILL_PATIENCE: Duration = Duration::from_millis(KILL_CONFIRM_MS - 1_000);

/// Takes a sandbox away: what only its maker can do.
#[async_trait]
pub trait Destroyer: Send + Sync {
    /// Destroys the sandbox: processes, mounts, files. Twice is fine.
    async fn destroy(&self) -> Result<()>;

    /// As `destroy`, but what was there before the sandbox was made stays.
    async fn abandon(&self) -> Result<()> {
        self.destroy().await
    }
}

/// The network `egress` of a sandbox, which its guest has no part in. See the methods of
/// [`SandboxDriver`].
#[async_trait]
pub trait EgressControl: Send + Sync {
    /// See [`SandboxDriver::egress_rules`].
    async fn rules(&self) -> Result<EgressRules>;

    /// See [`SandboxDriver::set_egress_rules`].
    async fn set_rules(&self, rules: &EgressRules) -> Result<()>;

    /// See [`SandboxDriver::egress_decisions`].
    async fn decisions(
        &self,
        last: usize,
        follow: bool,
    ) -> Result<BoxStream<'static, Result<EgressDecision>>>;
}

/// Keeps a sandbox's deadlines where they outlive its guest.
#[async_trait]
pub trait LifecycleKeeper: Send + Sync {
    /// Keeps them, and says what is left of the ttl, in milliseconds.
    async fn keep(&self, lifecycle: &Lifecycle) -> Result<Option<u64>>;
}

/// Measures from outside what a guest can't see.
#[async_trait]
pub trait Meter: Send + Sync {
    /// Fills in, or replaces, what the maker knows better.
    async fn measure(&self, usage: Usage) -> Result<Usage>;
}

/// The facts about a sandbox that a driver can't learn from its guest.
pub struct GuestDriverParts {
    /// The provider's name.
    pub provider: String,
    /// The working directory.
    pub workdir: SandboxPath,
    /// The capabilities of the sandbox.
    pub capabilities: Capabilities,
    /// The isolation of the sandbox.
    pub isolation: Isolation,
    /// Destroys the sandbox.
    pub destroyer: Arc<dyn Destroyer>,
    /// Measures the sandbox from outside, if anything does.
    pub meter: Option<Arc<dyn Meter>>,
}

/// A sandbox that is served by a guest.
pub struct GuestDriver {
    connection: Connection,
    parts: GuestDriverParts,
    egress: Option<Arc<dyn EgressControl>>,
    lifecycle: Option<Arc<dyn LifecycleKeeper>>,
    file_gate: Option<Arc<dyn FileGate>>,
}

impl GuestDriver {
    /// The driver of the sandbox at the other end of the connection.
    pub fn new(connection: Connection, parts: GuestDriverParts) -> Self {
        Self { connection, parts, egress: None, lifecycle: None, file_gate: None }
    }

    /// The same with a network `egress`.
    #[must_use]
    pub fn with_egress(mut self, egress: Arc<dyn EgressControl>) -> Self {
        self.egress = Some(egress);
        self
    }

    /// The same with deadlines that can be changed.
    #[must_use]
    pub fn with_lifecycle(mut self, lifecycle: Arc<dyn LifecycleKeeper>) -> Self {
        self.lifecycle = Some(lifecycle);
        self
    }

    /// The same, but reads the files itself that the guest passes and the gate admits.
    #[must_use]
    pub fn with_file_gate(mut self, gate: Arc<dyn FileGate>) -> Self {
        self.file_gate = Some(gate);
        self
    }

    /// Returns the gate for passed files where the guest can pass any.
    fn gate_of_passed_files(&self) -> Option<&Arc<dyn FileGate>> {
        self.file_gate.as_ref().filter(|_| self.connection.passes_files())
    }

    fn egress(&self, operation: &str) -> Result<&Arc<dyn EgressControl>> {
        let refused = || SandboxOperationUnsupported::new(operation, &self.parts.provider, &[]).into();
        self.egress.as_ref().ok_or_else(refused)
    }

    /// Returns the driver's connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Asks whether the guest is there.
    pub async fn ping(&self) -> Result<()> {
        self.connection.ping().await
    }

    /// See [`Connection::adopt`].
    pub async fn adopt(&self) -> Result<()> {
        self.connection.adopt().await
    }

    /// See [`Connection::shutdown`].
    pub async fn shutdown(&self) -> Result<()> {
        self.connection.shutdown().await
    }

    /// Begins a call and waits until the guest has announced it.
    async fn open(&self, request: Request) -> Result<Call> {
        let call = self.connection.call(&request).await?;
        call.event().await?;
        Ok(call)
    }

    /// The same, with an error where the guest shows no sign of life.
    async fn open_unless_silent(&self, request: Request) -> Result<Call> {
        self.connection.unless_silent(self.open(request)).await
    }

    /// Makes a call that takes `content`, and returns its size.
    async fn feed(&self, request: Request, content: ByteStream) -> Result<u64> {
        let feeding = async { feed(self.connection.call(&request).await?, content).await };
        self.connection.unless_silent(feeding).await
    }

    /// Refuses an id that the guest can't know.
    fn check_keeps(&self, id: &str) -> Result<()> {
        let none = || Error::new(ErrorKind::NotFound, format!("there is no kept command `{id}`"));
        self.connection.require(KEEPS_COMMANDS, "a kept command").map_err(|_| none())
    }

    async fn done(&self, request: Request) -> Result<()> {
        self.connection.ask_unless_silent(&request).await.map(drop)
    }

    async fn process(&self, request: Request) -> Result<ProcessInfo> {
        match self.connection.ask_unless_silent(&request).await? {
            Reply::Process(record) => Ok(process_info(record)),
            other => Err(unexpected(&other)),
        }
    }
}

impl fmt::Debug for GuestDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestDriver").field("provider", &self.parts.provider).finish_non_exhaustive()
    }
}

#[async_trait]
impl SandboxDriver for GuestDriver {
    fn provider(&self) -> &str {
        &self.parts.provider
    }

    fn capabilities(&self) -> &Capabilities {
        &self.parts.capabilities
    }

    fn isolation(&self) -> &Isolation {
        &self.parts.isolation
    }

    fn workdir(&self) -> &SandboxPath {
        &self.parts.workdir
    }

    async fn read(&self, file: &ConfinedPath, range: ByteRange) -> Result<ByteStream> {
        if let Some(gate) = self.gate_of_passed_files() {
            match passed_read::open(&self.connection, gate, location(file), range).await? {
                ReadOpening::Passed(content) => return Ok(content),
                ReadOpening::Sent(call) => return Ok(bytes_of(call, self.connection.clone())),
                ReadOpening::NotTaken => {}
            }
        }
        self.open_unless_silent(Request::Read(location(file), range.offset, range.limit))
            .await
            .map(|call| bytes_of(call, self.connection.clone()))
    }

    async fn write(&self, file: &ConfinedPath, content: ByteStream, options: WriteOptions) -> Result<u64> {
        let (location, how) = (location(file), write_how(options));
        let Some(gate) = self.gate_of_passed_files().filter(|_| self.connection.passes_drafts()) else {
            return self.feed(Request::Write(location, how), content).await;
        };
        match WrittenContent::look(content, &how) {
            WrittenContent::Large(first, rest) => {
                let place = self.connection.state().passed_files.reserve();
                let Some(place) = place else {
                    return self.feed(Request::Write(location, how), chained(Ok(first), rest)).await;
                };
                passed_write::write(&self.connection, (gate, place), (location, how), (first, rest)).await
            }
            WrittenContent::Other(content) => self.feed(Request::Write(location, how), content).await,
        }
    }

    async fn stat(&self, file: &ConfinedPath) -> Result<FileStat> {
        match self.connection.ask_unless_silent(&Request::Stat(location(file))).await? {
            Reply::Stat(record) => Ok(file_stat(record)),
            other => Err(unexpected(&other)),
        }
    }

    async fn list(&self, directory: &ConfinedPath) -> Result<Vec<DirEntry>> {
        let call = self.open_unless_silent(Request::List(location(directory))).await?;
        match self.connection.unless_silent(async { Ok(collect(&call).await) }).await? {
            Ok(entries) => Ok(entries),
            Err(ListingError::Failed(error)) => Err(error),
            Err(ListingError::Broken(what)) => {
                self.connection.state().end(Fault::broken(&what));
                Err(self.connection.error())
            }
        }
    }

    async fn exists(&self, file: &ConfinedPath) -> Result<bool> {
        match self.connection.ask_unless_silent(&Request::Exists(location(file))).await? {
            Reply::Bool(exists) => Ok(exists),
            other => Err(unexpected(&other)),
        }
    }

    async fn create_dir(&self, directory: &ConfinedPath, options: CreateDirOptions) -> Result<()> {
        self.done(Request::CreateDir(location(directory), options.recursive)).await
    }

    async fn remove(&self, file: &ConfinedPath, options: RemoveOptions) -> Result<()> {
        self.done(Request::Remove(location(file), options.recursive, options.force)).await
    }

    async fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> Result<()> {
        self.done(Request::Rename(location(from), location(to))).await
    }

    async fn exec(&self, request: ExecRequest) -> Result<Execution> {
        let stdin = request.stdin;
        let call = self.open(Request::Exec(exec(request))).await?;
        Ok(execution(self.connection.clone(), call, stdin))
    }

    async fn destroy(&self) -> Result<()> {
        self.parts.destroyer.destroy().await?;
        self.connection.close_for_good(ErrorKind::Destroyed, "the sandbox has been destroyed");
        Ok(())
    }

    async fn abandon(&self) -> Result<()> {
        self.parts.destroyer.abandon().await?;
        self.connection.close_for_good(ErrorKind::Destroyed, "the sandbox has been destroyed");
        Ok(())
    }

    async fn glob(&self, options: &GlobOptions) -> Result<GlobResult> {
        let GlobOptions { pattern, root, hidden, max_results } = options;
        let request = Request::Glob(location(root), pattern.clone(), *hidden, *max_results);
        match self.connection.ask_unless_silent(&request).await? {
            Reply::Glob(found) => Ok(glob_result(found)),
            other => Err(unexpected(&other)),
        }
    }

    async fn grep(&self, options: &GrepOptions) -> Result<GrepResult> {
        let request = Request::Grep {
            root: location(&options.root),
            pattern: options.pattern.clone(),
            literal: options.literal,
            ignore_case: options.ignore_case,
            include: options.include.clone(),
            max_matches: options.max_matches,
            max_line_bytes: options.max_line_bytes,
        };
        match self.connection.ask_unless_silent(&request).await? {
            Reply::Grep(found) => Ok(grep_result(found)),
            other => Err(unexpected(&other)),
        }
    }

    async fn tar_out(&self, root: &ConfinedPath) -> Result<ByteStream> {
        self.open_unless_silent(Request::TarOut(location(root)))
            .await
            .map(|call| bytes_of(call, self.connection.clone()))
    }

    async fn tar_in(&self, directory: &ConfinedPath, tar: ByteStream, options: TarInOptions) -> Result<u64> {
        let request = Request::TarIn(location(directory), options.max_total_bytes, options.max_entries);
        self.feed(request, tar).await
    }

    async fn watch(
        &self,
        place: &ConfinedPath,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, Result<WatchEvent>>> {
        let WatchOptions { recursive, max_directories } = options;
        let call =
            self.open_unless_silent(Request::Watch(location(place), recursive, max_directories)).await?;
        Ok(events_of(call, self.connection.clone()))
    }

    async fn dial(&self, port: u16) -> Result<Box<dyn TcpStream>> {
        let call = self.open_unless_silent(Request::Dial(port)).await?;
        Ok(Box::new(PortStream::new(call)))
    }

    fn is_connected(&self) -> bool {
        !self.connection.is_closed()
    }

    async fn usage(&self) -> Result<Usage> {
        let usage = match self.connection.ask_unless_silent(&Request::Usage).await? {
            Reply::Usage(record) => usage(record),
            other => return Err(unexpected(&other)),
        };
        match &self.parts.meter {
            Some(meter) => meter.measure(usage).await,
            None => Ok(usage),
        }
    }

    async fn live_processes(&self) -> Result<LiveProcesses> {
        match self.connection.ask_unless_silent(&Request::LiveProcesses).await? {
            Reply::LiveProcesses(found) => Ok(live_processes(found)),
            other => Err(unexpected(&other)),
        }
    }

    async fn start(&self, request: ExecRequest, terms: StartTerms) -> Result<ProcessInfo> {
        if request.pty.is_none() && terms == StartTerms::default() {
            return self.process(Request::Start(exec(request))).await;
        }
        let what = "a started process with input, a terminal or a deadline";
        self.connection.require(STARTS_ON_TERMS, what)?;
        let StartTerms { stdin, stdin_follows, timeout_ms } = terms;
        let terms = ProcessTerms { timeout_ms, input: stdin.into(), input_follows: stdin_follows };
        self.process(Request::StartOn(exec(request), terms)).await
    }

    async fn write_stdin(&self, process: ProcessId, data: Bytes, ends: bool) -> Result<()> {
        self.connection.require(STARTS_ON_TERMS, "the input of a started process")?;
        self.done(Request::ProcessInput(process.0, data.into(), ends)).await
    }

    async fn processes(&self) -> Result<Vec<ProcessInfo>> {
        match self.connection.ask_unless_silent(&Request::Processes).await? {
            Reply::Processes(records) => Ok(records.into_iter().map(process_info).collect()),
            other => Err(unexpected(&other)),
        }
    }

    async fn wait(&self, process: ProcessId) -> Result<ProcessInfo> {
        self.process(Request::Wait(process.0, None)).await
    }

    async fn observe_end(&self, process: ProcessId) -> Result<ProcessInfo> {
        self.process(Request::Wait(process.0, Some(true))).await
    }

    async fn logs(&self, process: ProcessId, query: LogQuery) -> Result<Log> {
        let opening = async {
            let call = self.connection.call(&Request::Logs(log_request(process, query))).await?;
            let event = call.event().await?;
            Ok::<_, Error>((call, event))
        };
        let (call, event) = self.connection.unless_silent(opening).await?;
        let range = match event {
            Some(Event::Log(range)) => log_range(range),
            // The call's shape lets nothing else through.
            other => return Err(Error::new(ErrorKind::Internal, format!("a log was opened with {other:?}"))),
        };
        Ok(Log { range, chunks: chunks_of(call) })
    }

    async fn kill(&self, process: ProcessId, signal: Option<Signal>) -> Result<()> {
        let killing = self.done(Request::Kill(process.0, signal.map(|signal| signal.0)));
        tokio::select! {
            biased;
            killed = killing => killed,
            error = self.connection.silence(KILL_PATIENCE) => Err(error),
        }
    }

    async fn keep(&self, request: KeepRequest) -> Result<KeptAttachment> {
        self.connection.require(KEEPS_COMMANDS, "a command that outlives its client")?;
        let KeepRequest { exec: command, stdin, timeout_ms, linger_ms } = request;
        let terms = KeepTerms { linger_ms, timeout_ms };
        let call = self.connection.call(&Request::Keep(exec(command), terms)).await?;
        let kept = attachment(&self.connection, call).await?;
        if !stdin.is_empty() {
            tokio::spawn(kept::feed(self.connection.clone(), kept.info.id.clone(), stdin));
        }
        Ok(kept)
    }

    async fn attach(&self, id: &str, from: Option<u64>) -> Result<KeptAttachment> {
        self.check_keeps(id)?;
        let attaching = async {
            let call = self.connection.call(&Request::Attach(id.to_owned(), from)).await?;
            attachment(&self.connection, call).await
        };
        self.connection.unless_silent(attaching).await
    }

    async fn kept_commands(&self) -> Result<Vec<KeptInfo>> {
        // An older guest keeps none.
        if self.connection.require(KEEPS_COMMANDS, "").is_err() {
            return Ok(Vec::new());
        }
        match self.connection.ask_unless_silent(&Request::KeptCommands).await? {
            Reply::KeptList(records) => records.into_iter().map(kept::info).collect(),
            other => Err(unexpected(&other)),
        }
    }

    async fn kept_end(&self, id: &str) -> Result<KeptInfo> {
        self.check_keeps(id)?;
        match self.connection.ask_unless_silent(&Request::KeptEnd(id.to_owned())).await? {
            Reply::Kept(record) => kept::info(record),
            other => Err(unexpected(&other)),
        }
    }

    async fn control_kept(&self, id: &str, control: KeptControl) -> Result<()> {
        self.check_keeps(id)?;
        self.done(control_request(id, control)).await
    }

    async fn set_lifecycle(&self, lifecycle: &Lifecycle) -> Result<()> {
        let Some(keeper) = &self.lifecycle else {
            return Err(SandboxOperationUnsupported::new("set_lifecycle", &self.parts.provider, &[]).into());
        };
        let left_ms = keeper.keep(lifecycle).await?;
        let idle_timeout_ms = lifecycle.idle_timeout_ms.filter(|_| lifecycle.auto_destroy);
        self.connection.ask_unless_silent(&Request::SetDeadlines(left_ms, idle_timeout_ms)).await.map(drop)
    }

    async fn egress_rules(&self) -> Result<EgressRules> {
        self.egress("egress_rules")?.rules().await
    }

    async fn set_egress_rules(&self, rules: &EgressRules) -> Result<()> {
        self.egress("set_egress_rules")?.set_rules(rules).await
    }

    async fn egress_decisions(
        &self,
        last: usize,
        follow: bool,
    ) -> Result<BoxStream<'static, Result<EgressDecision>>> {
        self.egress("egress_decisions")?.decisions(last, follow).await
    }
}
