//! A call on the side of its caller. It sends frames, takes those that arrive, and cancels the call
//! when it is dropped.

use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use eyot::{Error, ErrorKind, Result};

use super::connection_state::ConnectionOwner;
use super::lock;
use super::pieces::DataPiece;
use super::slot::{AbandonAction, Slot};
use crate::protocol::{
    CHANNEL_MAIN, Control, Event, HEADER_BYTES, Header, Kind, MAX_PAYLOAD_BYTES, Reply, encode,
};

/// A call that is under way or has ended. Dropping it cancels it unless it has ended.
pub(super) struct Call {
    sender: CallSender,
}

/// The way to send something for a call, for those who don't own it.
#[derive(Clone)]
pub(super) struct CallSender {
    connection: Arc<ConnectionOwner>,
    number: u32,
    slot: Arc<Slot>,
}

impl Call {
    /// A call that was entered into its connection's table.
    pub(super) fn new(connection: Arc<ConnectionOwner>, number: u32, slot: Arc<Slot>) -> Self {
        Self { sender: CallSender { connection, number, slot } }
    }

    /// The way to send something for it.
    pub(super) fn sender(&self) -> &CallSender {
        &self.sender
    }

    /// Sends what begins it.
    pub(super) async fn send_request(&self, message: &[u8]) -> Result<()> {
        let frames = self.sender.message(Kind::Request, message);
        poll_fn(|context| self.sender.poll_push(context, &[&frames], || self.sender.slot.mark_sent())).await
    }

    /// Waits for its event; `None` when it does without.
    pub(super) async fn event(&self) -> Result<Option<Event>> {
        poll_fn(|context| self.sender.slot.poll_event(context)).await
    }

    /// Takes the descriptor that came with its event.
    pub(super) fn take_descriptor(&self) -> Option<OwnedFd> {
        self.sender.slot.take_descriptor()
    }

    /// Waits for its end.
    pub(super) async fn reply(&self) -> Result<Reply> {
        poll_fn(|context| self.sender.slot.poll_end(context)).await
    }

    /// Returns the call's end, after [`Self::poll_piece`] gave `None`.
    pub(super) fn poll_reply(&self, context: &Context<'_>) -> Poll<Result<Reply>> {
        self.sender.slot.poll_end(context)
    }

    /// Returns when it has ended; the end can still be had.
    pub(super) async fn wait_ended(&self) {
        poll_fn(|context| self.sender.slot.poll_ended(context)).await;
    }

    /// The next piece that arrived; `None` when no more come. Grants the guest credit for what was
    /// taken.
    pub(super) fn poll_piece(&self, context: &Context<'_>) -> Poll<Option<DataPiece>> {
        let Some((piece, granted)) = ready!(self.sender.slot.poll_piece(context)) else {
            return Poll::Ready(None);
        };
        if granted > 0 {
            self.sender.push_now(Kind::Credit, piece.channel, &granted.to_le_bytes());
        }
        Poll::Ready(Some(piece))
    }

    /// Tells the guest that the caller is gone, and goes on waiting for the end.
    pub(super) fn cancel(&self) {
        self.sender.push_now(Kind::Cancel, 0, &[]);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        match self.sender.slot.abandon() {
            AbandonAction::Cancel => self.sender.push_now(Kind::Cancel, 0, &[]),
            AbandonAction::Forget => lock(&self.sender.connection.state.table).forget(self.sender.number),
            AbandonAction::Nothing => {}
        }
    }
}

impl CallSender {
    fn header(&self, kind: Kind, channel: u8, length: usize) -> [u8; HEADER_BYTES] {
        Header { kind, channel, more: false, call: self.number }.to_bytes(length)
    }

    /// A message as one or several frames.
    fn message(&self, kind: Kind, message: &[u8]) -> Vec<u8> {
        let mut frames = Vec::with_capacity(message.len() + HEADER_BYTES);
        let mut rest = message;
        loop {
            let (part, left) = rest.split_at(rest.len().min(MAX_PAYLOAD_BYTES));
            let header = Header { kind, channel: 0, more: !left.is_empty(), call: self.number };
            frames.extend_from_slice(&header.to_bytes(part.len()));
            frames.extend_from_slice(part);
            rest = left;
            if rest.is_empty() {
                return frames;
            }
        }
    }

    fn poll_push(&self, context: &Context<'_>, parts: &[&[u8]], pushed: impl FnOnce()) -> Poll<Result<()>> {
        match ready!(self.connection.state.send_queue.poll_push(context, parts)) {
            Ok(()) => {
                pushed();
                Poll::Ready(Ok(()))
            }
            Err(_) => Poll::Ready(Err(self.connection.state.error())),
        }
    }

    fn push_now(&self, kind: Kind, channel: u8, payload: &[u8]) {
        let state = &self.connection.state;
        if let Err(why) = state.send_queue.push_now(&[&self.header(kind, channel, payload.len()), payload]) {
            state.end_undeliverable(why);
        }
    }

    /// Sends the beginning of `bytes` on the main channel, as much as credit and a frame allow.
    /// Returns how much that was, or `None` when no reader is left. One sender at a time.
    pub(super) fn poll_send(&self, context: &Context<'_>, bytes: &[u8]) -> Poll<Option<usize>> {
        let Some(credit) = ready!(self.slot.poll_credit(context)) else {
            return Poll::Ready(None);
        };
        let part = &bytes[..bytes.len().min(credit).min(MAX_PAYLOAD_BYTES)];
        let header = self.header(Kind::Data, CHANNEL_MAIN, part.len());
        let sent = ready!(self.poll_push(context, &[&header, part], || self.slot.use_credit(part.len())));
        Poll::Ready(sent.ok().map(|()| part.len()))
    }

    /// Sends all of `bytes` on the main channel. Returns `false` when no reader is left.
    pub(super) async fn send(&self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            match poll_fn(|context| self.poll_send(context, bytes)).await {
                Some(sent) => bytes = &bytes[sent..],
                None => return false,
            }
        }
        true
    }

    /// Says that nothing more comes on the main channel.
    pub(super) fn send_end(&self) {
        if self.slot.is_open() {
            self.push_now(Kind::End, CHANNEL_MAIN, &[]);
        }
    }

    /// Does something to the call. To one that has ended, nothing, and that is fine.
    pub(super) async fn control(&self, control: Control) -> Result<()> {
        let frame = self.message(Kind::Control, &encode(&control));
        let send = |context: &mut Context<'_>| {
            if self.slot.is_open() { self.poll_push(context, &[&frame], || {}) } else { Poll::Ready(Ok(())) }
        };
        match poll_fn(send).await {
            // The call ended while this waited or was sent. The caller learns that from the call's
            // end.
            Err(_) if !self.slot.is_open() => Ok(()),
            outcome => outcome,
        }
    }

    /// Tells whether the call has not ended yet.
    pub(super) fn is_open(&self) -> bool {
        self.slot.is_open()
    }

    /// Returns the error of writing to a call that reads no more.
    pub(super) fn not_read(&self) -> Error {
        if self.connection.state.is_closed() {
            self.connection.state.error()
        } else {
            Error::new(ErrorKind::Conflict, "the command does not read its input any more")
        }
    }
}
