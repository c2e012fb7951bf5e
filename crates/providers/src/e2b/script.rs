//! Short scripts that the driver runs in a sandbox, as its user. The first line of the output says
//! whether they can do what is asked.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use eyot::{ByteStream, Error, ErrorKind, Result};
use futures_util::StreamExt;
use uuid::Uuid;

use super::NAME;
use super::client::clean_text;
use super::envd::{ProcessRequest, SystemUser};
use super::envd_process::EnvdProcess;
use super::events::{ProcessEvent, ProcessEvents};
use super::files::FileScripts;
use super::link::Link;
use super::shell::{LIFE, bash};

/// The operations on files.
pub(crate) const FILES: &str = include_str!("files.sh");
pub(crate) const KILL: &str = include_str!("kill.sh");
/// The longest first line of a script, in bytes.
const MAX_LINE_BYTES: usize = 64;
/// The longest wait for the kill of a process whose end can't be heard of.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of a script's answer that is kept whole.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// A script that runs and has said that it can do what is asked.
pub(super) struct RunningScript {
    pub process: EnvdProcess,
    pub events: ProcessEvents,
    /// The output that came with the first line.
    pub first: Bytes,
    /// Ends it when it is dropped.
    pub ending: EndOnDrop,
}

/// Returns the command of a script that is for one life of the sandbox alone, its first argument.
pub(super) fn in_life(link: &Link, script: &str, arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    bash(&format!("{LIFE}{script}"), std::iter::once(link.life.clone()).chain(arguments))
}

#[async_trait]
impl FileScripts for Link {
    fn provider(&self) -> &'static str {
        NAME
    }

    async fn answer(&self, operation: &str, arguments: &[&str]) -> Result<Vec<u8>> {
        answer(self, on_files(self, operation, arguments), SystemUser::Own).await
    }

    async fn streamed(self: Arc<Self>, operation: &str, arguments: &[&str]) -> Result<ByteStream> {
        streamed(&self, on_files(&self, operation, arguments)).await
    }

    async fn upload(&self, path: &str, content: ByteStream) -> Result<()> {
        self.upload_file(path, content).await
    }
}

/// Returns the command of an operation on files.
fn on_files(link: &Link, operation: &str, arguments: &[&str]) -> Vec<String> {
    in_life(link, FILES, std::iter::once(operation).chain(arguments.iter().copied()).map(str::to_owned))
}

/// Runs a script as a user, and returns the life of the sandbox.
pub(super) async fn life_after(
    link: &Link,
    script: &str,
    arguments: &[&str],
    user: SystemUser,
) -> Result<String> {
    let script = format!("{LIFE}{script}printf 'ok\n%s' \"$life\"\n");
    let told = answer(link, bash(&script, arguments.iter().copied().map(str::to_owned)), user).await?;
    Ok(String::from_utf8_lossy(&told).into_owned())
}

/// Starts a script, and returns once it has said that it can do what is asked.
pub(super) async fn start(link: &Arc<Link>, new: &ProcessRequest) -> Result<RunningScript> {
    let tag = Uuid::new_v4().to_string();
    let started = link.start(new, Some(&tag)).await;
    if let Err(error) = &started
        && error.kind() == ErrorKind::Unavailable
        && !error.had_no_effect()
    {
        end_unheard(link, &tag).await;
    }
    let (pid, mut events) = started?;
    let mut ending = EndOnDrop { link: Arc::clone(link), pid: Some(pid) };
    match first_output(link, &mut events).await {
        Ok(Ok(first)) => Ok(RunningScript { process: EnvdProcess { pid, tag }, events, first, ending }),
        Ok(Err(refused)) => {
            // It ends by itself.
            ending.pid = None;
            Err(refused)
        }
        Err(error) => {
            ending.end().await;
            Err(error)
        }
    }
}

/// Kills what a start without an answer has perhaps started.
async fn end_unheard(link: &Link, tag: &str) {
    let ended = async {
        match link.find_process(tag).await? {
            Some(pid) => kill(link, pid).await,
            None => Ok(()),
        }
    };
    match tokio::time::timeout(KILL_PATIENCE, ended).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a process without an answer could not be killed"),
        Err(_) => tracing::debug!("a process without an answer could not be killed in time"),
    }
}

/// Kills a process with its children, whosever they are.
pub(super) async fn kill(link: &Link, pid: u32) -> Result<()> {
    // The script looks at the life: in another one the number is another's.
    answer(link, in_life(link, KILL, [pid.to_string()]), SystemUser::Root).await.map(drop)
}

/// Reads the first line of a script. Returns the output that came with it, or the script's own refusal.
async fn first_output(link: &Link, events: &mut ProcessEvents) -> Result<Result<Bytes>> {
    let mut read = BytesMut::new();
    loop {
        if let Some(line) = take_line(&mut read)? {
            return Ok(match line.trim_ascii() {
                b"ok" => Ok(read.freeze()),
                b"sleeping" => Err(Error::sleeping(&link.name)),
                kind => Err(reason(&String::from_utf8_lossy(kind))),
            });
        }
        match link.next_event(events).await? {
            ProcessEvent::Stdout(bytes) => read.extend_from_slice(&bytes),
            ProcessEvent::End(end) => {
                return Ok(Err(failed(&end.status).with_hint(
                    "the template must have bash and GNU's tools, as those have that are based on Debian",
                )));
            }
            _ => {}
        }
    }
}

/// Takes the first line out of what was read, once it is there.
pub(crate) fn take_line(read: &mut BytesMut) -> Result<Option<BytesMut>> {
    match read.iter().take(MAX_LINE_BYTES).position(|byte| *byte == b'\n') {
        Some(at) => Ok(Some(read.split_to(at + 1))),
        None if read.len() >= MAX_LINE_BYTES => Err(failed("its first line does not end")),
        None => Ok(None),
    }
}

