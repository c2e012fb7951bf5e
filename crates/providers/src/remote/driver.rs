//! The driver of a sandbox on another server.

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use eyot::wire::{
    Exists, Listing, LogPiece, PatchLifecycle, PatchSandbox, ProcessList, PublishedPorts, SignalBody,
    StartBody, StdinBody, Unpacked, UsageAnswer, Written,
};
use eyot::{
    ByteRange, ByteStream, Capabilities, Capability, Command, ConfinedPath, CreateDirOptions, DirEntry,
    EgressDecision, EgressRules, Error, ErrorKind, ExecRequest, Execution, FileStat, GlobOptions, GlobResult,
    GrepOptions, GrepResult, Isolation, KeepRequest, KeptAttachment, KeptControl, KeptInfo, Lifecycle,
    LiveProcesses, Log, LogChunk, LogQuery, LogRange, ProcessId, ProcessInfo, PublishedPort, RemoveOptions,
    Result, SandboxDriver, SandboxInfo, SandboxOperationUnsupported, SandboxPath, Signal, StartTerms,
    TarInOptions, TcpStream, Usage, WatchEvent, WatchEventKind, WatchOptions, WriteMode, WriteOptions,
};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::{Body, Method, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::http::{ServerClient, TargetSandbox, meant};
use super::server_events::values;
use super::upload::Upload;
use super::{exec, parts, port};

/// A sandbox of a server.
#[derive(Clone)]
pub(super) struct RemoteDriver {
    server: ServerClient,
    target: TargetSandbox,
    provider: String,
    capabilities: Capabilities,
    isolation: Isolation,
    workdir: SandboxPath,
    /// The largest part of a file that the server sends at once, in bytes.
    max_file_bytes: Option<u64>,
}

type Query<'a> = Vec<(&'a str, String)>;

impl RemoteDriver {
    /// Ends the sandbox. A sandbox that is gone is no error.
    async fn end(&self, query: Vec<(&'static str, String)>) -> Result<()> {
        let request = self.request(Method::DELETE, &[], query)?;
        match self.server.ask(request).await {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => Ok(()),
            other => other.map(drop),
        }
    }

    fn unsupported(&self, operation: &str) -> Error {
        SandboxOperationUnsupported::new(operation, &self.provider, &[]).into()
    }

    pub fn new(server: ServerClient, info: &SandboxInfo, capabilities: Capabilities) -> Self {
        let target =
            TargetSandbox { id: info.id.to_string(), name: info.name.to_string(), life: info.life.clone() };
        Self {
            server,
            target,
            provider: info.provider.clone(),
            capabilities,
            isolation: info.isolation.clone(),
            workdir: info.workdir.clone(),
            max_file_bytes: info.spec.limits.max_file_bytes,
        }
    }

    fn request(&self, method: Method, what: &[&str], query: Query<'_>) -> Result<RequestBuilder> {
        let path: Vec<&str> =
            ["v1", "sandboxes", &self.target.id].into_iter().chain(what.iter().copied()).collect();
        let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Ok(self.server.request(method, self.server.url(&path, &query)?))
    }

    async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T> {
        self.server.json(self.server.ask_about(&self.target, request).await?).await
    }

    async fn get<T: DeserializeOwned>(&self, what: &[&str], query: Query<'_>) -> Result<T> {
        self.ask(self.request(Method::GET, what, query)?).await
    }

    async fn done(&self, method: Method, what: &[&str], query: Query<'_>) -> Result<()> {
        self.server.ask_about(&self.target, self.request(method, what, query)?).await.map(drop)
    }

    async fn stream(&self, what: &[&str], query: Query<'_>) -> Result<ByteStream> {
        let response = self.server.ask_about(&self.target, self.request(Method::GET, what, query)?).await?;
        Ok(self.server.bytes(response).boxed())
    }

    async fn events<T: DeserializeOwned + Send + 'static>(
        &self,
        what: &[&str],
        query: Query<'_>,
    ) -> Result<BoxStream<'static, Result<T>>> {
        let target = self.target.clone();
        Ok(values(move |problem| meant(&target, problem), self.stream(what, query).await?))
    }

    /// Reads a range of a file with one request.
    pub async fn read_part(&self, file: &ConfinedPath, range: ByteRange) -> Result<ByteStream> {
        let mut query = at("path", file);
        query.push(("offset", range.offset.to_string()));
        query.extend(range.limit.map(|limit| ("limit", limit.to_string())));
        self.stream(&["files"], query).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        what: &[&str],
        query: Query<'_>,
        content: ByteStream,
    ) -> Result<T> {
        let upload = Upload::default();
        let request = self.request(Method::PUT, what, query)?.body(Body::wrap_stream(upload.watch(content)));
        let answer = self.ask(request).await;
        // What the content failed with says more than that the request broke off.
        match upload.failure() {
            Some(failure) => Err(failure),
            None => answer,
        }
    }
}

