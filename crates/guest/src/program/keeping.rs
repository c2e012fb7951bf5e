//! Kept commands: begun, read, fed, steered, ended and forgotten by calls that come and go.

use std::time::Instant;

use super::call_handle::GuestCall;
use super::command::{Command, CommandProgress, OutputSink};
use super::connection::Call;
use super::failure::failure;
use super::guest::Guest;
use super::kept_commands::DueStep;
use super::output_stream::ReadOutcome;
use super::processes::Finished;
use super::spawn::text_of;
use crate::kept_output::PIECE_BYTES;
use crate::protocol::{Control, Exec, Failure, KeepTerms, Reply, Status, StopCause};

impl Guest {
    /// Runs a command that outlives its call.
    pub(super) fn begin_keep(&mut self, handle: GuestCall, exec: Exec, terms: KeepTerms) {
        let id = self.next_id();
        let (text, is_terminal) = (text_of(&exec.command), exec.terminal.is_some());
        let kept = match self.kept.add(id, text, is_terminal, terms, handle.clone()) {
            Ok(kept) => kept,
            Err(failure) => return handle.answer(&Err(failure)),
        };
        match self.start_command(id, exec, OutputSink::Kept(kept)) {
            Ok(()) => self.open_call(&handle, Call::Attached(kept)),
            Err(failure) => {
                self.kept.remove(kept);
                handle.answer(&Err(failure));
            }
        }
    }

    /// Attaches a call to a kept command.
    pub(super) fn begin_attach(&mut self, handle: GuestCall, id: &str, from: Option<u64>) {
        let attached = self.kept.find(id).and_then(|kept| {
            let Some(command) = self.kept.get(kept) else { return Ok((kept, Vec::new())) };
            command.attach(handle.clone(), from).map(|finished| (kept, finished))
        });
        match attached {
            Err(failure) => handle.answer(&Err(failure)),
            Ok((kept, finished)) => {
                self.open_call(&handle, Call::Attached(kept));
                self.finish_all(finished);
                self.resume_kept(kept);
            }
        }
    }

    /// Takes a kept command's input from a call from now on.
    pub(super) fn begin_kept_input(&mut self, handle: GuestCall, id: &str) {
        let number = self.kept_command(id);
        let begun = number.and_then(|number| {
            let command = self.commands.get_mut(&number);
            let over = || failure("conflict", "the command has ended");
            let feeder = command.ok_or_else(over)?.take_feeder(handle.clone())?;
            Ok((number, feeder))
        });
        match begun {
            Err(failure) => handle.answer(&Err(failure)),
            Ok((number, feeder)) => {
                self.open_call(&handle, Call::Feeding(number));
                self.finish_all(feeder.map(|feeder| (feeder, Ok(Reply::Done))).into_iter().collect());
            }
        }
    }

    /// The command behind a kept command.
    fn kept_command(&mut self, id: &str) -> Result<u32, Failure> {
        let kept = self.kept.find(id)?;
        Ok(self.kept.get(kept).map(|kept| kept.command).unwrap_or_default())
    }

    /// Changes a running kept command.
    pub(super) fn control_kept(&mut self, id: &str, control: Control) -> Result<Reply, Failure> {
        let kept = self.kept.find(id)?;
        if control == Control::Kill {
            self.stop_kept(kept, StopCause::Client);
            return Ok(Reply::Done);
        }
        let command = self.kept_command(id)?;
        if let Some(command) = self.commands.get_mut(&command) {
            command.control(control);
        }
        Ok(Reply::Done)
    }

    /// Kills a kept command and forgets it.
    pub(super) fn forget_by_id(&mut self, id: &str) -> Result<Reply, Failure> {
        let kept = self.kept.find(id)?;
        self.forget_kept(kept);
        Ok(Reply::Done)
    }

    /// A call waits for the end of a kept command.
    pub(super) fn begin_kept_wait(&mut self, handle: GuestCall, id: &str) {
        let kept = match self.kept.find(id) {
            Ok(kept) => kept,
            Err(failure) => return handle.answer(&Err(failure)),
        };
        match self.kept.get(kept).and_then(|kept| kept.wait(handle.clone())) {
            Some((handle, reply)) => handle.answer(&reply),
            None => self.open_call(&handle, Call::AwaitingKept(kept)),
        }
    }

    /// Takes the steps that are due for kept commands.
    pub(super) fn step_kept(&mut self) {
        for step in self.kept.due(Instant::now()) {
            match step {
                DueStep::Stop(kept) => self.stop_kept(kept, StopCause::Deadline),
                DueStep::Forget(kept) => self.forget_kept(kept),
            }
        }
    }

    /// Kills a kept command's tree. Its end is told when the tree is dead, whether or not its output
    /// is read.
    fn stop_kept(&mut self, kept: u32, cause: StopCause) {
        let Some(kept) = self.kept.get(kept).filter(|kept| !kept.has_ended()) else { return };
        kept.stop.get_or_insert(cause);
        let id = kept.command;
        if let Some(command) = self.commands.get_mut(&id) {
            command.is_stopping = true;
        }
        self.kill_tree(id);
        self.resume_command(id);
        self.settle(id);
    }

