//! Bytes between clients and what runs: commands' streams, dialled ports, signals to started
//! processes.

use std::time::Instant;

use super::call_handle::GuestCall;
use super::command::{CommandProgress, OutputSink};
use super::connection::Call;
use super::dial;
use super::failure::failure;
use super::guest::Guest;
use super::output_stream::ReadOutcome;
use crate::protocol::{Failure, Reply};

impl Guest {
    /// A command wrote something, or closed a stream.
    pub(super) fn on_output(&mut self, id: u32, index: usize) {
        let heard = self.take_output(id, index);
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        if let (true, Some(words)) = (heard, &mut command.last_words) {
            words.note_output(Instant::now());
        }
        // One that has ended may have nothing more to say.
        if matches!(command.progress, CommandProgress::Ended(_)) {
            self.settle(id);
        }
    }

    /// Reads a stream once and passes the bytes on. Returns whether a reader gets any of them.
    pub(super) fn take_output(&mut self, id: u32, index: usize) -> bool {
        let Some(command) = self.commands.get_mut(&id) else {
            return false;
        };
        match command.sink {
            OutputSink::Call(_) if !command.muted => {
                let heard = command.forward(index, &mut self.buffer);
                if heard {
                    self.activity.note();
                }
                heard
            }
            OutputSink::Call(_) | OutputSink::Discard => {
                command.discard(index, &mut self.buffer);
                false
            }
            OutputSink::Log(process, _) => self.log_output(id, index, process),
            OutputSink::Kept(kept) => self.keep_output(id, index, kept),
        }
    }

    fn log_output(&mut self, id: u32, index: usize, process: u32) -> bool {
        let Some(command) = self.commands.get_mut(&id) else {
            return false;
        };
        let Some(stream) = &command.streams[index] else {
            return false;
        };
        match stream.take(&mut self.buffer) {
            ReadOutcome::Bytes(count) => {
                self.processes.append(process, stream.channel, &self.buffer[..count]);
                return true;
            }
            ReadOutcome::Nothing => {}
            ReadOutcome::End => command.streams[index] = None,
        }
        false
    }

    /// A command reads its input again.
    pub(super) fn on_input(&mut self, id: u32) {
        if let Some(command) = self.commands.get_mut(&id) {
            command.write_input();
        }
    }

    /// A client takes more of a command's output.
    pub(super) fn grant_output(&mut self, id: u32, channel: u8, bytes: u32) {
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        for stream in command.streams.iter_mut().flatten().filter(|stream| stream.channel == channel) {
            stream.credit = stream.credit.saturating_add(u64::from(bytes));
        }
        self.resume_command(id);
    }

    /// A command's output can go on.
    pub(super) fn resume_command(&mut self, id: u32) {
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        match command.progress {
            CommandProgress::Draining(_) => self.settle(id),
            CommandProgress::Ended(_) => {
                command.watch_outputs();
                self.settle(id);
            }
            CommandProgress::Running | CommandProgress::Settled => command.watch_outputs(),
        }
    }

    /// Signals a started process's group.
    pub(super) fn signal_process(&mut self, id: u32, signal: i32) -> Result<Reply, Failure> {
        let command = self.processes.get(id)?.command;
        if !(1..=64).contains(&signal) {
            return Err(failure("invalid", format!("there is no signal {signal}")));
        }
        if let Some(command) = self.commands.get_mut(&command) {
            command.signal(signal);
        }
        Ok(Reply::Done)
    }

    /// Kills a started process's tree, and answers when nothing of it is left.
    pub(super) fn kill_process(&mut self, handle: GuestCall, id: u32) {
        let command = match self.processes.get(id) {
            Ok(process) => process.command,
            Err(failure) => return handle.answer(&Err(failure)),
        };
        self.kill_tree(command);
        match self.commands.get_mut(&command).filter(|command| command.awaits_death()) {
            Some(dying) => {
                dying.killers.push(handle.clone());
                self.open_call(&handle, Call::Killing(command));
            }
            None => handle.answer(&Ok(Reply::Done)),
        }
    }

    /// Forgets a call that waited for this tree to be dead.
    pub(super) fn drop_killer(&mut self, id: u32, connection: u32, call: u32) {
        if let Some(command) = self.commands.get_mut(&id) {
            command.killers.retain(|killer| !killer.is(connection, call));
        }
    }

    pub(super) fn on_dial_readable(&mut self, id: u32) {
        let Some(dial) = self.dials.get_mut(&id) else {
            return;
        };
        self.activity.note();
        let ending = dial.on_readable(&mut self.buffer);
        self.end_dial_with(id, ending);
    }

    pub(super) fn on_dial_writable(&mut self, id: u32) {
        let ending = self.dials.get_mut(&id).and_then(dial::Dial::on_writable);
        self.end_dial_with(id, ending);
    }

    /// `false`: more than was granted.
    pub(super) fn feed_dial(&mut self, id: u32, bytes: &[u8]) -> bool {
        let Some(dial) = self.dials.get_mut(&id) else {
            return true;
        };
        let Some(ending) = dial.accept(bytes) else {
            return false;
        };
        self.end_dial_with(id, ending);
        true
    }

    pub(super) fn end_dial(&mut self, id: u32) {
        let ending = self.dials.get_mut(&id).and_then(dial::Dial::end);
        self.end_dial_with(id, ending);
    }

    pub(super) fn grant_dial(&mut self, id: u32, bytes: u32) {
        if let Some(dial) = self.dials.get_mut(&id) {
            dial.grant(bytes);
        }
    }

    fn end_dial_with(&mut self, id: u32, ending: dial::DialEnd) {
        let Some(result) = ending else { return };
        if let Some(dial) = self.dials.remove(&id) {
            let handle = dial.handle().clone();
            self.finish(&handle, &result);
            self.wake_listener();
        }
    }
}
