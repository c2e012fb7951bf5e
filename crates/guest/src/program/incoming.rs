//! The frames that clients send: for the connection, for new calls, and for open calls.

use super::connection::{self, Call};
use super::failure::{cancelled, failure};
use super::guest::Guest;
use super::poll::Readiness;
use super::wire;
use crate::protocol::{CHANNEL_MAIN, CHANNEL_STDOUT, Control, Failure, Frame, Kind, Reply, Request};

impl Guest {
    /// A connection has sent something, takes something, or is gone.
    pub(super) fn on_connection(&mut self, id: u32, ready: Readiness) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        if ready.writable && connection.outbox.on_writable() {
            self.resume(id);
        }
        if ready.readable {
            self.read_connection(id);
        } else if ready.hung_up {
            self.lose_connection(id);
        }
    }

    fn read_connection(&mut self, id: u32) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        match connection.outbox.receive(&mut self.buffer) {
            Ok(0) => return self.lose_connection(id),
            Ok(count) => connection.decoder.push(&self.buffer[..count]),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => return,
            Err(_) => return self.lose_connection(id),
        }
        self.serve_what_was_read(id);
    }

    /// Serves the frames that have arrived whole.
    pub(super) fn serve_what_was_read(&mut self, id: u32) {
        if let Err(refusal) = self.serve_frames(id) {
            self.refuse(id, &refusal);
        }
    }

    fn serve_frames(&mut self, id: u32) -> Result<(), Failure> {
        while let (Some(connection), None, false) =
            (self.connections.get_mut(&id), &self.ending, self.held_for.is_some_and(|holder| holder != id))
        {
            let next = connection.decoder.next_frame();
            let Some(frame) = next.map_err(|error| failure("invalid", error.to_string()))? else {
                break;
            };
            if connection.has_greeted() {
                self.on_frame(id, frame)?;
            } else {
                connection.greet(&frame, &self.config, self.protections.as_ref())?;
            }
        }
        Ok(())
    }

    /// The connection has broken the protocol: it hears why, if it listens, and is closed.
    fn refuse(&mut self, id: u32, refusal: &Failure) {
        if let Some(connection) = self.connections.get(&id) {
            connection.outbox.append(|out| wire::push_message(out, Kind::Failure, 0, refusal));
            connection.outbox.flush();
        }
        self.lose_connection(id);
    }

    fn on_frame(&mut self, id: u32, frame: Frame) -> Result<(), Failure> {
        let Some(connection) = self.connections.get_mut(&id) else {
            return Ok(());
        };
        let (kind, call) = (frame.header.kind, frame.header.call);
        if kind == Kind::Request {
            if let Some(request) = connection.assemble(frame)? {
                let is_use = !matches!(
                    request,
                    Request::Ping
                        | Request::Usage
                        | Request::LiveProcesses
                        | Request::Wait(_, Some(true))
                        | Request::KeptEnd(_)
                        | Request::KeptCommands
                );
                connection.has_used |= is_use;
                // A client that only reads the sandbox's state must not keep it from being idle.
                if is_use {
                    self.activity.note();
                }
                let handle = connection.handle(call);
                self.begin(handle, request);
            }
            return Ok(());
        }
        let Some(open) = connection.open_call(call)? else {
            return Ok(());
        };
        if !matches!(&open, Call::File(file) if file.is_silent()) {
            self.activity.note();
        }
        match kind {
            Kind::Data => self.on_data(id, call, &open, frame),
            Kind::End => {
                self.on_end((id, call), &open, frame.header.channel);
                Ok(())
            }
            Kind::Credit => self.on_credit(id, call, &open, &frame),
            Kind::Control => self.on_control(&open, connection::read(&frame.payload)?),
            Kind::Cancel => {
                self.on_cancel(id, call, &open);
                Ok(())
            }
            _ => Err(failure("invalid", format!("a client does not send frames of kind {kind:?}"))),
        }
    }

    fn on_data(&mut self, id: u32, call: u32, open: &Call, frame: Frame) -> Result<(), Failure> {
        let accepted = match open {
            _ if frame.header.channel != CHANNEL_MAIN => false,
            Call::File(file) => file.feed(frame.payload),
            Call::Command(command) | Call::Feeding(command) => {
                let command = self.commands.get_mut(command);
                command.is_none_or(|command| command.accept_input(&frame.payload))
            }
            Call::Dial(dial) => self.feed_dial(*dial, &frame.payload),
            Call::Starting(_) | Call::Wait { .. } | Call::Killing(_) | Call::Logs(_) => true,
            Call::Attached(_) | Call::AwaitingKept(_) => true,
            Call::Holding => false,
        };
        let channel = frame.header.channel;
        let refusal = || {
            failure(
                "invalid",
                format!("call {call} of connection {id}: data on channel {channel} beyond what was granted"),
            )
        };
        accepted.then_some(()).ok_or_else(refusal)
    }

    fn on_end(&mut self, (id, call): (u32, u32), open: &Call, channel: u8) {
        match open {
            _ if channel != CHANNEL_MAIN => {}
            Call::Holding => self.end_hold(id, call, &Ok(Reply::Done)),
            Call::File(file) => file.end(),
            Call::Command(command) => {
                if let Some(command) = self.commands.get_mut(command) {
                    command.end_input();
                }
            }
            Call::Dial(dial) => self.end_dial(*dial),
            Call::Feeding(command) => self.end_kept_input(*command),
            Call::Starting(_) | Call::Wait { .. } | Call::Killing(_) | Call::Logs(_) => {}
            Call::Attached(_) | Call::AwaitingKept(_) => {}
        }
    }

    fn on_credit(&mut self, id: u32, call: u32, open: &Call, frame: &Frame) -> Result<(), Failure> {
        let bytes = frame.payload.as_slice().try_into().map(u32::from_le_bytes);
        let bytes = bytes.map_err(|_| failure("invalid", "credit that is not four bytes"))?;
        let channel = frame.header.channel;
        match open {
            Call::File(file) if channel == CHANNEL_MAIN => file.grant(bytes),
            Call::Command(command) => self.grant_output(*command, channel, bytes),
            Call::Dial(dial) if channel == CHANNEL_MAIN => self.grant_dial(*dial, bytes),
            Call::Logs(process) => {
                let finished =
                    self.processes.get(*process).map(|process| process.grant(id, call, channel, bytes));
                self.finish_all(finished.unwrap_or_default());
            }
            Call::Attached(kept) => self.grant_kept(*kept, (id, call), channel, bytes),
            _ => {}
        }
        Ok(())
    }

    fn on_control(&mut self, open: &Call, control: Control) -> Result<(), Failure> {
        let Call::Command(id) = open else { return Ok(()) };
        if control == Control::Kill {
            self.kill_tree(*id);
        } else if let Some(command) = self.commands.get_mut(id) {
            command.control(control);
        }
        Ok(())
    }

    fn on_cancel(&mut self, id: u32, call: u32, open: &Call) {
        match open {
            // These still answer for themselves: when the tree is dead, when the worker has
            // noticed, when it runs.
            Call::Command(command) => self.cancel_command(*command),
            Call::File(file) => file.stop(),
            Call::Starting(_) => {}
            Call::Holding => self.end_hold(id, call, &Err(cancelled())),
            Call::Wait { .. }
            | Call::Killing(_)
            | Call::Logs(_)
            | Call::Dial(_)
            | Call::Attached(_)
            | Call::AwaitingKept(_)
            | Call::Feeding(_) => {
                self.abandon(id, call, open);
                if let Some(connection) = self.connections.get(&id) {
                    let handle = connection.handle(call);
                    self.finish(&handle, &Err(cancelled()));
                }
            }
        }
    }

    /// Abandons a call without an answer.
    pub(super) fn abandon(&mut self, id: u32, call: u32, open: &Call) {
        match open {
            Call::Command(command) => self.abandon_command(*command),
            Call::Starting(command) => self.abandon_start(*command),
            Call::File(file) => file.stop(),
            Call::Wait { process, .. } | Call::Logs(process) => self.processes.drop_call(*process, id, call),
            Call::Attached(kept) | Call::AwaitingKept(kept) => self.leave_kept(*kept, id, call),
            Call::Feeding(command) => self.leave_input(*command, id, call),
            Call::Killing(command) => self.drop_killer(*command, id, call),
            Call::Dial(dial) => drop(self.dials.remove(dial)),
            Call::Holding => self.let_go(),
        }
    }

    /// A connection takes more again: whatever waited for that goes on.
    fn resume(&mut self, id: u32) {
        let Some(connection) = self.connections.get(&id) else {
            return;
        };
        for call in connection.calls.values().cloned().collect::<Vec<_>>() {
            match call {
                Call::Command(command) => self.resume_command(command),
                Call::Dial(dial) => self.grant_dial(dial, 0),
                Call::Logs(process) => {
                    let finished = self.processes.get(process).map(|process| process.pump_readers());
                    self.finish_all(finished.unwrap_or_default());
                }
                Call::Attached(kept) => self.grant_kept(kept, (id, 0), CHANNEL_STDOUT, 0),
                Call::Starting(_) | Call::Wait { .. } | Call::Killing(_) | Call::File(_) => {}
                Call::AwaitingKept(_) | Call::Feeding(_) | Call::Holding => {}
            }
        }
    }
}
