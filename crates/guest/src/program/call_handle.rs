//! The destination of a call's bytes and answer. Only the main thread uses it; its frames leave at
//! the end of the turn.

use std::sync::Arc;

use super::outbox::Outbox;
use super::wire;
use crate::protocol::{Event, Failure, Kind, Reply};

/// A call of a connection.
#[derive(Debug, Clone)]
pub struct GuestCall {
    /// The connection.
    pub connection: u32,
    /// The call's number on it.
    pub call: u32,
    outbox: Arc<Outbox>,
}

impl GuestCall {
    /// The call with that number of that connection.
    pub fn new(connection: u32, call: u32, outbox: Arc<Outbox>) -> Self {
        Self { connection, call, outbox }
    }

    /// Tells whether this is that call.
    pub fn is(&self, connection: u32, call: u32) -> bool {
        (self.connection, self.call) == (connection, call)
    }

    /// The connection's outbox.
    pub fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// Tells whether data must wait. The connection is resumed when it need not any more.
    pub fn is_full(&self) -> bool {
        self.outbox.is_full()
    }

    /// Sends bytes on a channel, at most one frame of them.
    pub fn data(&self, channel: u8, parts: &[&[u8]]) {
        self.outbox.append(|out| wire::push_data(out, self.call, channel, parts));
    }

    /// Ends a channel.
    pub fn end(&self, channel: u8) {
        self.outbox.append(|out| wire::push_end(out, self.call, channel));
    }

    /// Grants bytes on a channel.
    pub fn grant(&self, channel: u8, bytes: u32) {
        self.outbox.append(|out| wire::push_credit(out, self.call, channel, bytes));
    }

    /// Says that something happened.
    pub fn event(&self, event: &Event) {
        self.outbox.append(|out| wire::push_message(out, Kind::Event, self.call, event));
    }

    /// The good answer or the bad one.
    pub fn answer(&self, result: &Result<Reply, Failure>) {
        self.outbox.append(|out| match result {
            Ok(reply) => wire::push_message(out, Kind::Reply, self.call, reply),
            Err(failure) => wire::push_message(out, Kind::Failure, self.call, failure),
        });
    }
}
