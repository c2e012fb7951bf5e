//! A running command: its events, its input and its control.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use eyot::{Bytes, Execution, ExecutionControl, ExecutionEvent, ExecutionInput, PtySize, Result, Signal};
use futures_util::Stream;

use super::call::{Call, CallSender};
use super::connection::Connection;
use super::convert::{exit_status, terminal, unexpected};
use crate::protocol::{CHANNEL_STDOUT, Control, Reply};

/// The command of a call that has started.
pub(super) fn execution(connection: Connection, call: Call, stdin: bool) -> Execution {
    let sender = call.sender().clone();
    let input = stdin.then(|| Box::new(CommandInput(sender.clone())) as Box<dyn ExecutionInput>);
    Execution {
        events: Box::pin(CommandEvents { call: Some(call) }),
        input,
        control: Arc::new(CommandControl { sender, connection }),
    }
}

/// The events of the command. Dropping the stream cancels the call, which kills the command's tree.
struct CommandEvents {
    call: Option<Call>,
}

impl Stream for CommandEvents {
    type Item = Result<ExecutionEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(call) = &self.call else {
            return Poll::Ready(None);
        };
        if let Some(piece) = ready!(call.poll_piece(context)) {
            let bytes = Bytes::from(piece.bytes);
            let stdout = piece.channel == CHANNEL_STDOUT;
            let event = if stdout { ExecutionEvent::Stdout(bytes) } else { ExecutionEvent::Stderr(bytes) };
            return Poll::Ready(Some(Ok(event)));
        }
        let end = ready!(call.poll_reply(context));
        self.call = None;
        Poll::Ready(Some(end.and_then(exit)))
    }
}

fn exit(reply: Reply) -> Result<ExecutionEvent> {
    match reply {
        Reply::Exited(status, output_open) => Ok(ExecutionEvent::Exit {
            status: exit_status(status),
            output_open: output_open.unwrap_or(false),
        }),
        other => Err(unexpected(&other)),
    }
}

/// The command's standard input. Dropping it sends the end.
struct CommandInput(CallSender);

#[async_trait]
impl ExecutionInput for CommandInput {
    async fn write(&mut self, bytes: Bytes) -> Result<()> {
        if self.0.send(&bytes).await { Ok(()) } else { Err(self.0.not_read()) }
    }
}

impl Drop for CommandInput {
    fn drop(&mut self) {
        self.0.send_end();
    }
}

/// The command's control.
struct CommandControl {
    sender: CallSender,
    connection: Connection,
}

#[async_trait]
impl ExecutionControl for CommandControl {
    async fn kill(&self) -> Result<()> {
        self.sender.control(Control::Kill).await?;
        // Returns once the guest has read the request, or the call has ended.
        if self.sender.is_open() { self.connection.ping().await } else { Ok(()) }
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        self.sender.control(Control::Signal(signal.0)).await
    }

    async fn resize(&self, size: PtySize) -> Result<()> {
        self.sender.control(Control::Resize(terminal(size))).await
    }
}
