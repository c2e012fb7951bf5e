//! A driver that writes down what it is asked and answers what the test laid out, and its provider.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use bytes::Bytes;
use eyot::{
    ByteRange, ByteStream, Capabilities, Capability, Command, ConfinedPath, CreateDirOptions, Created,
    DirEntry, DiskEnforcement, Enforcement, Error, ErrorKind, ExecRequest, Execution, ExecutionControl,
    ExecutionEvent, ExecutionInput, ExitStatus, FileStat, Isolation, LimitsEnforced, NetworkMode, PtySize,
    RemoveOptions, Result, Sandbox, SandboxDriver, SandboxInfo, SandboxPath, SandboxProvider, SandboxSpec,
    SandboxStatus, Signal, ValidSpec, WriteOptions,
};
use futures_util::StreamExt;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The calls of a driver, in order, such as `write /a`.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Counts the calls whose line begins so.
    pub fn count(&self, beginning: &str) -> usize {
        self.lines().iter().filter(|line| line.starts_with(beginning)).count()
    }
}

/// The reaction of a command to its kill.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OnKill {
    /// It ends.
    Dies,
    /// Nothing is heard of it until the test says so.
    Silence,
    /// The order itself is never taken.
    Deaf,
}

/// A started command, as the test sees it.
pub struct Running {
    pub request: ExecRequest,
    pub events: UnboundedSender<Result<ExecutionEvent>>,
    /// The input that it read.
    pub input: Log,
}

impl Running {
    pub fn exit(&self, code: i32) {
        self.send(ExecutionEvent::Exit { status: ExitStatus::Exited(code), output_open: false });
    }

    pub fn stdout(&self, bytes: &'static [u8]) {
        self.send(ExecutionEvent::Stdout(Bytes::from_static(bytes)));
    }

    pub fn send(&self, event: ExecutionEvent) {
        self.events.send(Ok(event)).expect("the handle still listens");
    }
}

pub struct Scripted {
    pub log: Log,
    workdir: SandboxPath,
    capabilities: Capabilities,
    isolation: Isolation,
    /// Errors that the next writes answer; success after that.
    pub writes: Mutex<VecDeque<Error>>,
    pub create_dirs: Mutex<VecDeque<Error>>,
    /// Errors that the next starts answer, instead of starting.
    pub refusals: Mutex<VecDeque<Error>>,
    pub on_kill: Mutex<OnKill>,
    /// No start is ever confirmed.
    pub starts_in_silence: Mutex<bool>,
    pub file: Mutex<Bytes>,
    started: Mutex<Option<UnboundedReceiver<Running>>>,
    start: UnboundedSender<Running>,
}

impl Scripted {
    pub fn new(without: &[Capability]) -> Arc<Self> {
        use Capability as C;
        let all =
            [C::Shell, C::Argv, C::Pty, C::Signals, C::Beneath, C::Append, C::AtomicWrite, C::Processes];
        let capabilities =
            Capabilities::new(all.into_iter().filter(|capability| !without.contains(capability)));
        let (start, started) = unbounded_channel();
        Arc::new(Self {
            log: Log::default(),
            workdir: SandboxPath::parse("/workspace").unwrap(),
            capabilities,
            isolation: isolation(),
            writes: Mutex::default(),
            create_dirs: Mutex::default(),
            refusals: Mutex::default(),
            on_kill: Mutex::new(OnKill::Dies),
            starts_in_silence: Mutex::default(),
            file: Mutex::default(),
            started: Mutex::new(Some(started)),
            start,
        })
    }

    /// The commands that will be started; to be taken once.
    pub fn commands(&self) -> UnboundedReceiver<Running> {
        self.started.lock().unwrap().take().expect("taken once")
    }

    pub async fn sandbox(self: &Arc<Self>) -> Sandbox {
        self.sandbox_of(SandboxSpec::default()).await
    }