fn at(name: &'static str, place: &ConfinedPath) -> Query<'static> {
    let beneath = place.beneath.iter().map(|beneath| ("beneath", beneath.to_string()));
    std::iter::once((name, place.path.to_string())).chain(beneath).collect()
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value)
        .map_err(|error| Error::new(ErrorKind::Internal, "write a request down").with_source(error))
}

// A method that is added to the trait must be answered here, too.
#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl SandboxDriver for RemoteDriver {
    fn provider(&self) -> &str {
        &self.provider
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

    async fn destroy(&self) -> Result<()> {
        self.end(Vec::new()).await
    }

    async fn abandon(&self) -> Result<()> {
        self.end(vec![("abandon", "true".to_owned())]).await
    }

    async fn read(&self, file: &ConfinedPath, range: ByteRange) -> Result<ByteStream> {
        let has_ranges = self.capabilities.has(Capability::RangedRead);
        match self.max_file_bytes.filter(|_| has_ranges) {
            Some(most) if range.limit.is_none_or(|limit| limit > most) => {
                parts::read(self.clone(), file.clone(), range, most).await
            }
            _ => self.read_part(file, range).await,
        }
    }

    async fn write(&self, file: &ConfinedPath, content: ByteStream, options: WriteOptions) -> Result<u64> {
        let mut query = at("path", file);
        let mode = match options.mode {
            WriteMode::Replace => "replace",
            WriteMode::Append => "append",
            WriteMode::CreateNew => "create_new",
        };
        query.push(("mode", mode.to_owned()));
        query.extend(options.permissions.map(|bits| ("permissions", bits.to_string())));
        query.extend(options.max_file_bytes.map(|most| ("max_file_bytes", most.to_string())));
        let Written { size } = self.send(&["files"], query, content).await?;
        Ok(size)
    }

    async fn stat(&self, file: &ConfinedPath) -> Result<FileStat> {
        self.get(&["stat"], at("path", file)).await
    }

    async fn list(&self, directory: &ConfinedPath) -> Result<Vec<DirEntry>> {
        let mut query = at("path", directory);
        query.push(("order", "directory".to_owned()));
        let Listing { entries } = self.get(&["list"], query).await?;
        Ok(entries)
    }

    async fn exists(&self, file: &ConfinedPath) -> Result<bool> {
        let Exists { exists } = self.get(&["exists"], at("path", file)).await?;
        Ok(exists)
    }

    async fn create_dir(&self, directory: &ConfinedPath, options: CreateDirOptions) -> Result<()> {
        let mut query = at("path", directory);
        query.push(("recursive", options.recursive.to_string()));
        self.done(Method::POST, &["mkdir"], query).await
    }

    async fn remove(&self, file: &ConfinedPath, options: RemoveOptions) -> Result<()> {
        let mut query = at("path", file);
        query.push(("recursive", options.recursive.to_string()));
        query.push(("force", options.force.to_string()));
        self.done(Method::DELETE, &["files"], query).await
    }

    async fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> Result<()> {
        let mut query = at("from", from);
        query.push(("to", to.path.to_string()));
        self.done(Method::POST, &["rename"], query).await
    }

    async fn exec(&self, request: ExecRequest) -> Result<Execution> {
        exec::exec(&self.server, &self.target, request).await
    }

    async fn glob(&self, options: &GlobOptions) -> Result<GlobResult> {
        let mut query = at("path", &options.root);
        query.push(("pattern", options.pattern.clone()));
        query.push(("hidden", options.hidden.to_string()));
        query.push(("max_results", options.max_results.to_string()));
        self.get(&["glob"], query).await
    }

    async fn grep(&self, options: &GrepOptions) -> Result<GrepResult> {
        let mut query = at("path", &options.root);
        query.push(("pattern", options.pattern.clone()));
        query.push(("literal", options.literal.to_string()));
        query.push(("ignore_case", options.ignore_case.to_string()));
        query.extend(options.include.clone().map(|include| ("include", include)));
        query.push(("max_matches", options.max_matches.to_string()));
        query.push(("max_line_bytes", options.max_line_bytes.to_string()));
        self.get(&["grep"], query).await
    }

    async fn tar_out(&self, root: &ConfinedPath) -> Result<ByteStream> {
        self.stream(&["tree"], at("path", root)).await
    }

    async fn tar_in(&self, directory: &ConfinedPath, tar: ByteStream, options: TarInOptions) -> Result<u64> {
        let mut query = at("path", directory);
        query.push(("max_total_bytes", options.max_total_bytes.to_string()));
        query.push(("max_entries", options.max_entries.to_string()));
        let Unpacked { entries } = self.send(&["tree"], query, tar).await?;
        Ok(entries)
    }

    async fn watch(
        &self,
        place: &ConfinedPath,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, Result<WatchEvent>>> {
        let mut query = at("path", place);
        query.push(("recursive", options.recursive.to_string()));
        query.push(("max_directories", options.max_directories.to_string()));
        let events = self.events::<WatchEvent>(&["watch"], query).await?;
        let itself = place.path.to_string();
        Ok(events.map(move |event| event.map(|event| relative(event, &itself))).boxed())
    }

    async fn dial(&self, number: u16) -> Result<Box<dyn TcpStream>> {
        port::dial(&self.server, &self.target, number).await
    }

    async fn published_ports(&self) -> Result<Vec<PublishedPort>> {
        let PublishedPorts { ports } = self.get(&["ports"], Vec::new()).await?;
        Ok(ports)
    }

    async fn usage(&self) -> Result<Usage> {
        let UsageAnswer { usage } = self.get(&["usage"], Vec::new()).await?;
        Ok(usage)
    }

    async fn live_processes(&self) -> Result<LiveProcesses> {
        self.get(&["live"], Vec::new()).await
    }

    async fn start(&self, request: ExecRequest, terms: StartTerms) -> Result<ProcessInfo> {
        let (command, argv) = match request.command {
            Command::Shell(line) => (Some(line), None),
            Command::Argv(argv) => (None, Some(argv)),
        };
        let cwd = Some(request.cwd.path.to_string());
        let body = StartBody {
            command,
            argv,
            cwd,
            env: request.env,
            user: request.user,
            stdin: None,
            stdin_base64: base64_of(&terms.stdin),
            stdin_follows: terms.stdin_follows,
            timeout_ms: terms.timeout_ms,
            pty: request.pty,
        };
        let beneath = request.cwd.beneath.iter().map(|beneath| ("beneath", beneath.to_string())).collect();
        let asked = self.request(Method::POST, &["processes"], beneath)?.body(json(&body)?);
        self.ask(asked.header("content-type", "application/json")).await
    }

    async fn write_stdin(&self, process: ProcessId, data: Bytes, ends: bool) -> Result<()> {
        let body = StdinBody { stdin: None, stdin_base64: base64_of(&data), end: ends };
        let process = process.to_string();
        let asked = self.request(Method::POST, &["processes", &process, "stdin"], Vec::new())?;
        let asked = asked.header("content-type", "application/json").body(json(&body)?);
        self.server.ask_about(&self.target, asked).await.map(drop)
    }

    async fn processes(&self) -> Result<Vec<ProcessInfo>> {
        let ProcessList { processes } = self.get(&["processes"], Vec::new()).await?;
        Ok(processes)
    }

    async fn wait(&self, process: ProcessId) -> Result<ProcessInfo> {
        self.get(&["processes", &process.to_string(), "wait"], Vec::new()).await
    }

    async fn observe_end(&self, process: ProcessId) -> Result<ProcessInfo> {
        let query = vec![("observe", true.to_string())];
        self.get(&["processes", &process.to_string(), "wait"], query).await
    }

    async fn logs(&self, process: ProcessId, query: LogQuery) -> Result<Log> {
        let mut asked = vec![("offset", query.offset.to_string()), ("follow", query.follow.to_string())];
        asked.extend(query.stream.map(|stream| ("stream", word(&stream))));
        asked.extend(query.tail_bytes.map(|bytes| ("tail_bytes", bytes.to_string())));
        asked.extend(query.tail_lines.map(|lines| ("tail_lines", lines.to_string())));
        // What is kept of it is the handle's on this side.
        asked.push(("limit_bytes", u64::MAX.to_string()));
        let mut events =
            self.events::<LogMessage>(&["processes", &process.to_string(), "logs"], asked).await?;
        let range = match events.next().await {
            Some(Ok(LogMessage::Range(range))) => range,
            Some(Err(error)) => return Err(error),
            _ => return Err(Error::new(ErrorKind::Unavailable, "the server's answer has no beginning")),
        };
        Ok(Log { range, chunks: events.map(|event| event.and_then(chunk)).boxed() })
    }

    async fn kill(&self, process: ProcessId, signal: Option<Signal>) -> Result<()> {
        let body = SignalBody { signal: signal.map(|Signal(number)| number) };
        let process = process.to_string();
        let asked = self.request(Method::POST, &["processes", &process, "signal"], Vec::new())?;
        let asked = asked.header("content-type", "application/json").body(json(&body)?);
        self.server.ask_about(&self.target, asked).await.map(drop)
    }

    async fn egress_rules(&self) -> Result<EgressRules> {
        self.get(&["egress"], Vec::new()).await
    }

    async fn set_lifecycle(&self, lifecycle: &Lifecycle) -> Result<()> {
        let body =
            PatchSandbox { lifecycle: Some(PatchLifecycle::whole(lifecycle)), ..PatchSandbox::default() };
        let asked = self.request(Method::PATCH, &[], Vec::new())?.body(json(&body)?);
        let asked = asked.header("content-type", "application/json");
        self.server.ask_about(&self.target, asked).await.map(drop)
    }

    async fn set_egress_rules(&self, rules: &EgressRules) -> Result<()> {
        let asked = self.request(Method::PUT, &["egress"], Vec::new())?.body(json(rules)?);
        let asked = asked.header("content-type", "application/json");
        self.server.ask_about(&self.target, asked).await.map(drop)
    }

    async fn egress_decisions(
        &self,
        last: usize,
        follow: bool,
    ) -> Result<BoxStream<'static, Result<EgressDecision>>> {
        let query = vec![("last", last.to_string()), ("follow", follow.to_string())];
        self.events(&["egress", "decisions"], query).await
    }

    /// Every call makes a connection of its own or takes one that is there.
    fn is_connected(&self) -> bool {
        true
    }

    // The server keeps the commands that its clients stream, and hands out none of them as one.

    async fn keep(&self, _: KeepRequest) -> Result<KeptAttachment> {
        Err(self.unsupported("keep"))
    }

    async fn attach(&self, _: &str, _: Option<u64>) -> Result<KeptAttachment> {
        Err(self.unsupported("attach"))
    }

    async fn kept_commands(&self) -> Result<Vec<KeptInfo>> {
        Err(self.unsupported("kept_commands"))
    }

    async fn kept_end(&self, _: &str) -> Result<KeptInfo> {
        Err(self.unsupported("kept_end"))
    }

    async fn control_kept(&self, _: &str, _: KeptControl) -> Result<()> {
        Err(self.unsupported("control_kept"))
    }
}

