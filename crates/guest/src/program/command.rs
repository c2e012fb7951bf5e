//! A command that was started: its processes, its streams, and to whom they go.

use super::call_handle::GuestCall;
use super::failure::failure;
use super::input_writer::InputWriter;
use super::last_words::LastWords;
use super::output_stream::{OutputStream, ReadOutcome};
use super::spawn::LaunchedCommand;
use super::sys;
use super::wire;
use crate::protocol::{
    CHANNEL_MAIN, Control, Event, Exec, Failure, Kind, MAX_PAYLOAD_BYTES, Reply, Status, Terminal,
};
use std::os::fd::{AsFd, OwnedFd};

/// To whom a command's output goes.
#[derive(Debug)]
pub enum OutputSink {
    /// A call, which ends with the command.
    Call(GuestCall),
    /// The log of a started process. Until it runs, a call waits for word of that.
    Log(u32, Option<GuestCall>),
    /// The output of a kept command, by its number.
    Kept(u32),
    /// Discarded. The rest of the command may go on writing all the same.
    Discard,
}

/// The progress of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandProgress {
    /// The command's own process runs, or is about to.
    Running,
    /// The command's own process ended, and its output is still read.
    Ended(Status),
    /// The rest of its output was taken and is on its way to the client.
    Draining(Status),
    /// It was answered for.
    Settled,
}

/// A command.
pub struct Command {
    /// The command's number.
    pub id: u32,
    /// The request.
    pub exec: Exec,
    /// The command's processes; `None` once its reaper is gone.
    pub launched: Option<LaunchedCommand>,
    /// To whom its output goes.
    pub sink: OutputSink,
    /// Standard output and standard error; with a terminal only the first.
    pub streams: [Option<OutputStream>; 2],
    /// Standard input, if it is open.
    pub input: Option<InputWriter>,
    /// The guest's side of its terminal.
    pub terminal: Option<OwnedFd>,
    /// The progress of the command.
    pub progress: CommandProgress,
    /// The command's tree is being killed. The answer comes when that is done.
    pub being_killed: bool,
    /// The calls that wait for the whole tree to be dead.
    pub killers: Vec<GuestCall>,
    /// The command's reaper was killed, and the processes that escaped are being killed.
    pub lost_reaper: bool,
    /// Output is discarded, because no client waits for it.
    pub muted: bool,
    /// The call that feeds a kept command.
    pub feeder: Option<GuestCall>,
    /// The output of a kept command waits for its reader.
    pub waits_for_room: bool,
    /// A kept command is being killed, and its output waits no more.
    pub is_stopping: bool,
    /// After its end: how long its output is still read.
    pub last_words: Option<LastWords>,
    /// Something still held its output open when reading stopped.
    pub output_open: bool,
    /// The number of processes that had been killed for want of memory when the command started.
    pub kills_before: u64,
    announced: bool,
    early_signals: Vec<i32>,
    pid_of_ended: Option<i32>,
}

impl Command {
    /// One that was just started.
    pub fn new(
        id: u32,
        exec: Exec,
        launched: LaunchedCommand,
        sink: OutputSink,
        streams: [Option<OutputStream>; 2],
    ) -> Self {
        Self {
            id,
            exec,
            launched: Some(launched),
            sink,
            streams,
            input: None,
            terminal: None,
            progress: CommandProgress::Running,
            being_killed: false,
            killers: Vec::new(),
            lost_reaper: false,
            muted: false,
            feeder: None,
            waits_for_room: false,
            is_stopping: false,
            last_words: None,
            output_open: false,
            kills_before: 0,
            announced: false,
            early_signals: Vec::new(),
            pid_of_ended: None,
        }
    }

    /// Returns the number of the command's own process, once it has one.
    pub fn pid(&self) -> Option<i32> {
        self.pid_of_ended.or_else(|| self.launched.as_ref().and_then(LaunchedCommand::pid))
    }

    /// Takes the command's processes, after its reaper has gone.
    pub fn take_launched(&mut self) -> Option<LaunchedCommand> {
        self.pid_of_ended = self.pid();
        self.launched.take()
    }

