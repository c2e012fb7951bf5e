//! Short scripts that the driver runs in a sandbox. The first line of the output names the process, the next one says
//! whether it can do what is asked.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use eyot::{ByteStream, Error, ErrorKind, PtySize, Result};
use futures_util::future::BoxFuture;
use futures_util::stream::Fuse;
use futures_util::{FutureExt, StreamExt};
use uuid::Uuid;

use super::NAME;
use super::grpc::PATIENCE;
use super::input::PlacedInput;
use super::link::ModalLink;
use super::output::OutputReader;
use super::wire::{
    Empty, ExecEnd, OfExec, PIPE, PTY_SHELL, PtyInfo, STDOUT, SecretSource, SecretSourceKind, StringMap,
    TaskExecStartRequest, TaskExecStatus,
};
use crate::e2b::files::FileScripts;
use crate::e2b::script::{FILES, KILL, add, failed, reason, take_line, unfinished};
use crate::e2b::shell::bash;

const OWN: &str = include_str!("own.sh");
const AT_START: &str = include_str!("at_start.sh");
const UPLOAD: &str = include_str!("upload.sh");
const RESIZE: &str = include_str!("resize.sh");
/// Gives a script without input an empty one.
const NO_INPUT: &str = "exec </dev/null\n";
/// The longest wait for the kill of a process whose end can't be heard of.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
/// The longest wait for one answer about the end of a process. Then the sandbox is looked at, and it is asked again.
const END_ASKED_FOR: Duration = Duration::from_secs(30);
/// The longest wait for the output of a script that has ended, and the longest silence of one after which its end is looked for.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(30);
/// The time for which it is looked for then.
const END_LOOKED_FOR: Duration = Duration::from_secs(1);
/// The most bytes of the arguments of a process, as Modal has it: "Total length of CMD arguments cannot exceed".
const MAX_ARGUMENTS_BYTES: usize = 1 << 16;
/// The advice about an image that lacks the scripts' programs.
const IMAGE_HINT: &str = "the image must have bash and GNU's tools, as those have that are based on Debian";
/// The number of bytes at which no more pieces of an upload are put together.
const MOST_AT_ONCE_BYTES: usize = 256 << 10;
/// The exit code of the upload when its file could not be written.
const NO_ROOM: i32 = 3;

/// A process of a sandbox. Its start tells it from another one that has the number later.
#[derive(Debug, Clone)]
pub(super) struct ModalProcess {
    pub exec_id: String,
    pub pid: u32,
    pub started: String,
}

/// A script to start.
#[derive(Default)]
pub(super) struct NewScript {
    pub script: String,
    /// The arguments; the scripts take the first for the life of the sandbox, which is empty.
    pub arguments: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub stdin: bool,
    pub pty: Option<PtySize>,
    /// The file that it makes; it is removed when the script is killed.
    pub makes: Option<String>,
}

/// A script that runs and has said that it can do what is asked.
pub(super) struct StartedScript {
    pub process: ModalProcess,
    pub stdout: OutputReader,
    /// The output that came with the first lines.
    pub first: Bytes,
    /// Ends it when it is dropped.
    pub ending: CommandGuard,
}

fn operation(name: &str, arguments: &[&str]) -> NewScript {
    let arguments = ["", name].into_iter().chain(arguments.iter().copied()).map(str::to_owned).collect();
    NewScript { script: FILES.to_owned(), arguments, ..NewScript::default() }
}

/// Starts a script, and returns once it has said that it can do what is asked. A start whose caller leaves goes on until it is
/// known what there is to kill.
pub(super) async fn start(link: &Arc<ModalLink>, new: NewScript) -> Result<StartedScript> {
    let link = Arc::clone(link);
    let starting = tokio::spawn(async move { start_here(&link, new).await });
    starting.await.map_err(ended_early)?
}

fn ended_early(error: tokio::task::JoinError) -> Error {
    Error::new(ErrorKind::Internal, "a task ended early").with_source(error)
}

