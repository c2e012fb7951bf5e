//! Commands of the stand-in. Their output is kept, so that it can be read again from a place on; a command whose output nobody
//! reads waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eyot::{ExecEvent, ExecOptions, ExecStream, Outcome, PtySize, Stdin};
use eyot_providers::modal::wire::{ExecEnd, STDOUT};
use futures_util::StreamExt;
use tokio::sync::{mpsc, watch};

use super::records::Record;
use super::serve::{Refusal, refusal};

/// The output that is kept before the place of its reader, and that may wait for it, in bytes.
const KEPT_BYTES: usize = 4 << 20;
const WAITING_BYTES: usize = 256 << 10;
/// The time for which an output seems open that something holds behind the end of its command.
const HELD_OPEN_FOR: Duration = Duration::from_secs(5);

/// A command to start.
#[derive(Default)]
pub struct NewCommand {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub workdir: Option<String>,
    pub pty: Option<PtySize>,
    pub timeout_s: Option<u32>,
}

/// A command.
pub struct Command {
    outputs: [watch::Sender<Kept>; 2],
    input: tokio::sync::Mutex<Input>,
    end: watch::Sender<Option<ExecEnd>>,
}

/// An output, as far as it is kept.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    /// The place of the first of them.
    begins: usize,
    /// The place up to which it was read.
    read: usize,
    has_ended: bool,
}

struct Input {
    offset: u64,
    sender: Option<mpsc::Sender<eyot::Result<Bytes>>>,
}

impl Command {
    pub async fn start(record: &Arc<Record>, new: NewCommand) -> Result<Arc<Self>, Refusal> {
        let (sender, receiver) = mpsc::channel(1);
        let stdin = futures_util::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|piece| (piece, receiver))
        });
        let options = ExecOptions {
            cwd: Some(new.workdir.unwrap_or_else(|| "/".to_owned())),
            env: new.env,
            stdin: Stdin::Stream(stdin.fuse().boxed()),
            timeout_ms: new.timeout_s.map(|seconds| u64::from(seconds) * 1000),
            pty: new.pty,
            ..ExecOptions::default()
        };
        let events = record.sandbox.exec_stream(eyot::Command::argv(new.argv), options).await;
        let events = events.map_err(|error| {
            let not_there = error.kind() == eyot::ErrorKind::NotFound;
            let code = if not_there || error.kind() == eyot::ErrorKind::Permission { 3 } else { 13 };
            Refusal { code, message: "the command can't be started" }
        })?;
        let command = Arc::new(Self {
            outputs: [watch::Sender::default(), watch::Sender::default()],
            input: tokio::sync::Mutex::new(Input { offset: 0, sender: Some(sender) }),
            end: watch::Sender::new(None),
        });
        tokio::spawn(Arc::clone(&command).pump(events));
        Ok(command)
    }

    fn output(&self, descriptor: i32) -> &watch::Sender<Kept> {
        &self.outputs[usize::from(descriptor != STDOUT)]
    }

    async fn pump(self: Arc<Self>, mut events: ExecStream) {
        let mut output_open = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(ExecEvent::Stdout(bytes)) => self.keep(0, &bytes).await,
                Ok(ExecEvent::Stderr(bytes)) => self.keep(1, &bytes).await,
                Ok(ExecEvent::End(result)) => {
                    output_open = result.output_open;
                    self.end.send_replace(Some(match result.outcome {
                        Outcome::Exited(code) => ExecEnd::Code(code),
                        Outcome::Signaled(signal) => ExecEnd::Signal(signal),
                        _ => ExecEnd::Signal(9),
                    }));
                }
                Err(_) => break,
            }
        }
        if output_open {
            // Longer than a client listens. What holds it is not known, so it is let go then.
            tokio::time::sleep(HELD_OPEN_FOR).await;
        }
        for output in &self.outputs {
            output.send_modify(|kept| kept.has_ended = true);
        }
        self.input.lock().await.sender = None;
    }

    async fn keep(&self, at: usize, bytes: &[u8]) {
        self.outputs[at].send_modify(|kept| {
            kept.bytes.extend_from_slice(bytes);
            let old = kept.read.saturating_sub(kept.begins).saturating_sub(KEPT_BYTES);
            kept.bytes.drain(..old);
            kept.begins += old;
        });
        let mut seen = self.outputs[at].subscribe();
        let taken = |kept: &Kept| kept.begins + kept.bytes.len() - kept.read < WAITING_BYTES;
        // The sender is this command's own.
        drop(seen.wait_for(taken).await);
    }

    /// Waits for output from a place on; `None`: it has ended there.
    pub async fn read(&self, descriptor: i32, offset: u64) -> Result<Option<Bytes>, Refusal> {
        let output = self.output(descriptor);
        let offset = usize::try_from(offset).expect("a place in memory");
        let mut seen = output.subscribe();
        let come = |kept: &Kept| kept.has_ended || kept.begins + kept.bytes.len() > offset;
        if seen.wait_for(come).await.is_err() {
            return Ok(None);
        }
        let mut piece = None;
        output.send_modify(|kept| {
            let from = offset.checked_sub(kept.begins).filter(|from| *from <= kept.bytes.len());
            piece = from.map(|from| {
                Bytes::copy_from_slice(&kept.bytes[from..kept.bytes.len().min(from + (64 << 10))])
            });
            kept.read = kept.read.max(offset);
        });
        match piece {
            Some(piece) => Ok(Some(piece).filter(|piece| !piece.is_empty())),
            None => refusal(11, "this output is not kept any more"),
        }
    }

    /// Takes input at a place. What came before is not given again.
    pub async fn write(&self, offset: u64, data: Bytes, eof: bool) -> Result<(), Refusal> {
        let mut input = self.input.lock().await;
        let Some(known) = input.offset.checked_sub(offset) else { return refusal(11, "there is a gap") };
        let known = usize::try_from(known).expect("a short input").min(data.len());
        let new = data.slice(known..);
        let Some(sender) = input.sender.clone() else {
            return if new.is_empty() { Ok(()) } else { refusal(9, "the input is closed") };
        };
        let length = new.len() as u64;
        if !new.is_empty() && sender.send(Ok(new)).await.is_err() {
            return refusal(9, "the input is closed");
        }
        input.offset += length;
        if eof {
            input.sender = None;
        }
        Ok(())
    }

    /// Returns the end, if it has come.
    pub fn ended(&self) -> Option<ExecEnd> {
        *self.end.borrow()
    }

    /// Waits for the end; `None`: there is none, because the sandbox was lost.
    pub async fn end(&self) -> Option<ExecEnd> {
        let mut end = self.end.subscribe();
        let ended = end.wait_for(Option::is_some).await.ok()?;
        *ended
    }
}