    pub async fn sandbox_of(self: &Arc<Self>, spec: SandboxSpec) -> Sandbox {
        Sandbox::create(&Provider::of(self), spec).await.unwrap()
    }
}

pub fn isolation() -> Isolation {
    let none = Enforcement::None;
    Isolation {
        provider: "scripted".into(),
        shares_host_kernel: true,
        namespaces: Vec::new(),
        identity: None,
        no_new_privileges: false,
        capabilities: Vec::new(),
        seccomp: false,
        runtime: None,
        guest_out_of_reach: true,
        shared_files: Vec::new(),
        user_counts: None,
        seccomp_instructions: None,
        landlock_abi: None,
        network: NetworkMode::None,
        readonly_rootfs: false,
        cgroup_controllers: Vec::new(),
        limits: LimitsEnforced { memory: none, cpus: none, pids: none, disk: DiskEnforcement::None },
    }
}

pub fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "as the test wants it")
}

fn answer(queue: &Mutex<VecDeque<Error>>) -> Result<()> {
    queue.lock().unwrap().pop_front().map_or(Ok(()), Err)
}

struct Control {
    log: Log,
    on_kill: OnKill,
    events: UnboundedSender<Result<ExecutionEvent>>,
}

#[async_trait]
impl ExecutionControl for Control {
    async fn kill(&self) -> Result<()> {
        self.log.add("kill");
        if self.on_kill == OnKill::Deaf {
            std::future::pending::<()>().await;
        }
        if self.on_kill == OnKill::Dies
            && self
                .events
                .send(Ok(ExecutionEvent::Exit { status: ExitStatus::Signaled(9), output_open: false }))
                .is_err()
        {
            self.log.add("nobody listens");
        }
        Ok(())
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        self.log.add(format!("signal {}", signal.0));
        Ok(())
    }

    async fn resize(&self, size: PtySize) -> Result<()> {
        self.log.add(format!("resize {}x{}", size.cols, size.rows));
        Ok(())
    }
}

struct Input(Log);

#[async_trait]
impl ExecutionInput for Input {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.0.add(String::from_utf8_lossy(&bytes));
        Ok(())
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.0.add("<end>");
    }
}

/// Writes down that the events were dropped.
struct Events(Log, UnboundedReceiver<Result<ExecutionEvent>>);

impl Drop for Events {
    fn drop(&mut self) {
        self.0.add("events dropped");
    }
}