    /// Forgets a kept command, which dies unless it has ended.
    fn forget_kept(&mut self, kept: u32) {
        if let Some(kept) = self.kept.remove(kept) {
            let command = kept.command;
            self.finish_all(kept.into_finished());
            self.abandon_kept(command);
            self.activity.note();
        }
    }

    /// Kills a command that was forgotten before its end.
    fn abandon_kept(&mut self, id: u32) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        if let OutputSink::Kept(_) = command.sink {
            let feeder = command.feeder.take();
            self.finish_all(feeder.map(|feeder| (feeder, Ok(Reply::Done))).into_iter().collect());
            self.abandon_command(id);
        }
    }

    /// A call that is attached to a kept command takes more.
    pub(super) fn grant_kept(&mut self, kept: u32, (id, call): (u32, u32), channel: u8, bytes: u32) {
        let finished = self.kept.get(kept).map(|kept| kept.grant(id, call, channel, bytes));
        self.finish_all(finished.unwrap_or_default());
        self.resume_kept(kept);
    }

    /// A kept command may have room for its output again.
    pub(super) fn resume_kept(&mut self, kept: u32) {
        let Some(kept) = self.kept.get(kept).filter(|kept| kept.has_room()) else { return };
        let command = kept.command;
        let waits = |command: &mut Command| std::mem::replace(&mut command.waits_for_room, false);
        if self.commands.get_mut(&command).is_some_and(waits) {
            self.resume_command(command);
        }
    }

    /// A call is gone that was attached to a kept command, or waited for its end.
    pub(super) fn leave_kept(&mut self, kept: u32, id: u32, call: u32) {
        let Some(command) = self.kept.get(kept) else { return };
        let is_unheard_of = command.is_started_by(id, call);
        command.drop_call(id, call);
        if is_unheard_of { self.forget_kept(kept) } else { self.resume_kept(kept) }
    }

    /// A call is gone that fed a kept command. What is fed in part is no input.
    pub(super) fn leave_input(&mut self, id: u32, connection: u32, call: u32) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        if !command.feeder.as_ref().is_some_and(|feeder| feeder.is(connection, call)) {
            return;
        }
        command.feeder = None;
        if let (OutputSink::Kept(kept), None) = (&command.sink, &command.terminal) {
            let kept = *kept;
            self.stop_kept(kept, StopCause::Client);
        }
    }

    /// The input of a kept command is whole.
    pub(super) fn end_kept_input(&mut self, id: u32) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        command.end_input();
        if let Some(feeder) = command.feeder.take() {
            self.finish(&feeder, &Ok(Reply::Done));
        }
    }

    /// Keeps what a command wrote. Returns whether there was anything.
    pub(super) fn keep_output(&mut self, id: u32, index: usize, kept: u32) -> bool {
        let (Some(command), Some(kept)) = (self.commands.get_mut(&id), self.kept.get(kept)) else {
            return false;
        };
        let Some(stream) = &mut command.streams[index] else { return false };
        if !kept.has_room() {
            stream.watch(false);
            command.waits_for_room = true;
            return false;
        }
        match stream.take(&mut self.buffer[..PIECE_BYTES]) {
            ReadOutcome::Bytes(count) => {
                kept.append(stream.channel, &self.buffer[..count]);
                return true;
            }
            ReadOutcome::Nothing => {}
            ReadOutcome::End => command.streams[index] = None,
        }
        false
    }

    /// A kept command runs.
    pub(super) fn on_kept_started(&mut self, kept: u32) {
        let finished = self.kept.get(kept).map(|kept| kept.set_started());
        self.finish_all(finished.unwrap_or_default());
    }

    /// A kept command could not be run.
    pub(super) fn on_kept_refused(&mut self, kept: u32, refusal: Failure) {
        if let Some(starter) = self.kept.remove(kept).and_then(|mut kept| kept.take_starter()) {
            self.finish(&starter, &Err(refusal));
        }
    }

    /// A kept command ended, and its output was taken.
    pub(super) fn settle_kept(&mut self, id: u32, kept: u32, status: Status) {
        let Some(command) = self.commands.get_mut(&id) else { return };
        // A reaper that was killed may have had no time to say that the command ran.
        if command.pid().is_none() {
            let refusal = failure("unavailable", "the command was killed before it ran");
            drop(command.settle(&Err(refusal.clone())));
            self.on_kept_refused(kept, refusal);
            return self.forget_if_gone(id);
        }
        self.on_started(id);
        self.activity.note();
        let finished = self.end_kept(id, kept, status);
        self.finish_all(finished);
        self.forget_if_gone(id);
    }

    fn end_kept(&mut self, id: u32, kept: u32, status: Status) -> Vec<Finished> {
        let (Some(command), Some(kept)) = (self.commands.get_mut(&id), self.kept.get(kept)) else {
            return Vec::new();
        };
        for stream in command.streams.iter_mut().flatten() {
            kept.append(stream.channel, &std::mem::take(&mut stream.held));
        }
        let mut finished = kept.set_end(status, command.output_open);
        command.progress = CommandProgress::Settled;
        (command.sink, command.input) = (OutputSink::Discard, None);
        finished.extend(command.feeder.take().map(|feeder| (feeder, Ok(Reply::Done))));
        command.watch_outputs();
        finished
    }
}
