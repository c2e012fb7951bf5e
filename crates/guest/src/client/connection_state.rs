//! The state of a connection, below its handle, its calls and its reader: the table of calls, the
//! bytes to send, and the reason for the end.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use eyot::{CancellationToken, Error, Result};
use tokio::io::AsyncWrite;

use super::fault::{Fault, Inquiry, Violation};
use super::handshake::GuestFacts;
use super::lanes::Lanes;
use super::local_stream::ReceivedDescriptors;
use super::lock;
use super::passed_files::PassedFiles;
use super::send_queue::{SendError, SendQueue};
use super::slot::Slot;
use super::table::CallTable;

/// Ends the connection when the last clone of its handle and the last call are dropped.
pub(super) struct ConnectionOwner {
    pub(super) state: Arc<ConnectionState>,
    pub(super) facts: GuestFacts,
}

impl Drop for ConnectionOwner {
    fn drop(&mut self) {
        self.state.end(Fault::stopped());
    }
}

/// The state that the tasks and the calls of a connection share.
pub(super) struct ConnectionState {
    pub(super) table: Mutex<CallTable>,
    pub(super) send_queue: SendQueue,
    pub(super) lanes: Lanes,
    pub(super) closed: CancellationToken,
    /// The descriptors that come with messages; `None` for a stream that can't carry any.
    pub(super) received: Option<Arc<ReceivedDescriptors>>,
    pub(super) passed_files: Arc<PassedFiles>,
    ending: Mutex<CloseReasons>,
}

#[derive(Default)]
struct CloseReasons {
    /// The reason that the owner gave.
    owner_reason: Option<Fault>,
    /// The meaning that the owner gave to a plain end of the stream.
    stopped: Option<Fault>,
    /// The reason seen on the stream.
    seen: Option<Fault>,
    /// Finds out why the stream has ended, if the owner gave no reason.
    inquiry: Option<Inquiry>,
    /// It is being found out.
    asking: bool,
    /// The guest said that it ends, and which of the calls without an answer it had begun.
    begun: Option<HashSet<u32>>,
}

impl CloseReasons {
    /// The reason that calls are told, if there is one yet.
    fn reason(&self) -> Option<&Fault> {
        let seen = match &self.seen {
            Some(seen) if seen.is_stop() => self.stopped.as_ref().or(self.seen.as_ref()),
            other => other.as_ref(),
        };
        self.owner_reason.as_ref().or(seen)
    }

    /// Tells whether the guest said that it never began this call.
    fn is_not_begun(&self, call: u32) -> bool {
        self.begun.as_ref().is_some_and(|begun| !begun.contains(&call))
    }
}

impl ConnectionState {
    /// Returns the state of a connection that begins.
    pub(super) fn new(
        stream: impl AsyncWrite + Send + Unpin + 'static,
        received: Option<Arc<ReceivedDescriptors>>,
    ) -> Self {
        Self {
            table: Mutex::new(CallTable::new()),
            send_queue: SendQueue::new(stream),
            lanes: Lanes::new(),
            closed: CancellationToken::new(),
            received,
            passed_files: PassedFiles::new(),
            ending: Mutex::new(CloseReasons::default()),
        }
    }

    /// Tells whether the connection has ended, or can't be written to any more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled() || self.send_queue.is_closed()
    }

    /// Sets the owner's reason for the end.
    pub(super) fn set_owner_reason(&self, fault: Fault) {
        lock(&self.ending).owner_reason = Some(fault);
    }

    /// Sets the owner's reason for the end, unless it has one.
    pub(super) fn set_default_owner_reason(&self, fault: impl FnOnce() -> Fault) {
        lock(&self.ending).owner_reason.get_or_insert_with(fault);
    }

    /// Sets the meaning of a plain end of the stream.
    pub(super) fn set_stopped(&self, fault: Fault) {
        lock(&self.ending).stopped = Some(fault);
    }

    /// Sets the function that finds out why the stream ended.
    pub(super) fn set_inquiry(&self, inquiry: Inquiry) {
        lock(&self.ending).inquiry = Some(inquiry);
    }

    /// Returns the reason why no call can succeed any more.
    pub(super) fn error(&self) -> Error {
        // Without a reason yet, writing has failed and the reader is about to see the end.
        let reason = lock(&self.ending).reason().cloned();
        reason.unwrap_or(Fault::Stopped).error()
    }

    /// The call that a frame of the guest names.
    pub(super) fn find_slot(&self, call: u32) -> Result<Arc<Slot>, Violation> {
        lock(&self.table).find_slot(call)
    }

    /// Tells whether a descriptor came whose message did not, when everything that came is read.
    pub(super) fn has_stray_descriptor(&self, is_drained: bool) -> bool {
        is_drained && self.received.as_ref().is_some_and(|received| received.any_waits())
    }

    /// Tells whether more descriptors came than messages can have.
    pub(super) fn has_excess_descriptors(&self) -> bool {
        self.received.as_ref().is_some_and(|received| received.is_excessive())
    }

    /// Notes which calls a guest that ends had begun. The connection ends with the stream.
    pub(super) fn note_begun(&self, calls: Vec<u32>) {
        self.passed_files.revoke();
        lock(&self.ending).begun = Some(calls.into_iter().collect());
    }

    /// Ends the connection and settles every call; the first reason counts.
    pub(super) fn end(&self, fault: Fault) {
        let fault = {
            let mut ending = lock(&self.ending);
            let seen = ending.seen.get_or_insert(fault).clone();
            ending.reason().cloned().unwrap_or(seen)
        };
        self.lanes.close();
        self.passed_files.revoke();
        if let Some(received) = &self.received {
            received.close();
        }
        let slots = lock(&self.table).close();
        for (call, slot) in slots {
            let error = fault.error();
            let is_not_begun = lock(&self.ending).is_not_begun(call);
            slot.fail(if is_not_begun { error.with_no_effect() } else { error });
        }
        self.send_queue.close();
        self.closed.cancel();
    }

    /// Tells whether the reader is finding out why the stream has ended.
    pub(super) fn is_asking(&self) -> bool {
        lock(&self.ending).asking
    }

    /// The same, once it is known what the end of the stream means.
    pub(super) async fn end_asking(&self, fault: Fault) {
        let inquiry = match &mut *lock(&self.ending) {
            CloseReasons { owner_reason: None, inquiry, asking, .. } if fault.is_stop() => {
                *asking = inquiry.is_some();
                inquiry.take()
            }
            _ => None,
        };
        if let Some(inquiry) = inquiry {
            let verdict = inquiry().await;
            lock(&self.ending).stopped = Some(Fault::Asked(verdict));
        }
        self.end(fault);
    }

    /// Ends the connection because of what can't be delivered.
    pub(super) fn end_undeliverable(&self, why: SendError) {
        match why {
            SendError::Closed => {}
            SendError::NotRead => self.end(Fault::broken("it does not read what it is sent")),
        }
    }
}
