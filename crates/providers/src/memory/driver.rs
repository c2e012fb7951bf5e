//! One life of a sandbox in memory, as its handles use it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use eyot::{
    ByteRange, ByteStream, Capabilities, Command, ConfinedPath, CreateDirOptions, DirEntry, Error, ErrorKind,
    ExecRequest, Execution, FileStat, GlobOptions, GlobResult, GrepOptions, GrepResult, Isolation,
    KeepRequest, KeptAttachment, KeptControl, KeptInfo, Lifecycle, LiveProcesses, Log, LogQuery, ProcessId,
    ProcessInfo, RemoveOptions, Result, SandboxDriver, SandboxOperationUnsupported, SandboxPath, Signal,
    StartTerms, TarInOptions, Usage, WatchEvent, WatchOptions, WriteOptions,
};
use eyot_guest::environment;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::NAME;
use super::input::JobInput;
use super::job::ShellJob;
use super::kept::Terms;
use super::life::{LifeEnd, SandboxLife};
use super::node::{FileAccess, NodeContent};
use super::running_job::RunningJob;
use super::sandbox::MemorySandbox;
use super::sinks::execute;
use super::walk::{Last, find};
use super::{pack, search, unpack};

const HOME: &str = "/home/user";
/// The variables that tell of the user.
const OF_USER: [(&str, &str); 4] =
    [("HOME", HOME), ("LOGNAME", "user"), ("SHELL", "/bin/bash"), ("USER", "user")];

/// A sandbox of which the host has nothing but memory.
pub(super) struct MemoryDriver {
    pub sandbox: Arc<MemorySandbox>,
    pub life: Arc<SandboxLife>,
}

impl MemoryDriver {
    /// Refuses what comes after the end of this life; otherwise the sandbox is used now.
    fn check(&self) -> Result<()> {
        self.life.check(self.name())?;
        self.life.activity.note();
        Ok(())
    }

    fn name(&self) -> &str {
        self.sandbox.info.name.as_str()
    }

    fn register(&self) -> impl FnOnce(&Arc<RunningJob>) -> Result<()> {
        let (life, name) = (self.life.clone(), self.name().to_owned());
        move |job| life.register(job, &name)
    }

    /// The command of a request, checked before anything is started.
    fn job(&self, request: ExecRequest, operation: &str) -> Result<ShellJob> {
        if request.pty.is_some() {
            return Err(unsupported(operation, &["pty"]));
        }
        if request.user.as_deref().is_some_and(|user| !matches!(user, "user" | "1000")) {
            return Err(unsupported(operation, &["user"]));
        }
        let cwd = self.check_cwd(&request.cwd)?;
        let env = self.env(&request.env);
        if let Command::Argv(argv) = &request.command {
            let program = argv.first().map_or("", String::as_str);
            self.check_program(program, &cwd, env.get("PATH").map_or("", String::as_str))?;
        }
        Ok(ShellJob {
            factory: self.sandbox.factory.clone(),
            programs: self.sandbox.programs.clone(),
            prepared: self.sandbox.prepared.clone(),
            files: self.sandbox.files.clone(),
            tasks: self.life.tasks.clone(),
            command: request.command,
            cwd,
            env,
            host_name: self.sandbox.host_name.clone(),
            input: request.stdin.then(|| Arc::new(JobInput::default())),
            whole_line: None,
        })
    }

    fn check_cwd(&self, cwd: &ConfinedPath) -> Result<String> {
        let inner = self.sandbox.files.lock();
        let place = inner.find(cwd, Last::Follow)?;
        let id = place.found()?;
        inner.tree.entries(id)?;
        inner.tree.node(id).check(FileAccess::Search)?;
        let not_text = |_| Error::new(ErrorKind::Invalid, "its path is not UTF-8");
        String::from_utf8(place.path()).map_err(not_text)
    }

    /// Refuses a program that is neither one of the interpreter's nor a file.
    fn check_program(&self, program: &str, cwd: &str, path: &str) -> Result<()> {
        let missing = || Error::new(ErrorKind::NotFound, "there is no such program");
        let inner = self.sandbox.files.lock();
        let node = |path: &str| {
            let found = find(&inner.tree, inner.root, path.as_bytes(), Last::Follow, None).ok()?;
            found.node.map(|id| inner.tree.node(id))
        };
        let is_known = |name: &str| self.sandbox.programs.has(name);
        if let Some(name) = program.strip_prefix("/usr/bin/").or_else(|| program.strip_prefix("/bin/"))
            && is_known(name)
        {
            return Ok(());
        }
        if program.contains('/') {
            let at = if program.starts_with('/') { program.to_owned() } else { format!("{cwd}/{program}") };
            let node = node(&at).ok_or_else(missing)?;
            let is_program = matches!(node.content, NodeContent::File(_)) && node.mode & 0o111 != 0;
            let refused = || Error::new(ErrorKind::Permission, "is no program that can be run");
            return if is_program { Ok(()) } else { Err(refused()) };
        }
        let is_there = path.split(':').any(|folder| node(&format!("{folder}/{program}")).is_some());
        if is_there || is_known(program) { Ok(()) } else { Err(missing()) }
    }