    /// Closes the guest's copies of the command's ends of its output, if it has its own by now.
    pub fn close_outputs(&mut self) {
        if let Some(launched) = &mut self.launched {
            launched.close_outputs();
        }
    }

    /// Tells whether the answer waits for the whole tree to be dead, and the tree is not dead yet.
    pub fn awaits_death(&self) -> bool {
        self.lost_reaper || (self.being_killed && self.launched.is_some())
    }

    /// Stops sending output. The command goes on writing it.
    pub fn mute(&mut self) {
        self.muted = true;
        self.streams.iter_mut().flatten().for_each(|stream| stream.held = Vec::new());
        self.watch_outputs();
    }

    /// Tells the client that it runs, if it does not know. Lazily: it leaves with what follows.
    pub fn announce(&mut self) {
        let (OutputSink::Call(handle), Some(pid), false) = (&self.sink, self.pid(), self.announced) else {
            return;
        };
        self.announced = true;
        let event = Event::Started(pid as u32);
        let (outbox, call) = (handle.outbox(), handle.call);
        outbox.append_lazily(|out| wire::push_message(out, Kind::Event, call, &event));
    }

    /// Sends what a stream has to the call, as far as the client takes it. Whether there was
    /// anything.
    pub fn forward(&mut self, index: usize, buffer: &mut [u8]) -> bool {
        let OutputSink::Call(handle) = &self.sink else {
            return false;
        };
        let handle = handle.clone();
        let Some(stream) = self.streams[index].as_mut() else {
            return false;
        };
        let limit = stream.credit.min(MAX_PAYLOAD_BYTES as u64) as usize;
        if limit == 0 || handle.is_full() {
            stream.watch(false);
            return false;
        }
        match stream.take(&mut buffer[..limit]) {
            ReadOutcome::Bytes(count) => {
                stream.credit -= count as u64;
                let channel = stream.channel;
                self.announce();
                handle.data(channel, &[&buffer[..count]]);
                true
            }
            ReadOutcome::Nothing => false,
            ReadOutcome::End => {
                self.streams[index] = None;
                false
            }
        }
    }

    /// Reads and drops output, so that its writer can go on.
    pub fn discard(&mut self, index: usize, buffer: &mut [u8]) {
        if let Some(stream) = &self.streams[index]
            && stream.take(buffer) == ReadOutcome::End
        {
            self.streams[index] = None;
        }
    }

    /// Tells whether a process may still write to the output.
    pub fn is_open(&self) -> bool {
        self.streams.iter().any(Option::is_some)
    }

    /// Tells whether its output waits for the client.
    pub fn is_stalled(&self) -> bool {
        match &self.sink {
            OutputSink::Call(handle) => {
                self.streams.iter().flatten().any(|stream| stream.credit == 0) || handle.is_full()
            }
            OutputSink::Kept(_) => self.waits_for_room && !self.is_stopping,
            OutputSink::Log(..) | OutputSink::Discard => false,
        }
    }

    /// Stops reading after the command's end: takes the present content of the pipes, and no more.
    /// Bytes that the client does not take yet are held, and nothing else is read until they are
    /// gone.
    pub fn stop_reading(&mut self) {
        if !self.muted {
            self.streams.iter_mut().flatten().for_each(OutputStream::hold_what_waits);
            // The last writer may have gone since its end was looked for.
            self.output_open = self.streams.iter().flatten().any(|stream| !stream.has_ended());
        }
    }

    /// Sends the held bytes, as far as the client takes them. Returns whether none are left.
    pub fn send_held(&mut self) -> bool {
        let OutputSink::Call(handle) = &self.sink else {
            return true;
        };
        let mut all = true;
        for stream in self.streams.iter_mut().flatten() {
            while !stream.held.is_empty() && stream.credit > 0 && !handle.is_full() {
                let most = (stream.credit as usize).min(MAX_PAYLOAD_BYTES).min(stream.held.len());
                let piece: Vec<u8> = stream.held.drain(..most).collect();
                stream.credit -= most as u64;
                handle.data(stream.channel, &[&piece]);
            }
            all &= stream.held.is_empty();
        }
        all
    }