pub(crate) fn failed(how: &str) -> Error {
    let message = format!("a script of Eyot's failed in the sandbox: {}", clean_text(how));
    Error::new(ErrorKind::Internal, message)
}

/// Makes the error of the kind that a script names.
pub(crate) fn reason(kind: &str) -> Error {
    let kind = ErrorKind::from_name(kind).unwrap_or(ErrorKind::Internal);
    let words = match kind {
        ErrorKind::NotFound => "no such file or directory",
        ErrorKind::NotDirectory => "not a directory",
        ErrorKind::IsDirectory => "is a directory",
        ErrorKind::AlreadyExists => "it already exists",
        ErrorKind::Permission => "permission denied",
        ErrorKind::Invalid => "not a regular file, or not possible there",
        ErrorKind::TooLarge => "the file would be larger than the limit",
        ErrorKind::Quota => "the disk is full",
        _ => "a script of Eyot's failed in the sandbox",
    };
    Error::new(kind, words)
}

/// Runs a short script as a user, and returns what it printed. A script whose caller leaves comes to its end all the same:
/// it may be halfway through a change.
pub(super) async fn answer(link: &Link, argv: Vec<String>, user: SystemUser) -> Result<Vec<u8>> {
    let (_, mut events) = link.start(&ProcessRequest { argv, ..ProcessRequest::of(user) }, None).await?;
    let mut answer = first_output(link, &mut events).await??.to_vec();
    loop {
        match link.next_event(&mut events).await? {
            ProcessEvent::Stdout(bytes) => add(&mut answer, &bytes)?,
            ProcessEvent::End(end) if end.exited && end.exit_code == 0 => return Ok(answer),
            ProcessEvent::End(end) => return Err(unfinished(&end.status)),
            _ => {}
        }
    }
}

pub(crate) fn add(answer: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    if answer.len() + bytes.len() > MAX_ANSWER_BYTES {
        let message = format!("the answer has more than {MAX_ANSWER_BYTES} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    answer.extend_from_slice(bytes);
    Ok(())
}

/// Streams what a script prints. Dropping the stream ends the script.
async fn streamed(link: &Arc<Link>, argv: Vec<String>) -> Result<ByteStream> {
    let new = ProcessRequest { argv, ..ProcessRequest::of(SystemUser::Own) };
    let RunningScript { events, first, ending, .. } = start(link, &new).await?;
    let first = futures_util::stream::iter(Some(first).filter(|first| !first.is_empty()).map(Ok));
    let rest = futures_util::stream::unfold(Some((events, ending)), |state| async {
        let (mut events, mut ending) = state?;
        loop {
            match ending.link.next_event(&mut events).await {
                Ok(ProcessEvent::Stdout(bytes)) => return Some((Ok(bytes), Some((events, ending)))),
                Ok(ProcessEvent::End(end)) => {
                    ending.pid = None;
                    // `tar` ends with 1 when a file has changed while it was read.
                    let failed = !end.exited || end.exit_code > 1;
                    return failed.then(|| (Err(unfinished(&end.status)), None));
                }
                Ok(_) => {}
                Err(error) => return Some((Err(error), None)),
            }
        }
    });
    Ok(first.chain(rest).fuse().boxed())
}

pub(crate) fn unfinished(status: &str) -> Error {
    Error::new(ErrorKind::Permission, "not all of it could be read")
        .with_source(format!("the script in the sandbox ended with {}", clean_text(status)))
}

/// Kills a process with its children when it is dropped before the process has ended.
pub(super) struct EndOnDrop {
    pub link: Arc<Link>,
    pub pid: Option<u32>,
}

impl EndOnDrop {
    /// Kills the process now, and waits for it for a while.
    pub async fn end(&mut self) {
        if let Some(pid) = self.pid {
            // A wait that is given up leaves the number, so that the drop tries it.
            if tokio::time::timeout(KILL_PATIENCE, end(&self.link, pid)).await.is_ok() {
                self.pid = None;
            }
        }
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let (Some(pid), Ok(runtime)) = (self.pid, tokio::runtime::Handle::try_current()) else { return };
        let link = Arc::clone(&self.link);
        runtime.spawn(async move { end(&link, pid).await });
    }
}

async fn end(link: &Link, pid: u32) {
    if let Err(error) = kill(link, pid).await {
        tracing::debug!(%error, "a process that nobody reads could not be killed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_as_long_as_the_limit_is_read_and_one_byte_more_is_refused() {
        let read = |length: usize| take_line(&mut BytesMut::from(&*format!("{}\n", "x".repeat(length))));
        assert_eq!(read(MAX_LINE_BYTES - 1).unwrap().unwrap().len(), MAX_LINE_BYTES);
        assert_eq!(read(MAX_LINE_BYTES).unwrap_err().kind(), ErrorKind::Internal);
        let begun = "x".repeat(MAX_LINE_BYTES - 1);
        assert!(take_line(&mut BytesMut::from(&*begun)).unwrap().is_none());
        let begun = "x".repeat(MAX_LINE_BYTES);
        assert!(take_line(&mut BytesMut::from(&*begun)).is_err());
    }

    #[test]
    fn an_answer_as_long_as_the_limit_is_kept_and_one_byte_more_is_refused() {
        let mut answer = vec![0; MAX_ANSWER_BYTES - 1];
        add(&mut answer, b"x").unwrap();
        assert_eq!(add(&mut answer, b"x").unwrap_err().kind(), ErrorKind::TooLarge);
    }
}
