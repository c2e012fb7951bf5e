//! Commands that outlive their clients: what is known of each, its output, who reads it, and when it
//! is to end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use rustix::rand::{GetRandomFlags, getrandom};

use super::call_handle::GuestCall;
use super::failure::{failure, internal};
use super::kept_reader::KeptReader;
use super::processes::{Finished, since_epoch_ms};
use crate::kept_output::KeptOutput;
use crate::protocol::{Event, Failure, KeepTerms, KeptEnd, KeptRecord, MAX_KEPT, Reply, Status, StopCause};

/// A kept command.
#[derive(Debug)]
pub struct KeptCommand {
    /// The command behind it; it may be gone.
    pub command: u32,
    /// The reason why its tree is being killed, or was.
    pub stop: Option<StopCause>,
    id: String,
    text: String,
    is_terminal: bool,
    has_started: bool,
    started: Instant,
    started_ms: i64,
    terms: KeepTerms,
    output: KeptOutput,
    reader: Option<KeptReader>,
    /// The time from which on nobody read it, if nobody does.
    left: Instant,
    waiters: Vec<GuestCall>,
    end: Option<KeptEnd>,
}

/// A step that is due for a kept command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DueStep {
    /// Its deadline passed.
    Stop(u32),
    /// Nobody has read it for too long.
    Forget(u32),
}

/// Every kept command.
#[derive(Debug, Default)]
pub struct KeptCommands {
    table: BTreeMap<u32, KeptCommand>,
    last: u32,
}

impl KeptCommands {
    /// A command that is on its way, for a call that will read it.
    ///
    /// # Errors
    /// `quota` when so many are kept already.
    pub fn add(
        &mut self,
        command: u32,
        text: String,
        is_terminal: bool,
        terms: KeepTerms,
        handle: GuestCall,
    ) -> Result<u32, Failure> {
        if self.table.values().filter(|kept| kept.is_terminal == is_terminal).count() >= MAX_KEPT {
            return Err(failure("quota", quota_message(is_terminal)));
        }
        let output = KeptOutput::new(is_terminal);
        let now = Instant::now();
        let kept = KeptCommand {
            command,
            stop: None,
            id: new_id(is_terminal)?,
            text,
            is_terminal,
            has_started: false,
            started: now,
            started_ms: since_epoch_ms(SystemTime::now()),
            terms,
            reader: Some(KeptReader::new(handle, output.next())),
            output,
            left: now,
            waiters: Vec::new(),
            end: None,
        };
        self.last = self.last.wrapping_add(1);
        self.table.insert(self.last, kept);
        Ok(self.last)
    }

    /// The command of a number.
    pub fn get(&mut self, number: u32) -> Option<&mut KeptCommand> {
        self.table.get_mut(&number)
    }

    /// The number of a command that has started.
    ///
    /// # Errors
    /// `not_found`.
    pub fn find(&self, id: &str) -> Result<u32, Failure> {
        let found = self.table.iter().find(|(_, kept)| kept.has_started && kept.id == id);
        found
            .map(|(number, _)| *number)
            .ok_or_else(|| failure("not_found", format!("there is no kept command `{id}`")))
    }

    /// Takes one out.
    pub fn remove(&mut self, number: u32) -> Option<KeptCommand> {
        self.table.remove(&number)
    }

    /// Every one that has started, oldest first.
    pub fn records(&self) -> Vec<KeptRecord> {
        self.table.values().filter(|kept| kept.has_started).map(KeptCommand::record).collect()
    }

    /// Tells whether one of them runs.
    pub fn any_runs(&self) -> bool {
        self.table.values().any(|kept| kept.end.is_none())
    }

    /// Returns the time of the next step.
    pub fn next_step(&self) -> Option<Instant> {
        self.table.values().filter_map(KeptCommand::next_step).min()
    }

    /// Returns the steps that are due.
    pub fn due(&self, now: Instant) -> Vec<DueStep> {
        self.table.iter().filter_map(|(number, kept)| kept.due(*number, now)).collect()
    }
}

impl KeptCommand {
    /// It runs: its reader is told.
    pub fn set_started(&mut self) -> Vec<Finished> {
        if !std::mem::replace(&mut self.has_started, true)
            && let Some(reader) = &self.reader
        {
            reader.handle.event(&Event::Kept(self.record()));
        }
        self.pump()
    }

    /// Returns the call that waits for its start, if it has not started.
    pub fn take_starter(&mut self) -> Option<GuestCall> {
        if self.has_started { None } else { self.reader.take().map(|reader| reader.handle) }
    }

    /// Tells whether that call waits for its start.
    pub fn is_started_by(&self, connection: u32, call: u32) -> bool {
        let is_it = |reader: &KeptReader| reader.handle.is(connection, call);
        !self.has_started && self.reader.as_ref().is_some_and(is_it)
    }

    /// Tells whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// The record that clients get.
    pub fn record(&self) -> KeptRecord {
        let [stdout_bytes, stderr_bytes] = self.output.written();
        KeptRecord {
            id: self.id.clone(),
            command: self.text.clone(),
            terminal: self.is_terminal,
            started_ms: self.started_ms,
            age_ms: self.started.elapsed().as_millis() as u64,
            attached: self.reader.is_some(),
            timeout_ms: self.terms.timeout_ms,
            first: self.output.first(),
            next: self.output.next(),
            stdout_bytes,
            stderr_bytes,
            end: self.end,
        }
    }

