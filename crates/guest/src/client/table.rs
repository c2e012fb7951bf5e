//! The calls of a connection by their numbers, each number used once.

use std::collections::HashMap;
use std::sync::Arc;

use super::fault::Violation;
use super::slot::Slot;

/// Why no call can be entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableFull {
    /// The connection has ended.
    Closed,
    /// Every number was used.
    Numbers,
}

/// The calls that the guest has not ended.
#[derive(Debug)]
pub(super) struct CallTable {
    /// 0 when every number was used.
    next: u32,
    calls: HashMap<u32, Arc<Slot>>,
    closed: bool,
}

impl CallTable {
    /// No calls yet.
    pub(super) fn new() -> Self {
        Self { next: 1, calls: HashMap::new(), closed: false }
    }

    /// Enters a call and gives it its number.
    pub(super) fn enter(&mut self, slot: &Arc<Slot>) -> Result<u32, TableFull> {
        let call = self.next;
        if self.closed {
            return Err(TableFull::Closed);
        }
        if call == 0 {
            return Err(TableFull::Numbers);
        }
        self.next = call.checked_add(1).unwrap_or(0);
        self.calls.insert(call, Arc::clone(slot));
        Ok(call)
    }

    /// The call that a frame of the guest names.
    pub(super) fn find_slot(&self, call: u32) -> Result<Arc<Slot>, Violation> {
        self.calls.get(&call).cloned().ok_or_else(|| self.unknown(call))
    }

    /// Takes out the call that the guest ends.
    pub(super) fn remove_ended(&mut self, call: u32) -> Result<Arc<Slot>, Violation> {
        self.calls.remove(&call).ok_or_else(|| self.unknown(call))
    }

    /// Takes out a call that was never sent.
    pub(super) fn forget(&mut self, call: u32) {
        self.calls.remove(&call);
    }

    /// Takes out all calls and lets no more in.
    pub(super) fn close(&mut self) -> HashMap<u32, Arc<Slot>> {
        self.closed = true;
        std::mem::take(&mut self.calls)
    }

    fn unknown(&self, call: u32) -> Violation {
        let was = call != 0 && (call < self.next || self.next == 0);
        Violation::new(if was {
            format!("a frame of call {call}, which has ended")
        } else {
            format!("a frame of call {call}, which never was")
        })
    }
}
