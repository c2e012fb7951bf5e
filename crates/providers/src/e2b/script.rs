//! Short scripts that the driver runs in a sandbox, as its user. The first line of the output says
//! whether they can do what is asked.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use eyot::{ByteStream, Error, ErrorKind, Result};
use futures_util::StreamExt;

use super::envd::{ProcessRequest, SILENCE, SystemUser};
use super::events::{ProcessEvent, ProcessEvents};
use super::link::Link;
use super::shell::{LIFE, bash};

/// The operations on files.
const FILES: &str = include_str!("files.sh");
/// The most bytes of a script's answer that is kept whole.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// A script that runs and has said that it can do what is asked.
pub(super) struct RunningScript {
    pub pid: u32,
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

/// Returns the command of an operation on files.
pub(super) fn on_files(link: &Link, operation: &str, arguments: &[&str]) -> Vec<String> {
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

/// Waits for the next event of a process. After a long silence it is looked whether the sandbox still lives.
pub(super) async fn next_event(link: &Link, events: &mut ProcessEvents) -> Result<ProcessEvent> {
    loop {
        let next = tokio::select! {
            next = tokio::time::timeout(SILENCE, events.next()) => next,
            () = link.destroyed.cancelled() => return Err(Error::destroyed(&link.name)),
        };
        match next {
            Ok(Ok(event)) => return Ok(event),
            Ok(Err(cut)) => return Err(link.cut(cut).await),
            Err(_) => {
                let silent = Error::new(ErrorKind::Timeout, "the sandbox is silent");
                let why = link.why(silent).await;
                if why.kind() != ErrorKind::Timeout {
                    return Err(why);
                }
            }
        }
    }
}

/// Starts a script, and returns once it has said that it can do what is asked.
pub(super) async fn start(link: &Arc<Link>, new: &ProcessRequest) -> Result<RunningScript> {
    let (pid, mut events) = link.start(new).await?;
    let ending = EndOnDrop { link: Arc::clone(link), pid: Some(pid) };
    let first = first_output(link, &mut events).await?;
    Ok(RunningScript { pid, events, first, ending })
}

/// Reads the first line of a script. Returns the output that came with it.
async fn first_output(link: &Link, events: &mut ProcessEvents) -> Result<Bytes> {
    let mut read = BytesMut::new();
    loop {
        if let Some(at) = read.iter().position(|byte| *byte == b'\n') {
            let line = read.split_to(at + 1);
            return match line.trim_ascii() {
                b"ok" => Ok(read.freeze()),
                b"sleeping" => Err(Error::sleeping(&link.name)),
                kind => Err(reason(&String::from_utf8_lossy(kind))),
            };
        }
        match next_event(link, events).await? {
            ProcessEvent::Stdout(bytes) => read.extend_from_slice(&bytes),
            ProcessEvent::End(end) => {
                let message = format!("a script of Eyot's failed in the sandbox: {}", end.status);
                return Err(Error::new(ErrorKind::Internal, message).with_hint(
                    "the template must have bash and GNU's tools, as those have that are based on Debian",
                ));
            }
            _ => {}
        }
    }
}

/// Makes the error of the kind that a script names.
fn reason(kind: &str) -> Error {
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
    let (_, mut events) = link.start(&ProcessRequest { argv, ..ProcessRequest::of(user) }).await?;
    let mut answer = first_output(link, &mut events).await?.to_vec();
    loop {
        match next_event(link, &mut events).await? {
            ProcessEvent::Stdout(bytes) => add(&mut answer, &bytes)?,
            // `find` ends with 1 where it may not look, which is told by what it prints.
            ProcessEvent::End(end) if !end.exited || end.exit_code > 1 => {
                return Err(unfinished(&end.status));
            }
            ProcessEvent::End(_) => return Ok(answer),
            _ => {}
        }
    }
}

/// Adds bytes to an answer that is kept whole.
fn add(answer: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    if answer.len() + bytes.len() > MAX_ANSWER_BYTES {
        let message = format!("the answer has more than {MAX_ANSWER_BYTES} bytes");
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    answer.extend_from_slice(bytes);
    Ok(())
}

/// Streams what a script prints. Dropping the stream ends the script.
pub(super) async fn streamed(link: &Arc<Link>, argv: Vec<String>) -> Result<ByteStream> {
    let new = ProcessRequest { argv, ..ProcessRequest::of(SystemUser::Own) };
    let RunningScript { events, first, ending, .. } = start(link, &new).await?;
    let first = futures_util::stream::iter(Some(first).filter(|first| !first.is_empty()).map(Ok));
    let rest = futures_util::stream::unfold(Some((events, ending)), |state| async {
        let (mut events, mut ending) = state?;
        loop {
            match next_event(&ending.link, &mut events).await {
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

fn unfinished(status: &str) -> Error {
    Error::new(ErrorKind::Permission, "not all of it could be read")
        .with_source(format!("the script in the sandbox ended with {status}"))
}

/// Kills a process when it is dropped before the process has ended.
pub(super) struct EndOnDrop {
    pub link: Arc<Link>,
    pub pid: Option<u32>,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let (Some(pid), Ok(runtime)) = (self.pid, tokio::runtime::Handle::try_current()) else { return };
        let link = Arc::clone(&self.link);
        runtime.spawn(async move {
            if let Err(error) = link.kill_process(pid).await {
                tracing::debug!(%error, "a script that nobody reads could not be ended");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_as_long_as_the_limit_is_kept_and_one_byte_more_is_refused() {
        let mut answer = vec![0; MAX_ANSWER_BYTES - 1];
        add(&mut answer, b"x").unwrap();
        assert_eq!(add(&mut answer, b"x").unwrap_err().kind(), ErrorKind::TooLarge);
    }
}
