//! The guest's main thread: a loop that waits for events, does a little work, and never waits
//! anywhere else.
//!
//! The work lies in other files: `accept`, `incoming`, `requests`, `commands`, `keeping`,
//! `reaping`, `streams`.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::access::AccessRule;
use super::activity::Activity;
use super::call_handle::GuestCall;
use super::command::Command;
use super::connection::{Call, Connection};
use super::deadlines::{Deadline, Deadlines};
use super::dial::Dial;
use super::group_memory::GroupMemory;
use super::kept_commands::KeptCommands;
use super::memory_events::MemoryEvents;
use super::open_files::open_files_of_commands;
use super::poll::{Poll, PollToken, Readiness};
use super::processes::Processes;
use super::spawn::Spawner;
use super::sys::{self, LazyBuffer};
use super::tree_kill::{self, TreeKill};
use super::workers::Workers;
use crate::protocol::{Failure, GuestConfig, Protections, Reply};

/// The most bytes of one read, from any source.
const BUFFER_BYTES: usize = 64 * 1024;
/// The time that the end may take before the rest is left to the kernel.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// The descriptors and settings that the guest was given when it was made.
pub struct GuestSetup {
    /// The stream to the guest's maker.
    pub stream: OwnedFd,
    /// For later connections, if there may be any.
    pub listener: Option<UnixListener>,
    /// The guest's configuration.
    pub config: GuestConfig,
    /// Readable when a child has ended.
    pub children: OwnedFd,
    /// The limit of open files that commands get.
    pub open_files: [u64; 2],
    /// Reports kills for want of memory.
    pub memory_events: MemoryEvents,
    /// The memory that the guest's own control group counts, if it sees one.
    pub group_memory: GroupMemory,
    /// The rule for who may connect.
    pub access: AccessRule,
    /// Readable when the container's operator wants it to end.
    pub stop: Option<OwnedFd>,
    /// The protections that the guest found around itself, if clients are to know them.
    pub protections: Option<Protections>,
}

/// Everything that the main thread knows.
pub struct Guest {
    pub(super) config: GuestConfig,
    pub(super) poll: Arc<Poll>,
    pub(super) children: OwnedFd,
    pub(super) listener: Option<UnixListener>,
    pub(super) listener_rests: bool,
    pub(super) access: AccessRule,
    stop: Option<OwnedFd>,
    pub(super) protections: Option<Protections>,
    pub(super) connections: HashMap<u32, Connection>,
    pub(super) commands: HashMap<u32, Command>,
    /// The reapers, each with its command unless it is free.
    pub(super) reapers: HashMap<i32, Option<u32>>,
    pub(super) processes: Processes,
    pub(super) kept: KeptCommands,
    pub(super) dials: HashMap<u32, Dial>,
    pub(super) spawner: Spawner,
    pub(super) kills: Vec<TreeKill>,
    pub(super) announcements: VecDeque<(Instant, u32)>,
    pub(super) last_words: BTreeSet<(Instant, u32)>,
    pub(super) workers: Workers,
    pub(super) memory_events: MemoryEvents,
    pub(super) group_memory: Arc<GroupMemory>,
    pub(super) activity: Arc<Activity>,
    pub(super) deadlines: Deadlines,
    pub(super) buffer: LazyBuffer,
    pub(super) adopted: bool,
    pub(super) is_init: bool,
    pub(super) ending: Option<GuestEnd>,
    /// The connection for which the calls of the others are held back.
    pub(super) held_for: Option<u32>,
    pub(super) last_id: u32,
}

/// Why the guest ends.
pub enum GuestEnd {
    /// A client asked for it and waits for the answer.
    Asked(GuestCall),
    /// The operator of the guest's container asked for it.
    Stopped,
    /// A deadline has passed.
    Over(Deadline),
    /// The maker is gone and never adopted it.
    NeverAdopted,
}

impl Guest {
    /// Ready to serve.
    pub fn new(inherited: GuestSetup) -> io::Result<Self> {
        let GuestSetup { stream, listener, config, children, open_files, access, stop, .. } = inherited;
        let poll = Arc::new(Poll::new()?);
        let activity = Arc::new(Activity::new());
        let deadlines = Deadlines::new(&poll, Arc::clone(&activity), config.ttl_ms, config.idle_timeout_ms)?;
        let spawner = Spawner::new(open_files_of_commands(open_files, &config))?;
        poll.add_reader(spawner.status_fd(), PollToken::Status)?;
        poll.add_reader(children.as_fd(), PollToken::Children)?;
        if let Some(listener) = &listener {
            poll.add_reader(listener.as_fd(), PollToken::Listener)?;
        }
        if let Some(stop) = &stop {
            poll.add_reader(stop.as_fd(), PollToken::Stop)?;
        }
        let mut guest = Self {
            children,
            listener,
            listener_rests: false,
            access,
            stop,
            protections: inherited.protections,
            connections: HashMap::new(),
            commands: HashMap::new(),
            reapers: HashMap::new(),
            processes: Processes::new(config.log_bytes, config.last_process_id),
            kept: KeptCommands::default(),
            dials: HashMap::new(),
            spawner,
            kills: Vec::new(),
            announcements: VecDeque::new(),
            last_words: BTreeSet::new(),
            workers: Workers::new(config.switch_user.then(|| config.user.clone())),
            memory_events: inherited.memory_events,
            group_memory: Arc::new(inherited.group_memory),
            activity,
            deadlines,
            buffer: LazyBuffer::new(BUFFER_BYTES)?,
            adopted: false,
            is_init: std::process::id() == 1,
            ending: None,
            held_for: None,
            last_id: 0,
            config,
            poll,
        };
        guest.add_connection(stream, true)?;
        Ok(guest)
    }