    /// A call reads its output from a position on, or from the first that is kept. It takes the
    /// place of the call that read before.
    ///
    /// # Errors
    /// `conflict` when output is no longer kept from there on, `invalid` for a position that
    /// nothing has had.
    pub fn attach(&mut self, handle: GuestCall, from: Option<u64>) -> Result<Vec<Finished>, Failure> {
        let (first, next) = (self.output.first(), self.output.next());
        let from = from.unwrap_or(first);
        if from < first {
            let message = format!("output {from} is not kept any more; the first that is kept is {first}");
            return Err(failure("conflict", message));
        }
        // The end has a position too.
        if from > next + u64::from(self.end.is_some()) {
            return Err(failure("invalid", format!("there is no output {from} yet; the next is {next}")));
        }
        let mut finished = self.release_reader();
        self.output.begin_reading(from);
        let reader = KeptReader::new(handle, from);
        reader.handle.event(&Event::Kept(KeptRecord { attached: true, ..self.record() }));
        self.reader = Some(reader);
        finished.extend(self.pump());
        Ok(finished)
    }

    /// Nobody reads it any more, and whoever did is told.
    pub fn release_reader(&mut self) -> Vec<Finished> {
        self.left = Instant::now();
        let record = Ok(Reply::Kept(self.record()));
        self.reader.take().map(|reader| (reader.handle, record)).into_iter().collect()
    }

    /// It wrote something.
    pub fn append(&mut self, channel: u8, bytes: &[u8]) {
        self.output.append(channel, bytes);
        let finished = self.pump();
        debug_assert!(finished.is_empty(), "it has not ended");
    }

    /// Tells whether it may write on.
    pub fn has_room(&self) -> bool {
        self.output.has_room(self.reader.is_some())
    }

    /// Its reader takes more.
    pub fn grant(&mut self, connection: u32, call: u32, channel: u8, bytes: u32) -> Vec<Finished> {
        if let Some(reader) = self.reader.as_mut().filter(|reader| reader.handle.is(connection, call)) {
            reader.grant(channel, bytes);
        }
        self.pump()
    }

    /// Sends its reader what that takes. Whose call that ends.
    pub fn pump(&mut self) -> Vec<Finished> {
        let Some(reader) = self.reader.as_mut().filter(|_| self.has_started) else {
            return Vec::new();
        };
        let is_done = reader.pump(&mut self.output);
        if is_done && self.end.is_some() { self.release_reader() } else { Vec::new() }
    }

    /// A call waits for its end.
    pub fn wait(&mut self, handle: GuestCall) -> Option<Finished> {
        if self.end.is_some() {
            return Some((handle, Ok(Reply::Kept(self.record()))));
        }
        self.waiters.push(handle);
        None
    }

    /// It ended. Whose calls that ends.
    pub fn set_end(&mut self, status: Status, output_open: bool) -> Vec<Finished> {
        let duration_ms = self.started.elapsed().as_millis() as u64;
        self.end = Some(KeptEnd { status, cause: self.stop, output_open, duration_ms });
        let mut finished = self.pump();
        let waiters: Vec<GuestCall> = self.waiters.drain(..).collect();
        let record = self.record();
        finished.extend(waiters.into_iter().map(|handle| (handle, Ok(Reply::Kept(record.clone())))));
        finished
    }

    /// It is forgotten. Whose calls that ends.
    pub fn into_finished(mut self) -> Vec<Finished> {
        let mut finished = self.release_reader();
        let gone = failure("not_found", format!("the kept command `{}` was forgotten", self.id));
        finished.extend(self.waiters.drain(..).map(|handle| (handle, Err(gone.clone()))));
        finished
    }

    /// Forgets what that call waited for or read.
    pub fn drop_call(&mut self, connection: u32, call: u32) {
        self.waiters.retain(|handle| !handle.is(connection, call));
        if self.reader.as_ref().is_some_and(|reader| reader.handle.is(connection, call)) {
            self.reader = None;
            self.left = Instant::now();
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let may_stop = self.has_started && self.end.is_none() && self.stop.is_none();
        let timeout_ms = self.terms.timeout_ms.filter(|_| may_stop);
        timeout_ms.and_then(|ms| self.started.checked_add(Duration::from_millis(ms)))
    }

    fn forgotten_at(&self) -> Option<Instant> {
        let linger = Duration::from_millis(self.terms.linger_ms);
        self.reader.is_none().then(|| self.left.checked_add(linger)).flatten()
    }

    fn next_step(&self) -> Option<Instant> {
        self.deadline().into_iter().chain(self.forgotten_at()).min()
    }

    fn due(&self, number: u32, now: Instant) -> Option<DueStep> {
        if self.forgotten_at().is_some_and(|at| at <= now) {
            return Some(DueStep::Forget(number));
        }
        self.deadline().filter(|at| *at <= now).map(|_| DueStep::Stop(number))
    }
}

/// An id that nobody guesses.
fn new_id(is_terminal: bool) -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    let got = getrandom(&mut bytes[..], GetRandomFlags::empty());
    let got = got.map_err(|error| internal("make a random id", &error.into()))?;
    if got != bytes.len() {
        return Err(failure("internal", "the system gave no random numbers"));
    }
    let prefix = if is_terminal { "tm" } else { "ex" };
    Ok(bytes.iter().fold(format!("{prefix}_"), |id, byte| format!("{id}{byte:02x}")))
}

fn quota_message(is_terminal: bool) -> String {
    let (word, way) = if is_terminal {
        ("terminals", "close one, or wait until one that nobody looks at ends")
    } else {
        ("streamed commands", "end one, or wait until one that ended is forgotten")
    };
    format!("this sandbox has {MAX_KEPT} {word}, with those that ended and are kept; {way}")
}
