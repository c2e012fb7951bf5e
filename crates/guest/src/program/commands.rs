//! Starts commands, and settles them when they have ended.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::call_handle::GuestCall;
use super::command::{Command, CommandProgress, OutputSink};
use super::connection::Call;
use super::failure::{failure, internal};
use super::guest::Guest;
use super::input_writer::InputWriter;
use super::last_words::LastWords;
use super::output_stream::OutputStream;
use super::poll::PollToken;
use super::proc_table;
use super::spawn::{LaunchedCommand, Streams, find_identity, text_of};
use super::sys;
use super::tree_kill::{Root, TreeKill};
use crate::protocol::{CHANNEL_STDERR, CHANNEL_STDOUT, Exec, Failure, ProcessTerms, Reply, Status, WINDOW};

/// A command that ends sooner is not announced before its answer: both then travel together.
const ANNOUNCE_AFTER: Duration = Duration::from_millis(2);
/// A full pipe takes two reads, and its end a third.
const READS_AT_THE_END: usize = 3;
/// The number of processes left behind by a command that are checked for work.
const MOST_LOOKED_AT: usize = 64;

/// The guest's ends of a command's streams, and the command's own.
struct CommandPipes {
    theirs: Streams,
    input: Option<OwnedFd>,
    outputs: [Option<OwnedFd>; 2],
    terminal: Option<OwnedFd>,
}

impl Guest {
    /// Runs a command for a call.
    pub(super) fn begin_exec(&mut self, handle: GuestCall, exec: Exec) {
        let id = self.next_id();
        match self.start_command(id, exec, OutputSink::Call(handle.clone())) {
            Ok(()) => {
                self.open_call(&handle, Call::Command(id));
                self.announcements.push_back((Instant::now() + ANNOUNCE_AFTER, id));
            }
            Err(failure) => handle.answer(&Err(failure)),
        }
    }

    /// Starts a process that outlives the call.
    pub(super) fn begin_start(&mut self, handle: GuestCall, mut exec: Exec, terms: ProcessTerms) {
        if terms.input.len() > WINDOW as usize {
            let message = format!("a process is started with at most {WINDOW} bytes of input");
            return handle.answer(&Err(failure("invalid", message)));
        }
        let id = self.next_id();
        exec.stdin = terms.input_follows || !terms.input.is_empty();
        let process = self.processes.add(id, text_of(&exec.command), terms.timeout_ms);
        match self.start_command(id, exec, OutputSink::Log(process, Some(handle.clone()))) {
            Ok(()) => {
                self.open_call(&handle, Call::Starting(id));
                self.give_first_input(id, &terms);
            }
            Err(failure) => {
                self.processes.forget(process);
                handle.answer(&Err(failure));
            }
        }
    }

    pub(super) fn start_command(&mut self, id: u32, exec: Exec, sink: OutputSink) -> Result<(), Failure> {
        let identity = find_identity(&exec, &self.config)?;
        let (uid, gid) = (identity.uid, identity.gid);
        let plumbing = if self.config.switch_user {
            sys::owned_by(uid, gid, || CommandPipes::new(&exec))
        } else {
            CommandPipes::new(&exec)
        };
        let CommandPipes { theirs, input, outputs, terminal } =
            plumbing.map_err(|error| internal("make a command's pipes", &error))?;
        let streams = self.watch_outputs(id, outputs).map_err(|error| internal("watch a command", &error))?;
        let report_start = matches!(sink, OutputSink::Log(..) | OutputSink::Kept(_));
        let kills_before = self.memory_events.kills();
        let launched = self.spawner.start(id, &exec, &self.config, &identity, theirs, report_start)?;
        let input = input.map(|fd| InputWriter::new(fd, Arc::clone(&self.poll), PollToken::Input(id)));
        self.reapers.insert(launched.reaper(), Some(id));
        // A terminal has no end of input but the one that is typed.
        let ends_at_once = terminal.is_some() && !exec.stdin;
        let mut command = Command::new(id, exec, launched, sink, streams);
        (command.input, command.terminal, command.kills_before) = (input, terminal, kills_before);
        if ends_at_once {
            command.end_input();
        }
        self.commands.insert(id, command);
        Ok(())
    }

