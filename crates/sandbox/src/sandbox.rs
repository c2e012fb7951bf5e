//! The handle. (Being written.)

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;

use crate::capabilities::Capabilities;
use crate::driver::{ByteStream, ExecutionControl, SandboxDriver, TcpStream};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Command, ExecOptions, ExecResult, ExecStream, PtySize, Signal};
use crate::files::{ByteRange, CreateDirOptions, DirEntry, FileStat, RemoveOptions, TarInOptions, WriteOptions};
use crate::isolation::Isolation;
use crate::observer::Observer;
use crate::path::SandboxPath;
use crate::process::{LogChunk, LogQuery, ProcessId, ProcessInfo, Usage};
use crate::provider::{SandboxInfo, SandboxProvider};
use crate::search::{GlobOptions, GlobResult, GrepOptions, GrepResult};
use crate::spec::{SandboxId, SandboxName, SandboxSpec};

/// How to start a process that outlives the call.
#[derive(Debug, Clone, Default)]
pub struct StartOptions {
    /// Working directory, resolved against the sandbox's own.
    pub cwd: Option<String>,
    /// Variables layered over the sandbox's.
    pub env: BTreeMap<String, String>,
    /// Who runs it.
    pub user: Option<String>,
}

pub(crate) struct ExecControl(pub(crate) Arc<dyn ExecutionControl>);

impl ExecControl {
    pub(crate) async fn signal(&self, signal: Signal) -> Result<()> {
        self.0.signal(signal).await
    }
    pub(crate) async fn resize(&self, size: PtySize) -> Result<()> {
        self.0.resize(size).await
    }
}

/// One live isolated world.
#[derive(Clone)]
#[doc(alias = "SessionEnv")]
#[doc(alias = "SandboxSession")]
pub struct Sandbox {
    info: Arc<SandboxInfo>,
    driver: Arc<dyn SandboxDriver>,
}

fn later<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Internal, "not written yet"))
}

#[allow(unused_variables, missing_docs, clippy::unused_async)]
impl Sandbox {
    pub async fn create(provider: &dyn SandboxProvider, spec: SandboxSpec) -> Result<Self> {
        later()
    }
    pub async fn create_observed(
        provider: &dyn SandboxProvider,
        spec: SandboxSpec,
        observer: Arc<dyn Observer>,
    ) -> Result<Self> {
        later()
    }
    pub async fn open(provider: &dyn SandboxProvider, id_or_name: &str) -> Result<Self> {
        later()
    }
    pub async fn open_observed(
        provider: &dyn SandboxProvider,
        id_or_name: &str,
        observer: Arc<dyn Observer>,
    ) -> Result<Self> {
        later()
    }
    /// The sandbox of the spec's name (or id), and whether it was made now.
    pub async fn get_or_create(provider: &dyn SandboxProvider, spec: SandboxSpec) -> Result<(Self, bool)> {
        later()
    }
    pub fn id(&self) -> &SandboxId {
        &self.info.id
    }
    pub fn name(&self) -> &SandboxName {
        &self.info.name
    }
    pub fn info(&self) -> &SandboxInfo {
        &self.info
    }
    pub fn isolation(&self) -> &Isolation {
        self.driver.isolation()
    }
    pub fn capabilities(&self) -> &Capabilities {
        self.driver.capabilities()
    }
    pub fn cwd(&self) -> &SandboxPath {
        self.driver.workdir()
    }
    pub fn resolve_path(&self, path: &str) -> Result<SandboxPath> {
        self.cwd().resolve(path)
    }
    pub fn workspace(&self) -> crate::workspace::Workspace {
        crate::workspace::Workspace
    }
    pub async fn read(&self, path: &str) -> Result<Bytes> {
        later()
    }
    pub async fn read_text(&self, path: &str) -> Result<String> {
        later()
    }
    pub async fn read_stream(&self, path: &str, range: ByteRange) -> Result<ByteStream> {
        later()
    }
    /// Replaces the file; makes parents if the first try fails.
    pub async fn write(&self, path: &str, content: impl Into<Bytes> + Send) -> Result<()> {
        later()
    }
    pub async fn write_with(
        &self,
        path: &str,
        content: impl Into<Bytes> + Send,
        options: WriteOptions,
    ) -> Result<u64> {
        later()
    }
    pub async fn write_stream(&self, path: &str, content: ByteStream, options: WriteOptions) -> Result<u64> {
        later()
    }
    pub async fn stat(&self, path: &str) -> Result<FileStat> {
        later()
    }
    pub async fn list(&self, path: &str) -> Result<Vec<DirEntry>> {
        later()
    }
    pub async fn exists(&self, path: &str) -> Result<bool> {
        later()
    }
    pub async fn create_dir(&self, path: &str, options: CreateDirOptions) -> Result<()> {
        later()
    }
    pub async fn remove(&self, path: &str, options: RemoveOptions) -> Result<()> {
        later()
    }
    pub async fn rename(&self, from: &str, to: &str) -> Result<()> {
        later()
    }
    pub async fn exec(&self, command: impl Into<Command> + Send, options: ExecOptions) -> Result<ExecResult> {
        later()
    }
    pub async fn exec_stream(
        &self,
        command: impl Into<Command> + Send,
        options: ExecOptions,
    ) -> Result<ExecStream> {
        later()
    }
    pub async fn glob(&self, options: &GlobOptions) -> Result<GlobResult> {
        later()
    }
    pub async fn grep(&self, options: &GrepOptions) -> Result<GrepResult> {
        later()
    }
    pub async fn tar_out(&self, path: &str) -> Result<ByteStream> {
        later()
    }
    pub async fn tar_in(&self, path: &str, tar: ByteStream, options: TarInOptions) -> Result<u64> {
        later()
    }
    pub async fn dial(&self, port: u16) -> Result<Box<dyn TcpStream>> {
        later()
    }
    pub async fn usage(&self) -> Result<Usage> {
        later()
    }
    pub async fn start(&self, command: impl Into<Command> + Send, options: StartOptions) -> Result<ProcessInfo> {
        later()
    }
    pub async fn processes(&self) -> Result<Vec<ProcessInfo>> {
        later()
    }
    pub async fn wait(&self, process: ProcessId) -> Result<ProcessInfo> {
        later()
    }
    pub async fn logs(
        &self,
        process: ProcessId,
        query: LogQuery,
    ) -> Result<BoxStream<'static, Result<LogChunk>>> {
        later()
    }
    pub async fn kill(&self, process: ProcessId, signal: Option<Signal>) -> Result<()> {
        later()
    }
    pub async fn destroy(&self) -> Result<()> {
        later()
    }
}