#[async_trait]
impl SandboxDriver for Scripted {
    fn provider(&self) -> &str {
        "scripted"
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

    async fn read(&self, file: &ConfinedPath, _range: ByteRange) -> Result<ByteStream> {
        self.log.add(format!("read {file}"));
        let pieces: Vec<Bytes> = self.file.lock().unwrap().chunks(4).map(Bytes::copy_from_slice).collect();
        Ok(futures_util::stream::iter(pieces.into_iter().map(Ok)).boxed())
    }

    async fn write(
        &self,
        file: &ConfinedPath,
        mut content: ByteStream,
        options: WriteOptions,
    ) -> Result<u64> {
        self.log.add(format!("write {file}"));
        let mut whole = Vec::new();
        while let Some(bytes) = content.next().await {
            whole.extend_from_slice(&bytes?);
        }
        answer(&self.writes)?;
        self.log.add(format!("wrote {} limit {:?}", String::from_utf8_lossy(&whole), options.max_file_bytes));
        Ok(whole.len() as u64)
    }

    async fn stat(&self, file: &ConfinedPath) -> Result<FileStat> {
        self.log.add(format!("stat {file}"));
        Ok(FileStat { is_directory: true, ..FileStat::default() })
    }

    async fn list(&self, directory: &ConfinedPath) -> Result<Vec<DirEntry>> {
        self.log.add(format!("list {directory}"));
        Ok(vec![DirEntry { name: "x".into(), name_bytes: None, file_type: None, size: None }])
    }

    async fn exists(&self, file: &ConfinedPath) -> Result<bool> {
        self.log.add(format!("exists {file}"));
        Ok(!file.path.as_str().contains("missing"))
    }

    async fn create_dir(&self, directory: &ConfinedPath, options: CreateDirOptions) -> Result<()> {
        self.log.add(format!("mkdir {directory} recursive={}", options.recursive));
        answer(&self.create_dirs)
    }

    async fn remove(&self, file: &ConfinedPath, _options: RemoveOptions) -> Result<()> {
        self.log.add(format!("remove {file}"));
        Ok(())
    }

    async fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> Result<()> {
        self.log.add(format!("rename {from} {to}"));
        Ok(())
    }

    async fn exec(&self, request: ExecRequest) -> Result<Execution> {
        let command = match &request.command {
            Command::Shell(line) => line.clone(),
            Command::Argv(argv) => argv.join(" "),
        };
        self.log.add(format!("exec {command}"));
        answer(&self.refusals)?;
        if *self.starts_in_silence.lock().unwrap() {
            std::future::pending::<()>().await;
        }
        let (events, receiver) = unbounded_channel();
        let input = Log::default();
        let on_kill = *lock(&self.on_kill);
        let control = Control { log: self.log.clone(), on_kill, events: events.clone() };
        let wants_input = request.stdin;
        let running = Running { request, events, input: input.clone() };
        self.start.send(running).map_err(|_| error(ErrorKind::Internal))?;
        let stream = futures_util::stream::unfold(Events(self.log.clone(), receiver), async |mut events| {
            events.1.recv().await.map(|event| (event, events))
        });
        Ok(Execution {
            events: stream.boxed(),
            input: wants_input.then(|| Box::new(Input(input)) as Box<dyn ExecutionInput>),
            control: Arc::new(control),
        })
    }

    async fn destroy(&self) -> Result<()> {
        self.log.add("destroy");
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

/// Gives out one driver, again and again.
pub struct Provider {
    driver: Arc<Scripted>,
    /// Errors that the next creates and opens answer; a sandbox after that.
    pub creates: Mutex<VecDeque<Error>>,
    pub opens: Mutex<VecDeque<Error>>,
}

impl Provider {
    pub fn of(driver: &Arc<Scripted>) -> Self {
        Self { driver: driver.clone(), creates: Mutex::default(), opens: Mutex::default() }
    }

    fn created(&self, spec: &ValidSpec) -> Created {
        Created {
            info: SandboxInfo {
                id: spec.id().clone(),
                name: spec.name().clone(),
                pool: None,
                provider: "scripted".into(),
                status: SandboxStatus::Running,
                workdir: spec.workdir().clone(),
                created_ms: 0,
                spec: spec.spec().clone(),
                isolation: isolation(),
                life: String::new(),
            },
            driver: self.driver.clone(),
            keeper: None,
        }
    }
}

#[async_trait]
impl SandboxProvider for Provider {
    fn name(&self) -> &str {
        "scripted"
    }
    fn capabilities(&self) -> &Capabilities {
        &self.driver.capabilities
    }
    async fn isolation(&self) -> Result<Isolation> {
        Ok(isolation())
    }
    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        self.driver.log.add("create");
        answer(&self.creates)?;
        Ok(self.created(spec))
    }
    async fn open(&self, id_or_name: &str) -> Result<Created> {
        self.driver.log.add(format!("open {id_or_name}"));
        answer(&self.opens)?;
        let name = eyot::SandboxName::parse(id_or_name).ok();
        Ok(self.created(&SandboxSpec { name, ..SandboxSpec::default() }.validate()?))
    }
    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        self.driver.log.add(format!("wake {id_or_name}"));
        let name = eyot::SandboxName::parse(id_or_name).ok();
        Ok(self.created(&SandboxSpec { name, ..SandboxSpec::default() }.validate()?))
    }
    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        Ok(Vec::new())
    }
    async fn remove(&self, _id_or_name: &str) -> Result<()> {
        Err(error(ErrorKind::NotFound))
    }
}