    fn watch_outputs(
        &self,
        id: u32,
        outputs: [Option<OwnedFd>; 2],
    ) -> std::io::Result<[Option<OutputStream>; 2]> {
        let [stdout, stderr] = outputs;
        let watch = |fd: Option<OwnedFd>, index: u8, channel: u8| {
            let token = PollToken::Output(id, index);
            fd.map(|fd| OutputStream::new(fd, Arc::clone(&self.poll), token, channel)).transpose()
        };
        Ok([watch(stdout, 0, CHANNEL_STDOUT)?, watch(stderr, 1, CHANNEL_STDERR)?])
    }

    /// Tells clients of commands that have been running for a moment. One that was answered for by
    /// then needs no more of the guest's time.
    pub(super) fn announce_due(&mut self) {
        while let Some((at, id)) = self.announcements.front().copied() {
            let is_open = |command: &&Command| command.progress != CommandProgress::Settled;
            let command = self.commands.get(&id).filter(is_open);
            if command.is_some() && at > Instant::now() {
                return;
            }
            let launched = command.and_then(|command| command.launched.as_ref());
            let has_started = launched.is_some_and(LaunchedCommand::has_started);
            self.announcements.pop_front();
            if has_started {
                self.on_started(id);
            }
        }
    }

    /// A command runs now, or has for a moment.
    pub(super) fn on_started(&mut self, id: u32) {
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        let Some(pid) = command.pid() else { return };
        // One that runs for long may hold no more of the guest's descriptors than it needs.
        command.close_outputs();
        if command.progress == CommandProgress::Running {
            self.spawner.raise_oom_score_of(pid);
        }
        command.send_early_signals();
        match &mut command.sink {
            OutputSink::Call(handle) => {
                let handle = handle.clone();
                command.announce();
                // Nothing else may follow for long.
                handle.outbox().append(|_| ());
            }
            OutputSink::Log(process, starter) => {
                let (process, starter) = (*process, starter.take());
                let record = self.processes.set_pid(process, pid);
                if let (Some(handle), Some(record)) = (starter, record) {
                    self.finish(&handle, &Ok(Reply::Process(record)));
                }
            }
            OutputSink::Kept(kept) => {
                let kept = *kept;
                self.on_kept_started(kept);
            }
            OutputSink::Discard => {}
        }
    }

    /// A command could not be run.
    pub(super) fn on_refused(&mut self, id: u32, refusal: Failure) {
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        let kept = if let OutputSink::Kept(kept) = command.sink { Some(kept) } else { None };
        if let OutputSink::Log(process, _) = command.sink {
            self.processes.forget(process);
        }
        command.streams = [None, None];
        if let Some(handle) = command.settle(&Err(refusal.clone())) {
            self.forget_call(&handle);
        }
        if let Some(kept) = kept {
            self.on_kept_refused(kept, refusal);
        }
    }

    /// A command's own process ended.
    pub(super) fn on_ended(&mut self, id: u32, status: Status) {
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        if command.progress == CommandProgress::Running {
            command.progress = CommandProgress::Ended(status);
            self.settle(id);
        }
    }

    /// Answers for an ended command once the client has its output. A tree that is being killed is
    /// answered for when it is dead.
    pub(super) fn settle(&mut self, id: u32) {
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        if command.awaits_death() {
            return;
        }
        for killer in std::mem::take(&mut command.killers) {
            self.finish(&killer, &Ok(Reply::Done));
        }
        if self.has_last_words(id) {
            return;
        }
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        if let CommandProgress::Ended(status) = command.progress {
            command.progress = CommandProgress::Draining(status);
            command.stop_reading();
        }
        if let CommandProgress::Draining(status) = command.progress {
            match command.sink {
                OutputSink::Call(_) => self.settle_call(id, status),
                OutputSink::Log(process, _) => self.settle_process(id, process, status),
                OutputSink::Kept(kept) => self.settle_kept(id, kept, status),
                OutputSink::Discard => command.progress = CommandProgress::Settled,
            }
        }
    }