async fn start_here(link: &Arc<ModalLink>, mut new: NewScript) -> Result<StartedScript> {
    let makes = new.makes.take();
    let exec_id = Uuid::new_v4().to_string();
    let request = request(link, &exec_id, new)?;
    let mut is_open = false;
    let begun = link.routed_noting::<Empty>("TaskExecStart", &request, PATIENCE, &mut is_open).await;
    let mut stdout = OutputReader::new(link, &exec_id, STDOUT);
    let mut read = BytesMut::new();
    if let Err(error) = begun {
        if error.kind() == ErrorKind::Setup {
            return Err(error.with_hint(IMAGE_HINT));
        }
        if is_open && error.kind() != ErrorKind::Destroyed {
            end_unheard(link, &exec_id, stdout, read).await;
            remove_made_later(link, makes);
        }
        return Err(error);
    }
    let own = tokio::time::timeout(PATIENCE, own_line(link, &exec_id, &mut stdout, &mut read)).await;
    let late = |_| Error::new(ErrorKind::Unavailable, "the sandbox does not answer");
    let process = match own.map_err(late).flatten() {
        Ok(process) => process,
        Err(error) => {
            // It runs, and has no guard yet.
            if error.kind() != ErrorKind::Destroyed {
                let again = OutputReader::new(link, &exec_id, STDOUT);
                end_unheard(link, &exec_id, again, BytesMut::new()).await;
                remove_made_later(link, makes);
            }
            return Err(error);
        }
    };
    let mut ending = CommandGuard { link: Arc::clone(link), process: Some(process.clone()), makes };
    match next_line(link, &exec_id, &mut stdout, &mut read).await {
        Ok(line) => match line.trim_ascii() {
            b"ok" => Ok(StartedScript { process, stdout, first: read.freeze(), ending }),
            kind => {
                // It ends by itself.
                ending.process = None;
                if kind == b"sleeping" {
                    return Err(Error::sleeping(&link.name));
                }
                Err(reason(&String::from_utf8_lossy(kind)))
            }
        },
        Err(error) => {
            ending.end().await;
            Err(error)
        }
    }
}

fn request(link: &ModalLink, exec_id: &str, new: NewScript) -> Result<TaskExecStartRequest> {
    let NewScript { script, arguments, env, stdin, pty, .. } = new;
    let no_input = if stdin || pty.is_some() { "" } else { NO_INPUT };
    let command_args = bash(&format!("{no_input}{OWN}{script}"), arguments);
    if command_args.iter().map(String::len).sum::<usize>() > MAX_ARGUMENTS_BYTES {
        let message = format!(
            "the arguments have more than the {MAX_ARGUMENTS_BYTES} bytes that Modal takes, with Eyot's own"
        );
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let source = Some(SecretSourceKind::Env(StringMap { contents: env.clone() }));
    Ok(TaskExecStartRequest {
        task_id: link.task_id.clone(),
        exec_id: exec_id.to_owned(),
        command_args,
        stdout_config: PIPE,
        stderr_config: PIPE,
        timeout_secs: None,
        workdir: Some("/".to_owned()),
        pty_info: pty.map(|size| PtyInfo {
            enabled: true,
            winsz_rows: size.rows.into(),
            winsz_cols: size.cols.into(),
            env_term: "xterm-256color".to_owned(),
            pty_type: PTY_SHELL,
            no_terminate_on_idle_stdin: true,
        }),
        secret_sources: if env.is_empty() { Vec::new() } else { vec![SecretSource { source }] },
    })
}

/// Kills what a start without an answer has perhaps started.
async fn end_unheard(link: &Arc<ModalLink>, exec_id: &str, mut stdout: OutputReader, mut read: BytesMut) {
    let ended = async {
        let process = own_line(link, exec_id, &mut stdout, &mut read).await?;
        kill(link, &process).await
    };
    match tokio::time::timeout(KILL_PATIENCE, ended).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a process without an answer could not be killed"),
        Err(_) => tracing::debug!("a process without an answer could not be killed in time"),
    }
}

