//! The terms of started processes: their input, and their deadlines.

use std::time::Instant;

use super::command::Command;
use super::failure::failure;
use super::guest::Guest;
use crate::protocol::{Failure, ProcessTerms, Reply};

impl Guest {
    /// Gives a command the input that its start brought.
    pub(super) fn give_first_input(&mut self, id: u32, terms: &ProcessTerms) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        // More than a window was refused before the command was started.
        command.accept_input(&terms.input);
        if command.exec.stdin && !terms.input_follows {
            command.end_input();
        }
    }

    /// Gives a started process more input, or its end.
    ///
    /// # Errors
    /// `not_found`; `conflict` when it takes no more, or has not read what it got.
    pub(super) fn give_input(&mut self, process: u32, bytes: &[u8], ends: bool) -> Result<Reply, Failure> {
        let command = self.processes.get(process)?.command;
        let takes_more = |command: &&mut Command| {
            command.input.as_ref().is_some_and(|input| input.takes_more() && !input.is_broken())
        };
        let Some(command) = self.commands.get_mut(&command).filter(takes_more) else {
            return Err(failure("conflict", "the process takes no more input"));
        };
        if !command.accept_input(bytes) {
            return Err(failure("conflict", "the process has not read the input that it got"));
        }
        if ends {
            command.end_input();
        }
        Ok(Reply::Done)
    }

    /// Kills the processes that have not ended in time.
    pub(super) fn end_overdue_processes(&mut self) {
        let now = Instant::now();
        while let Some(command) = self.processes.take_overdue(now) {
            self.kill_tree(command);
            self.settle(command);
        }
    }
}