    /// Tells whether an ended command's output may still say something.
    fn has_last_words(&mut self, id: u32) -> bool {
        let Some(CommandProgress::Ended(_)) = self.commands.get(&id).map(|command| command.progress) else {
            return false;
        };
        self.begin_last_words(id);
        let Some(command) = self.commands.get_mut(&id).filter(|command| command.is_open() && !command.muted)
        else {
            return false;
        };
        let (now, is_stalled) = (Instant::now(), command.is_stalled());
        let Some(words) = &mut command.last_words else {
            return false;
        };
        words.set_stalled(is_stalled, now);
        let (is_over, is_silent) = (words.is_over(now), words.is_silent(now));
        if (is_over || is_silent) && !self.may_still_write(id, is_over, now) {
            return false;
        }
        self.set_timer(id, now);
        true
    }

    /// Takes the present output, at the first check. Most commands leave no process behind, and are
    /// answered at once.
    fn begin_last_words(&mut self, id: u32) {
        let Some(command) = self.commands.get_mut(&id).filter(|command| command.last_words.is_none()) else {
            return;
        };
        command.last_words = Some(LastWords::begin(self.last_id));
        command.close_outputs();
        if let (CommandProgress::Ended(status), false) = (command.progress, command.being_killed) {
            // One that the guest kills needs no other explanation.
            command.progress =
                CommandProgress::Ended(self.memory_events.explain(status, command.kills_before));
        }
        for index in 0..2 {
            for _ in 0..READS_AT_THE_END {
                if !self.take_output(id, index) {
                    break;
                }
            }
        }
    }

    /// Tells whether an output that is silent, or whose time is over, may still bring something. It
    /// may if something was written just now, or if a process that holds it open had no time yet to
    /// write. The child of another command holds a copy of it until that command runs, if it was
    /// made before this one ended.
    fn may_still_write(&mut self, id: u32, is_over: bool, now: Instant) -> bool {
        let Some(last) = self.commands.get(&id).and_then(|command| command.last_words.as_ref()) else {
            return false;
        };
        let is_older = |other: &Command| last.last_command.wrapping_sub(other.id) < u32::MAX / 2;
        let is_starting = |other: &Command| other.launched.as_ref().is_some_and(LaunchedCommand::is_starting);
        let any_starting = self.commands.values().any(|other| is_starting(other) && is_older(other));
        let Some(command) = self.commands.get_mut(&id) else {
            return false;
        };
        let reaper = command.launched.as_ref().map(LaunchedCommand::reaper);
        let at_work =
            reaper.map(|reaper| proc_table::at_work_below(reaper, MOST_LOOKED_AT)).unwrap_or_default();
        let speaks = any_starting
            || !at_work.is_empty()
            || command.streams.iter().flatten().any(OutputStream::has_bytes);
        let Some(words) = &mut command.last_words else {
            return false;
        };
        let starves = words.note(at_work);
        if is_over { (starves || any_starting) && words.extend(now) } else { speaks }
    }

    /// Has the guest look at an ended command again when its output may have been silent for long
    /// enough.
    fn set_timer(&mut self, id: u32, now: Instant) {
        let Some(words) = self.commands.get_mut(&id).and_then(|command| command.last_words.as_mut()) else {
            return;
        };
        if words.is_silent(now) {
            words.note_output(now);
        }
        if let (Some(due), false) = (words.due(), words.has_timer) {
            words.has_timer = true;
            self.last_words.insert((due, id));
        }
    }

    /// Looks at the commands whose output may have been silent for long enough.
    pub(super) fn check_last_words(&mut self) {
        while let Some((at, id)) = self.last_words.first().copied() {
            if at > Instant::now() {
                return;
            }
            self.last_words.pop_first();
            if let Some(words) = self.commands.get_mut(&id).and_then(|command| command.last_words.as_mut()) {
                words.has_timer = false;
                self.settle(id);
            }
        }
    }

