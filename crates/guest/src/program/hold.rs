//! The hold: calls wait while somebody changes the sandbox's files from outside. The clients' frames stay in their sockets, and are
//! read once the hold ends, with its call or with the connection that asked for it.

use super::call_handle::GuestCall;
use super::connection::Call;
use super::failure::failure;
use super::guest::Guest;
use super::proc_table;
use crate::protocol::{Event, Failure, Reply};

impl Guest {
    /// Holds every other call back, if nothing is at work.
    pub(super) fn begin_hold(&mut self, handle: GuestCall) {
        if let Err(busy) = self.check_idle() {
            return handle.answer(&Err(busy));
        }
        handle.event(&Event::Opened(None));
        self.open_call(&handle, Call::Holding);
        self.held_for = Some(handle.connection);
        self.rest_connections(true);
    }

    /// Answers the call of a hold, and goes on with what was held back.
    pub(super) fn end_hold(&mut self, connection: u32, call: u32, result: &Result<Reply, Failure>) {
        if let Some(connection) = self.connections.get(&connection) {
            let handle = connection.handle(call);
            self.finish(&handle, result);
        }
        self.let_go();
    }

    /// Goes on with what was held back. The holder, if it is still there, is being served just now.
    pub(super) fn let_go(&mut self) {
        let Some(holder) = self.held_for else { return };
        self.rest_connections(false);
        self.held_for = None;
        // What arrived together with other frames was read already.
        for id in self.connections.keys().copied().filter(|id| *id != holder).collect::<Vec<_>>() {
            self.serve_what_was_read(id);
        }
    }

    fn rest_connections(&self, rest: bool) {
        let others = self.connections.values().filter(|connection| Some(connection.id) != self.held_for);
        others.for_each(|connection| connection.outbox.rest(rest));
    }

    fn check_idle(&self) -> Result<(), Failure> {
        let busy = |what: &str| Err(failure("conflict", format!("{what} in the sandbox")));
        let mut calls = self.connections.values().flat_map(|connection| connection.calls.values());
        if calls.any(Call::may_use_files) {
            return busy("a call is being served");
        }
        if !self.commands.is_empty() {
            return busy("a command runs");
        }
        let own = std::process::id() as i32;
        // All processes that the first one sees are below it, and listing them takes less than looking for each one's children.
        let all = if self.is_init { proc_table::all() } else { proc_table::descendants(own) };
        let is_other = |pid: &i32| *pid != own && !self.reapers.contains_key(pid);
        // A list that can't be read is empty.
        let is_known = !self.is_init || all.contains(&own);
        if !is_known || all.iter().any(is_other) { busy("a process runs") } else { Ok(()) }
    }
}