    fn env(&self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let of_user = OF_USER.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut env: BTreeMap<String, String> = of_user.collect();
        env.extend(self.sandbox.env.clone());
        env.extend(given.clone());
        let mut env = environment::completed(&env.into_iter().collect::<Vec<_>>());
        environment::put_own_programs_first(&mut env, HOME);
        env.into_iter().collect()
    }

    /// Runs something that takes a while where it holds up no other call.
    async fn apart<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(Error::new(ErrorKind::Internal, error.to_string())))
    }
}

fn unsupported(operation: &str, options: &[&str]) -> Error {
    SandboxOperationUnsupported::new(operation, NAME, options).into()
}

#[async_trait]
impl SandboxDriver for MemoryDriver {
    fn provider(&self) -> &str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.sandbox.capabilities
    }

    fn isolation(&self) -> &Isolation {
        &self.sandbox.isolation
    }

    fn workdir(&self) -> &SandboxPath {
        &self.sandbox.info.workdir
    }

    fn is_connected(&self) -> bool {
        self.life.check(self.name()).is_ok()
    }

    async fn read(&self, file: &ConfinedPath, range: ByteRange) -> Result<ByteStream> {
        self.check()?;
        self.sandbox.files.read(file, range)
    }

    async fn write(&self, file: &ConfinedPath, content: ByteStream, options: WriteOptions) -> Result<u64> {
        self.check()?;
        let _busy = self.life.activity.busy();
        self.sandbox.files.write(file, content, options).await
    }

    async fn stat(&self, file: &ConfinedPath) -> Result<FileStat> {
        self.check()?;
        self.sandbox.files.stat(file)
    }

    async fn list(&self, directory: &ConfinedPath) -> Result<Vec<DirEntry>> {
        self.check()?;
        self.sandbox.files.list(directory)
    }

    async fn exists(&self, file: &ConfinedPath) -> Result<bool> {
        self.check()?;
        self.sandbox.files.exists(file)
    }

    async fn create_dir(&self, directory: &ConfinedPath, options: CreateDirOptions) -> Result<()> {
        self.check()?;
        self.sandbox.files.create_dir(directory, options)
    }

    async fn remove(&self, file: &ConfinedPath, options: RemoveOptions) -> Result<()> {
        self.check()?;
        self.sandbox.files.remove(file, options)
    }

    async fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> Result<()> {
        self.check()?;
        self.sandbox.files.rename(from, to)
    }

    async fn exec(&self, request: ExecRequest) -> Result<Execution> {
        self.check()?;
        let job = self.job(request, "exec")?;
        let (life, name) = (self.life.clone(), self.name().to_owned());
        let gone = move || life.check(&name).err().unwrap_or_else(|| Error::destroyed(&name));
        execute(job, self.life.activity.busy(), Arc::new(gone), self.register())
    }

    async fn destroy(&self) -> Result<()> {
        self.sandbox.destroy(LifeEnd::Destroy);
        Ok(())
    }

    async fn abandon(&self) -> Result<()> {
        self.sandbox.abandon();
        Ok(())
    }

    async fn glob(&self, options: &GlobOptions) -> Result<GlobResult> {
        self.check()?;
        let (files, options, busy) = (self.sandbox.files.clone(), options.clone(), self.life.activity.busy());
        self.apart(move || {
            let _busy = busy;
            search::glob(&files, &options)
        })
        .await
    }

    async fn grep(&self, options: &GrepOptions) -> Result<GrepResult> {
        self.check()?;
        let (files, options, busy) = (self.sandbox.files.clone(), options.clone(), self.life.activity.busy());
        let stop = self.life.over.child_token();
        let _guard = stop.clone().drop_guard();
        self.apart(move || {
            let _busy = busy;
            search::grep(&files, &options, &stop)
        })
        .await
    }

    async fn tar_out(&self, root: &ConfinedPath) -> Result<ByteStream> {
        self.check()?;
        pack::pack(&self.sandbox.files, root)
    }

    async fn tar_in(&self, directory: &ConfinedPath, tar: ByteStream, options: TarInOptions) -> Result<u64> {
        self.check()?;
        let _busy = self.life.activity.busy();
        let stop = self.life.over.child_token();
        let _guard = stop.clone().drop_guard();
        // Whoever reads the archive hears of the end: of this call, or of the sandbox.
        let tar = tar.take_until(stop.cancelled_owned()).boxed();
        unpack::unpack(&self.sandbox.files, directory, tar, options).await
    }

    async fn watch(
        &self,
        place: &ConfinedPath,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, Result<WatchEvent>>> {
        self.check()?;
        let mut inner = self.sandbox.files.lock();
        let found = inner.find(place, Last::Follow)?;
        let id = found.found()?;
        inner.tree.node(id).check(FileAccess::Read)?;
        let is_directory = inner.tree.node(id).is_directory();
        let is_deep = options.recursive && is_directory;
        let below = inner.tree.below(id).filter(|(_, id)| is_deep && inner.tree.node(*id).is_directory());
        let directories = u32::try_from(below.count() + 1).unwrap_or(u32::MAX);
        let events = inner.watchers.watch(id, is_directory, directories, options)?;
        drop(inner);
        let (life, name) = (self.life.clone(), self.name().to_owned());
        let over = self.life.over.clone();
        let gone = futures_util::stream::once(async move {
            over.cancelled().await;
            Err(life.check(&name).err().unwrap_or_else(|| Error::destroyed(&name)))
        });
        // Both end it: the watched place, and the sandbox.
        let events = events.map(Some).chain(futures_util::stream::iter([None]));
        let all = futures_util::stream::select(events, gone.map(Some));
        let all = all.take_while(|event| futures_util::future::ready(event.is_some()));
        Ok(until_error(all.filter_map(futures_util::future::ready).boxed()))
    }

    async fn usage(&self) -> Result<Usage> {
        self.life.check(self.name())?;
        let milliseconds = |time: std::time::Duration| u64::try_from(time.as_millis()).ok();
        Ok(Usage {
            processes: Some(self.life.tasks.count() as u64),
            disk_bytes: Some(self.sandbox.files.used_bytes()),
            uptime_ms: milliseconds(self.life.began.elapsed()),
            idle_ms: milliseconds(self.life.activity.idle()),
            ..Usage::default()
        })
    }

    async fn live_processes(&self) -> Result<LiveProcesses> {
        self.life.check(self.name())?;
        Ok(LiveProcesses { processes: self.life.tasks.live(), truncated: false })
    }

    async fn start(&self, request: ExecRequest, terms: StartTerms) -> Result<ProcessInfo> {
        self.check()?;
        let job = self.job(request, "start")?;
        self.life.processes.start(job, terms, self.register())
    }

    async fn write_stdin(&self, process: ProcessId, data: Bytes, ends: bool) -> Result<()> {
        self.check()?;
        self.life.processes.write_stdin(process, data, ends)
    }

    async fn processes(&self) -> Result<Vec<ProcessInfo>> {
        self.check()?;
        Ok(self.life.processes.list())
    }

    async fn wait(&self, process: ProcessId) -> Result<ProcessInfo> {
        self.check()?;
        let _busy = self.life.activity.busy();
        self.observe_end(process).await
    }

    async fn observe_end(&self, process: ProcessId) -> Result<ProcessInfo> {
        self.life.check(self.name())?;
        let ended = self.life.processes.wait(process).await?;
        self.life.check(self.name())?;
        Ok(ended)
    }

    async fn logs(&self, process: ProcessId, query: LogQuery) -> Result<Log> {
        self.check()?;
        self.life.processes.logs(process, query)
    }

    async fn kill(&self, process: ProcessId, signal: Option<Signal>) -> Result<()> {
        self.check()?;
        self.life.processes.kill(process, signal)
    }

    async fn keep(&self, request: KeepRequest) -> Result<KeptAttachment> {
        self.check()?;
        let KeepRequest { exec, stdin, timeout_ms, linger_ms } = request;
        let job = self.job(exec, "keep")?;
        let terms = Terms { stdin, timeout_ms, linger_ms };
        self.life.kept.keep(job, terms, self.life.activity.busy(), self.register())
    }

    async fn attach(&self, id: &str, from: Option<u64>) -> Result<KeptAttachment> {
        self.check()?;
        self.life.kept.attach(id, from)
    }

    async fn kept_commands(&self) -> Result<Vec<KeptInfo>> {
        self.check()?;
        Ok(self.life.kept.list())
    }

    async fn kept_end(&self, id: &str) -> Result<KeptInfo> {
        self.life.check(self.name())?;
        let ended = self.life.kept.end(id).await?;
        self.life.check(self.name())?;
        Ok(ended)
    }

    async fn control_kept(&self, id: &str, control: KeptControl) -> Result<()> {
        self.check()?;
        self.life.kept.control(id, control)
    }

    async fn set_lifecycle(&self, lifecycle: &Lifecycle) -> Result<()> {
        self.life.check(self.name())?;
        self.sandbox.set_lifecycle(lifecycle)
    }
}

/// Ends a stream behind its first error.
fn until_error<T: Send + 'static>(events: BoxStream<'static, Result<T>>) -> BoxStream<'static, Result<T>> {
    let stream = futures_util::stream::unfold(Some(events), |events| async move {
        let mut events = events?;
        let event = events.next().await?;
        let goes_on = event.is_ok();
        Some((event, goes_on.then_some(events)))
    });
    stream.boxed()
}