/// Reads the line that names the process.
async fn own_line(
    link: &Arc<ModalLink>,
    exec_id: &str,
    stdout: &mut OutputReader,
    read: &mut BytesMut,
) -> Result<ModalProcess> {
    let line = next_line(link, exec_id, stdout, read).await?;
    let text = String::from_utf8_lossy(&line);
    let mut words = text.split_ascii_whitespace();
    let pid = words.next().and_then(|pid| pid.parse().ok());
    match (pid, words.next()) {
        (Some(pid), Some(started)) => {
            Ok(ModalProcess { exec_id: exec_id.to_owned(), pid, started: started.to_owned() })
        }
        _ => Err(failed("its first line names no process")),
    }
}

async fn next_line(
    link: &Arc<ModalLink>,
    exec_id: &str,
    stdout: &mut OutputReader,
    read: &mut BytesMut,
) -> Result<BytesMut> {
    loop {
        if let Some(line) = take_line(read)? {
            return Ok(line);
        }
        match stdout.next().await? {
            Some(bytes) => read.extend_from_slice(&bytes),
            None => {
                let how = shown(end(link, exec_id).await?);
                return Err(failed(&how).with_hint(IMAGE_HINT));
            }
        }
    }
}

fn shown(end: ExecEnd) -> String {
    match end {
        ExecEnd::Code(code) => format!("exit status {code}"),
        ExecEnd::Signal(signal) => format!("signal {signal}"),
    }
}

/// Waits for the end of a process.
pub(super) async fn end(link: &ModalLink, exec_id: &str) -> Result<ExecEnd> {
    let request = OfExec { task_id: link.task_id.clone(), exec_id: exec_id.to_owned() };
    loop {
        let asked = link.wait_once(&request, END_ASKED_FOR).await?;
        let Some(TaskExecStatus { exit_status }) = asked else { continue };
        return exit_status
            .ok_or_else(|| Error::new(ErrorKind::Unavailable, "Modal does not say how the command ended"));
    }
}

impl ModalLink {
    /// Asks for the end of a process once; `None`: it has not come while it was waited for, and the sandbox lives.
    async fn wait_once(&self, request: &OfExec, patience: Duration) -> Result<Option<TaskExecStatus>> {
        // The answer is late as long as the process runs, which is no failure.
        let asked = self.routed("TaskExecWait", request, 2 * patience);
        match tokio::time::timeout(patience, asked).await {
            Ok(answer) => answer.map(Some),
            Err(_) => match self.why(Error::new(ErrorKind::Timeout, "the process runs")).await {
                error if error.kind() == ErrorKind::Timeout => Ok(None),
                gone => Err(gone),
            },
        }
    }
}

/// Kills a process with its children. One that has ended is fine.
///
/// The kill is a script, whose start kills what it can't finish, so the type of the future is named.
pub(super) fn kill<'a>(link: &'a Arc<ModalLink>, process: &'a ModalProcess) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        match on_process(link, KILL, process, &[]).await {
            // The start is another's: the process has ended.
            Err(error) if error.is_sleeping() => Ok(()),
            killed => killed,
        }
    })
}

/// Changes the size of a terminal.
pub(super) async fn resize(link: &Arc<ModalLink>, process: &ModalProcess, size: PtySize) -> Result<()> {
    on_process(link, RESIZE, process, &[size.rows.to_string(), size.cols.to_string()]).await
}

async fn on_process(
    link: &Arc<ModalLink>,
    script: &str,
    process: &ModalProcess,
    more: &[String],
) -> Result<()> {
    let arguments =
        [process.started.clone(), process.pid.to_string()].into_iter().chain(more.iter().cloned());
    let new = NewScript {
        script: format!("{AT_START}{script}"),
        arguments: arguments.collect(),
        ..NewScript::default()
    };
    answer(link, new).await.map(drop)
}