fn base64_of(bytes: &Bytes) -> Option<String> {
    (!bytes.is_empty()).then(|| BASE64_STANDARD.encode(bytes))
}

#[derive(Deserialize)]
#[serde(untagged)]
enum LogMessage {
    Piece(LogPiece),
    Range(LogRange),
}

fn chunk(event: LogMessage) -> Result<LogChunk> {
    let unreadable = || Error::new(ErrorKind::Unavailable, "the server's answer can't be read");
    let LogMessage::Piece(LogPiece { stream, offset, stream_offset, data }) = event else {
        return Err(unreadable());
    };
    let data = BASE64_STANDARD.decode(data).map_err(|error| unreadable().with_source(error))?;
    Ok(LogChunk { stream, offset, stream_offset, data: data.into() })
}

fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Makes the paths of an event relative to the watched path, as drivers report them.
fn relative(event: WatchEvent, itself: &str) -> WatchEvent {
    let below = format!("{}/", itself.trim_end_matches('/'));
    let text = |path: String| {
        if path == itself {
            String::new()
        } else {
            path.strip_prefix(&below).map(str::to_owned).unwrap_or(path)
        }
    };
    let bytes = |bytes: Option<Vec<u8>>| {
        bytes.map(|bytes| bytes.strip_prefix(below.as_bytes()).map(<[u8]>::to_vec).unwrap_or(bytes))
    };
    let WatchEvent { kind, path, path_bytes, is_directory } = event;
    let kind = match kind {
        WatchEventKind::Renamed { from, from_bytes } => {
            WatchEventKind::Renamed { from: text(from), from_bytes: bytes(from_bytes) }
        }
        other => other,
    };
    WatchEvent { kind, path: text(path), path_bytes: bytes(path_bytes), is_directory }
}