    /// Answers the call and lets go of it.
    pub fn settle(&mut self, result: &Result<Reply, Failure>) -> Option<GuestCall> {
        self.progress = CommandProgress::Settled;
        self.input = None;
        let sink = std::mem::replace(&mut self.sink, OutputSink::Discard);
        self.watch_outputs();
        let (OutputSink::Call(handle) | OutputSink::Log(_, Some(handle))) = sink else {
            return None;
        };
        handle.answer(result);
        Some(handle)
    }

    /// Reads its output (again).
    pub fn watch_outputs(&mut self) {
        self.streams.iter_mut().flatten().for_each(|stream| stream.watch(true));
    }

    /// Takes what the client sent for its standard input. `false`: more than was granted.
    pub fn accept_input(&mut self, bytes: &[u8]) -> bool {
        let accepted = self.input.as_mut().is_none_or(|input| input.accept(bytes));
        self.write_input();
        accepted
    }

    /// Takes a kept command's input from this call from now on. Returns the call before.
    ///
    /// # Errors
    /// `conflict` when it takes no input, or has not read what the call before sent.
    pub fn take_feeder(&mut self, handle: GuestCall) -> Result<Option<GuestCall>, Failure> {
        let Some(input) = self.input.as_mut().filter(|input| input.takes_more()) else {
            return Err(failure("conflict", "the command does not read its input any more"));
        };
        if !input.grant_anew() {
            return Err(failure("conflict", "the command has not read the input that it got before"));
        }
        Ok(self.feeder.replace(handle))
    }

    /// The client sends no more input.
    pub fn end_input(&mut self) {
        let last = self.terminal.as_ref().map(|master| sys::end_of_input(master.as_fd()));
        if let Some(input) = self.input.as_mut() {
            input.end(last.as_slice());
        }
        self.write_input();
    }

    /// Writes what its standard input takes now.
    pub fn write_input(&mut self) {
        let Some(input) = self.input.as_mut() else { return };
        let feeder = match &self.sink {
            OutputSink::Call(handle) => Some(handle),
            _ => self.feeder.as_ref(),
        };
        if let Some((bytes, feeder)) = input.write().zip(feeder) {
            feeder.grant(CHANNEL_MAIN, bytes);
        }
        if input.is_finished() {
            // With a terminal this closes one of several descriptors: its end was written as a
            // byte.
            self.input = None;
        }
    }

    /// Sends a signal to its process group, or its terminal's foreground group.
    pub fn signal(&mut self, signal: i32) {
        let group = self.terminal.as_ref().and_then(|master| sys::foreground_group(master.as_fd()));
        let has_started = self.launched.as_ref().is_some_and(LaunchedCommand::has_started);
        match group.or_else(|| self.pid()) {
            Some(group) if has_started && self.progress == CommandProgress::Running => {
                send_to_group(group, signal)
            }
            _ if self.progress == CommandProgress::Running => self.early_signals.push(signal),
            _ => {}
        }
    }

    /// It runs now: the signals that came too early.
    pub fn send_early_signals(&mut self) {
        for signal in std::mem::take(&mut self.early_signals) {
            self.signal(signal);
        }
    }

    /// Changes its terminal's size, if it has one.
    pub fn resize(&self, size: Terminal) {
        if let Some(master) = &self.terminal {
            // A terminal whose command has ended keeps its size.
            drop(sys::resize_terminal(master.as_fd(), size));
        }
    }

    /// Carries out a `Control` other than `Kill`.
    pub fn control(&mut self, control: Control) {
        match control {
            Control::Kill => {}
            Control::Signal(signal) => self.signal(signal),
            Control::Resize(size) => self.resize(size),
        }
    }
}

/// A group that is gone already needs no signal.
fn send_to_group(group: i32, signal: i32) {
    if (1..=64).contains(&signal) {
        drop(sys::kill(-group, signal));
    }
}