/// Runs a short script, and returns what it printed. A script whose caller leaves comes to its end all the same: it may be
/// halfway through a change.
pub(super) async fn answer(link: &Arc<ModalLink>, new: NewScript) -> Result<Vec<u8>> {
    let link = Arc::clone(link);
    let run = tokio::spawn(async move {
        let StartedScript { process, mut stdout, first, mut ending } = start(&link, new).await?;
        ending.process = None;
        let mut answer = first.to_vec();
        match whole_output(&link, &process.exec_id, &mut stdout, &mut answer).await? {
            ExecEnd::Code(0) => Ok(answer),
            other => Err(unfinished(&shown(other))),
        }
    });
    run.await.map_err(ended_early)?
}

/// Reads the whole output of a script, and returns how it has ended. An output that something holds open behind the end is an
/// error: it may not be whole.
async fn whole_output(
    link: &ModalLink,
    exec_id: &str,
    stdout: &mut OutputReader,
    kept: &mut Vec<u8>,
) -> Result<ExecEnd> {
    let mut reading = pin!(async {
        while let Some(bytes) = stdout.next().await? {
            add(kept, &bytes)?;
        }
        Ok(())
    });
    let mut ending = pin!(end(link, exec_id));
    tokio::select! {
        read = &mut reading => {
            read?;
            ending.await
        }
        ended = &mut ending => {
            let ended = ended?;
            let read: Result<()> =
                tokio::time::timeout(OUTPUT_PATIENCE, reading).await.unwrap_or_else(|_| Err(held_open()));
            read.map(|()| ended)
        }
    }
}

fn held_open() -> Error {
    Error::new(ErrorKind::Unavailable, "the output of a script of Eyot's does not end")
}

/// A way to a sandbox on which the scripts about files run.
#[derive(Debug, Clone)]
pub(super) struct LinkScripts(pub Arc<ModalLink>);

#[async_trait]
impl FileScripts for LinkScripts {
    fn provider(&self) -> &'static str {
        NAME
    }

    async fn answer(&self, name: &str, arguments: &[&str]) -> Result<Vec<u8>> {
        answer(&self.0, operation(name, arguments)).await
    }

    async fn streamed(self: Arc<Self>, name: &str, arguments: &[&str]) -> Result<ByteStream> {
        let StartedScript { process, stdout, first, ending } =
            start(&self.0, operation(name, arguments)).await?;
        let first = futures_util::stream::iter(Some(first).filter(|first| !first.is_empty()).map(Ok));
        let rest = futures_util::stream::unfold(Some((process, stdout, ending)), |state| async {
            let (process, mut stdout, mut ending) = state?;
            loop {
                match tokio::time::timeout(OUTPUT_PATIENCE, stdout.next()).await {
                    Ok(Ok(Some(bytes))) => return Some((Ok(bytes), Some((process, stdout, ending)))),
                    Ok(Ok(None)) => break,
                    Ok(Err(error)) => return Some((Err(error), None)),
                    Err(_) => {
                        let ended = end(&ending.link, &process.exec_id);
                        if tokio::time::timeout(END_LOOKED_FOR, ended).await.is_ok() {
                            return Some((Err(held_open()), None));
                        }
                    }
                }
            }
            match end(&ending.link, &process.exec_id).await {
                // `tar` ends with 1 when a file has changed while it was read.
                Ok(ExecEnd::Code(0 | 1)) => {
                    ending.process = None;
                    None
                }
                Ok(other) => {
                    ending.process = None;
                    Some((Err(unfinished(&shown(other))), None))
                }
                Err(error) => Some((Err(error), None)),
            }
        });
        Ok(first.chain(rest).fuse().boxed())
    }

    async fn upload(&self, path: &str, content: ByteStream) -> Result<()> {
        let mut content = content.fuse();
        let arguments = vec![String::new(), path.to_owned()];
        let (script, makes) = (UPLOAD.to_owned(), Some(path.to_owned()));
        let new = NewScript { script, arguments, stdin: true, makes, ..NewScript::default() };
        let StartedScript { process, mut stdout, first, mut ending } = start(&self.0, new).await?;
        let (mut input, mut sent) = (PlacedInput::of_script(&self.0, &process.exec_id), 0_u64);
        while let Some(piece) = next_ready(&mut content).await? {
            sent += piece.len() as u64;
            if let Err(error) = input.send(piece).await {
                // A script that could not write has ended, and says so.
                let ended = tokio::time::timeout(KILL_PATIENCE, end(&self.0, &process.exec_id)).await;
                return Err(if matches!(ended, Ok(Ok(ExecEnd::Code(NO_ROOM)))) { no_room() } else { error });
            }
        }
        input.close().await?;
        let mut told = first.to_vec();
        let ended = whole_output(&self.0, &process.exec_id, &mut stdout, &mut told).await?;
        ending.process = None;
        match ended {
            ExecEnd::Code(0) if str::from_utf8(&told).is_ok_and(|told| told.trim() == sent.to_string()) => {
                Ok(())
            }
            ExecEnd::Code(NO_ROOM) => Err(no_room()),
            other => Err(failed(&shown(other))),
        }
    }
}