    /// Serves until the sandbox ends, leaves nothing running, and says why it ended.
    pub fn run(mut self) -> io::Result<GuestEnd> {
        let ending = loop {
            if let Some(ending) = self.ending.take() {
                break ending;
            }
            let events = self.poll.wait(self.wait_ms())?;
            for (token, ready) in events {
                self.on_event(token, ready);
            }
            self.on_time();
            self.flush();
        };
        self.end(&ending);
        Ok(ending)
    }

    pub(super) fn next_id(&mut self) -> u32 {
        self.last_id = self.last_id.wrapping_add(1);
        self.last_id
    }

    fn on_event(&mut self, token: PollToken, ready: Readiness) {
        match token {
            PollToken::Listener => self.on_listener(),
            PollToken::Status => self.on_records(),
            PollToken::Children => self.on_children(),
            PollToken::Deadline => self.on_deadline(),
            PollToken::Stop => self.on_stop(),
            // Once the guest ends it begins nothing more; its clients are told so.
            PollToken::Connection(_) if self.ending.is_some() => {}
            PollToken::Connection(id) => self.on_connection(id, ready),
            PollToken::Output(id, index) => self.on_output(id, usize::from(index)),
            PollToken::Input(id) => self.on_input(id),
            PollToken::DialRead(id) => self.on_dial_readable(id),
            PollToken::DialWrite(id) => self.on_dial_writable(id),
        }
    }

    /// The operator of a container is outside of it, where the kernel gives the sender no number. A process inside may
    /// not end its first process.
    fn on_stop(&mut self) {
        let sender = self.stop.as_ref().and_then(|stop| sys::sender_of_signal(stop.as_fd()));
        if !self.is_init || sender == Some(0) {
            self.ending = Some(GuestEnd::Stopped);
        }
    }

    /// Returns how long the loop may sleep unless an event comes.
    fn wait_ms(&self) -> i32 {
        let announcement = self.announcements.front().map(|(at, _)| *at);
        let kill = self.kills.iter().map(TreeKill::next_step).min();
        let last_words = self.last_words.first().map(|(at, _)| *at);
        let kept = self.kept.next_step();
        let process = self.processes.next_deadline();
        let next = announcement.into_iter().chain(kill).chain(last_words).chain(kept).chain(process).min();
        next.map_or(-1, |at| {
            let left = at.saturating_duration_since(Instant::now());
            left.as_micros().div_ceil(1000).min(1_000_000) as i32
        })
    }

    fn on_time(&mut self) {
        self.announce_due();
        self.step_kills();
        self.check_last_words();
        self.step_kept();
        self.end_overdue_processes();
    }

    fn on_deadline(&mut self) {
        let busy = self.kept.any_runs() || self.connections.values().any(Connection::is_busy);
        match self.deadlines.have_passed(busy) {
            Ok(None) => {}
            Ok(Some(deadline)) => self.ending = Some(GuestEnd::Over(deadline)),
            // A timer that can't be set any more must not let the sandbox live for ever.
            Err(_) => self.ending = Some(GuestEnd::Over(Deadline::Ttl)),
        }
    }

    fn flush(&self) {
        self.connections.values().for_each(|connection| connection.outbox.flush());
    }

    /// Answers a call that is over, and forgets it.
    pub(super) fn finish(&mut self, handle: &GuestCall, result: &Result<Reply, Failure>) {
        handle.answer(result);
        self.forget_call(handle);
    }

    /// Forgets a call that was answered.
    pub(super) fn forget_call(&mut self, handle: &GuestCall) {
        self.activity.note();
        if let Some(connection) = self.connections.get_mut(&handle.connection) {
            connection.calls.remove(&handle.call);
        }
    }

    /// Remembers an open call.
    pub(super) fn open_call(&mut self, handle: &GuestCall, call: Call) {
        if let Some(connection) = self.connections.get_mut(&handle.connection) {
            connection.calls.insert(handle.call, call);
        }
    }

    /// The reapers' process numbers.
    pub(super) fn reaper_pids(&self) -> HashSet<i32> {
        self.reapers.keys().copied().collect()
    }

    fn end(&mut self, ending: &GuestEnd) {
        self.connections.values().for_each(Connection::say_what_was_begun);
        if self.is_init {
            // Kills every process but this one. There may be none.
            drop(sys::kill(-1, libc::SIGKILL));
        }
        tree_kill::kill_all(LAST_PATIENCE, self.children.as_fd());
        if let GuestEnd::Asked(handle) = ending {
            self.finish(handle, &Ok(Reply::Done));
            handle.outbox().flush_finally(LAST_PATIENCE);
        }
    }
}
