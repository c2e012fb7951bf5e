//! Kept commands: attachments to them, their input, and the facts about them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use eyot::{
    Bytes, Error, ErrorKind, ExecResult, ExecutionInput, KeptAttachment, KeptControl, KeptEvent, KeptInfo,
    KeptPiece, LogStream, Outcome, Result, Signal,
};
use futures_util::Stream;

use super::call::Call;
use super::connection::Connection;
use super::convert::{exit_status, terminal};
use super::pieces::{DataPiece, take_number};
use crate::protocol::{CHANNEL_STDOUT, Control, Event, KeptEnd, KeptRecord, Reply, Request, StopCause};

/// The longest id that a guest may give.
const MAX_ID_BYTES: usize = 64;

/// The attachment of a call, once the guest has announced it.
pub(super) async fn attachment(connection: &Connection, call: Call) -> Result<KeptAttachment> {
    let info = match call.event().await? {
        Some(Event::Kept(record)) => info(record)?,
        // The call's shape lets nothing else through.
        other => return Err(Error::new(ErrorKind::Internal, format!("attached with {other:?}"))),
    };
    let keyboard = || Keyboard { connection: connection.clone(), id: info.id.clone(), call: None };
    let input = info.is_terminal.then(|| Box::new(keyboard()) as Box<dyn ExecutionInput>);
    Ok(KeptAttachment { events: Box::pin(KeptEvents { call: Some(call) }), input, info })
}

/// The request that carries out a control.
pub(super) fn control_request(id: &str, control: KeptControl) -> Request {
    let control = match control {
        KeptControl::Kill => Control::Kill,
        KeptControl::Signal(Signal(number)) => Control::Signal(number),
        KeptControl::Resize(size) => Control::Resize(terminal(size)),
        KeptControl::Forget => return Request::Forget(id.to_owned()),
    };
    Request::KeptControl(id.to_owned(), control)
}

/// Gives a command its whole input. If this is dropped before, the guest kills the command.
pub(super) async fn feed(connection: Connection, id: String, input: Bytes) {
    let feeding = async {
        let call = connection.call(&Request::KeptInput(id)).await?;
        if call.sender().send(&input).await {
            call.sender().send_end();
        }
        call.reply().await
    };
    if let Err(error) = feeding.await {
        // Whoever reads its output learns what became of it.
        tracing::debug!(%error, "a kept command did not take all of its input");
    }
}

/// The facts in a record.
pub(super) fn info(record: KeptRecord) -> Result<KeptInfo> {
    let is_id = |id: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(is_plain)
    };
    if !is_id(&record.id) {
        return Err(Error::new(ErrorKind::Unavailable, "the sandbox's guest named a kept command oddly"));
    }
    let result = record.end.map(|end| result(&record, end));
    Ok(KeptInfo {
        id: record.id,
        command: record.command,
        is_terminal: record.terminal,
        started_ms: record.started_ms,
        age_ms: record.age_ms,
        is_attached: record.attached,
        timeout_ms: record.timeout_ms,
        first: record.first,
        next: record.next,
        result,
    })
}

fn result(record: &KeptRecord, end: KeptEnd) -> ExecResult {
    let outcome = match end.cause {
        Some(StopCause::Deadline) => Outcome::TimedOut,
        Some(StopCause::Client) => Outcome::Cancelled,
        None => exit_status(end.status).into(),
    };
    ExecResult {
        outcome,
        stdout: Bytes::new(),
        stderr: Bytes::new(),
        stdout_bytes: record.stdout_bytes,
        stderr_bytes: record.stderr_bytes,
        duration_ms: end.duration_ms,
        timeout_ms: record.timeout_ms,
        may_still_be_running: false,
        output_open: end.output_open,
    }
}

/// The events of an attachment. Dropping the stream leaves the command.
struct KeptEvents {
    call: Option<Call>,
}

impl Stream for KeptEvents {
    type Item = Result<KeptEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(call) = &self.call else {
            return Poll::Ready(None);
        };
        if let Some(piece) = ready!(call.poll_piece(context)) {
            return Poll::Ready(Some(Ok(KeptEvent::Output(output(piece)))));
        }
        let end = ready!(call.poll_reply(context));
        self.call = None;
        Poll::Ready(end.and_then(last).transpose())
    }
}

/// The end, if the command has ended and was not left to another client.
fn last(reply: Reply) -> Result<Option<KeptEvent>> {
    match reply {
        Reply::Kept(record) => Ok(info(record)?.result.map(|result| KeptEvent::End(Box::new(result)))),
        other => Err(super::convert::unexpected(&other)),
    }
}

/// The output in a frame of data: its positions lead. The reader has checked that they are there.
fn output(piece: DataPiece) -> KeptPiece {
    let mut data = Bytes::from(piece.bytes);
    let (start, end) = (take_number(&mut data), take_number(&mut data));
    let stream = if piece.channel == CHANNEL_STDOUT { LogStream::Stdout } else { LogStream::Stderr };
    KeptPiece { stream, start, end, data }
}

/// The keyboard of a terminal. Its call begins with the first key.
struct Keyboard {
    connection: Connection,
    id: String,
    call: Option<Call>,
}

#[async_trait]
impl ExecutionInput for Keyboard {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let call = match self.call.take() {
            Some(call) => call,
            None => self.connection.call(&Request::KeptInput(self.id.clone())).await?,
        };
        let is_taken = call.sender().send(&bytes).await;
        let refusal = call.sender().not_read();
        self.call = Some(call);
        if is_taken { Ok(()) } else { Err(refusal) }
    }
}