/// Returns what is there of a stream, since each piece is a call of its own. `None`: it has ended.
async fn next_ready(content: &mut Fuse<ByteStream>) -> Result<Option<Bytes>> {
    let Some(first) = content.next().await.transpose()? else { return Ok(None) };
    let mut ready = BytesMut::from(first);
    while ready.len() < MOST_AT_ONCE_BYTES {
        match content.next().now_or_never() {
            Some(Some(piece)) => ready.extend_from_slice(&piece?),
            Some(None) | None => break,
        }
    }
    Ok(Some(ready.freeze()))
}

fn no_room() -> Error {
    Error::new(ErrorKind::Quota, "the disk is full")
}

/// Kills a process with its children when it is dropped before the process has ended.
pub(super) struct CommandGuard {
    pub link: Arc<ModalLink>,
    pub process: Option<ModalProcess>,
    /// The file that it makes.
    makes: Option<String>,
}

impl CommandGuard {
    /// Kills the process now, and waits for it for a while.
    pub async fn end(&mut self) {
        if let Some(process) = self.process.clone() {
            let killed = kill_unread(&self.link, &process, self.makes.clone());
            // A wait that is given up leaves it, so that the drop tries it.
            if tokio::time::timeout(KILL_PATIENCE, killed).await.is_ok() {
                self.process = None;
            }
        }
    }
}

impl Drop for CommandGuard {
    fn drop(&mut self) {
        let (Some(process), Ok(runtime)) = (self.process.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let (link, makes) = (Arc::clone(&self.link), self.makes.take());
        runtime.spawn(async move { kill_unread(&link, &process, makes).await });
    }
}

async fn kill_unread(link: &Arc<ModalLink>, process: &ModalProcess, makes: Option<String>) {
    if let Err(error) = kill(link, process).await {
        tracing::debug!(%error, "a process that nobody reads could not be killed");
    }
    remove_made(link, makes).await;
}

/// Removes the file that a script was to make, after the error that says why was told.
fn remove_made_later(link: &Arc<ModalLink>, makes: Option<String>) {
    let link = Arc::clone(link);
    tokio::spawn(async move { remove_made(&link, makes).await });
}

/// Removes the file that a script was to make. While the script lives, it could make it afterwards.
fn remove_made(link: &Arc<ModalLink>, makes: Option<String>) -> BoxFuture<'_, ()> {
    Box::pin(async move {
        let Some(path) = makes else { return };
        match answer(link, operation("remove", &[&path, "no"])).await {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::debug!(%error, "an upload that was given up could not be removed");
            }
            _ => {}
        }
    })
}