    fn settle_call(&mut self, id: u32, status: Status) {
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        command.announce();
        let result = match command.pid() {
            Some(_) => Ok(Reply::Exited(status, command.output_open.then_some(true))),
            None => Err(failure("unavailable", "the command was killed before it ran")),
        };
        if command.send_held()
            && let Some(handle) = command.settle(&result)
        {
            self.forget_call(&handle);
            self.forget_if_gone(id);
        }
    }

    fn settle_process(&mut self, id: u32, process: u32, status: Status) {
        // A reaper that was killed may have had no time to say that it ran.
        self.on_started(id);
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        for stream in command.streams.iter_mut().flatten() {
            let bytes = std::mem::take(&mut stream.held);
            if !bytes.is_empty() {
                self.processes.append(process, stream.channel, &bytes);
            }
        }
        command.progress = CommandProgress::Settled;
        // What it left behind goes on writing to the log.
        command.watch_outputs();
        let ended_at = command.last_words.as_ref().map_or_else(SystemTime::now, |words| words.ended_at);
        let finished = self.processes.end(process, status, ended_at);
        self.finish_all(finished);
        self.forget_if_gone(id);
    }

    /// Forgets a command of which nothing is left.
    pub(super) fn forget_if_gone(&mut self, id: u32) {
        let is_gone = |command: &Command| {
            command.launched.is_none()
                && command.progress == CommandProgress::Settled
                && !command.awaits_death()
        };
        if self.commands.get(&id).is_some_and(is_gone) {
            self.commands.remove(&id);
            self.wake_listener();
        }
    }

    /// Kills a command's whole tree.
    pub(super) fn kill_tree(&mut self, id: u32) {
        let Some(command) = self.commands.get_mut(&id) else {
            return;
        };
        let Some(launched) = &command.launched else { return };
        let root = Root::Reaper(launched.reaper());
        command.being_killed = true;
        if !self.kills.iter().any(|kill| kill.root() == root) {
            self.kills.push(TreeKill::new(root));
        }
    }

    /// A command whose call is gone: it dies.
    pub(super) fn abandon_command(&mut self, id: u32) {
        if let Some(command) = self.commands.get_mut(&id) {
            command.sink = OutputSink::Discard;
            command.progress = CommandProgress::Settled;
            command.input = None;
            command.watch_outputs();
            self.kill_tree(id);
            self.forget_if_gone(id);
        }
    }

    /// A command whose call was cancelled: it is answered for when its tree is dead, whatever it
    /// had to say.
    pub(super) fn cancel_command(&mut self, id: u32) {
        if let Some(command) = self.commands.get_mut(&id) {
            command.mute();
            self.kill_tree(id);
            self.settle(id);
        }
    }

    /// Lets a process live whose start no call waits for any more.
    pub(super) fn abandon_start(&mut self, id: u32) {
        if let Some(Command { sink: OutputSink::Log(_, starter), .. }) = self.commands.get_mut(&id) {
            *starter = None;
        }
    }
}

impl CommandPipes {
    fn new(exec: &Exec) -> std::io::Result<Self> {
        if let Some(size) = exec.terminal {
            let (master, theirs) = sys::open_terminal(size)?;
            let input = Some(master.try_clone()?);
            let outputs = [Some(master.try_clone()?), None];
            let theirs = Streams { stdin: None, stdout: theirs, stderr: None };
            return Ok(Self { theirs, input, outputs, terminal: Some(master) });
        }
        let (stdout_reader, stdout) = sys::pipe()?;
        let (stderr_reader, stderr) = sys::pipe()?;
        sys::set_nonblocking(stdout_reader.as_fd())?;
        sys::set_nonblocking(stderr_reader.as_fd())?;
        let (stdin, input) = if exec.stdin {
            let (stdin, input) = sys::pipe()?;
            sys::set_nonblocking(input.as_fd())?;
            (Some(stdin), Some(input))
        } else {
            (None, None)
        };
        let theirs = Streams { stdin, stdout, stderr: Some(stderr) };
        Ok(Self { theirs, input, outputs: [Some(stdout_reader), Some(stderr_reader)], terminal: None })
    }
}
