//! Started processes: what is known of each, its log, and who waits for it or reads along.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::call_handle::GuestCall;
use super::failure::failure;
use super::log_reader::LogReader;
use crate::log_ring::LogRing;
use crate::protocol::{Event, Failure, LogRequest, ProcessRecord, Reply, Status};

/// The number of ended processes that are remembered.
const MOST_ENDED: usize = 64;

/// A started process.
#[derive(Debug)]
pub struct Process {
    /// The record that clients get.
    pub record: ProcessRecord,
    /// The command behind it; it may be gone.
    pub command: u32,
    timeout: Option<Duration>,
    deadline: Option<Instant>,
    log: LogRing,
    waiters: Vec<GuestCall>,
    readers: Vec<LogReader>,
}

/// Every started process that is remembered.
#[derive(Debug)]
pub struct Processes {
    table: BTreeMap<u32, Process>,
    last_id: u32,
    log_bytes: u64,
}

/// A call that came to its end.
pub type Finished = (GuestCall, Result<Reply, Failure>);

impl Processes {
    /// None yet; each will keep so many bytes of its log. Their numbers begin behind `last_id`.
    pub fn new(log_bytes: u64, last_id: u32) -> Self {
        Self { table: BTreeMap::new(), last_id, log_bytes }
    }

    /// A process that is on its way, with the time that it may run, in milliseconds.
    pub fn add(&mut self, command: u32, text: String, timeout_ms: Option<u64>) -> u32 {
        self.last_id = self.last_id.wrapping_add(1);
        let id = self.last_id;
        let record = ProcessRecord {
            id,
            pid: 0,
            command: text,
            status: None,
            started_ms: since_epoch_ms(SystemTime::now()),
            ended_ms: None,
            timed_out: None,
        };
        let process = Process {
            record,
            command,
            timeout: timeout_ms.map(Duration::from_millis),
            deadline: None,
            log: LogRing::new(self.log_bytes),
            waiters: Vec::new(),
            readers: Vec::new(),
        };
        self.table.insert(id, process);
        id
    }

    /// It never ran. Nobody was told its number, so the next one gets it, unless a later process
    /// has begun meanwhile.
    pub fn forget(&mut self, id: u32) {
        if self.table.remove(&id).is_some() && self.last_id == id {
            self.last_id = id.wrapping_sub(1);
        }
    }

    /// It runs.
    pub fn set_pid(&mut self, id: u32, pid: i32) -> Option<ProcessRecord> {
        let process = self.table.get_mut(&id)?;
        process.record.pid = pid as u32;
        // One that is too far off is none.
        process.deadline = process.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Some(process.record.clone())
    }

    /// The process with that number.
    ///
    /// # Errors
    /// `not_found`.
    pub fn get(&mut self, id: u32) -> Result<&mut Process, Failure> {
        self.table.get_mut(&id).ok_or_else(|| failure("not_found", format!("process `p{id}` is not known")))
    }

    /// Every one that runs or is remembered, oldest first.
    pub fn records(&self) -> Vec<ProcessRecord> {
        self.table.values().map(|process| process.record.clone()).filter(|record| record.pid != 0).collect()
    }

    /// It wrote something. Who reads along gets it.
    pub fn append(&mut self, id: u32, channel: u8, bytes: &[u8]) {
        if let Some(process) = self.table.get_mut(&id) {
            process.log.append(channel, bytes);
            for reader in &mut process.readers {
                let is_done = reader.pump(&process.log, false);
                debug_assert!(!is_done, "only what follows is kept, and the process has not ended");
            }
        }
    }

    /// It ended at that time. Whose calls that ends.
    pub fn end(&mut self, id: u32, status: Status, at: SystemTime) -> Vec<Finished> {
        let Some(process) = self.table.get_mut(&id) else {
            return Vec::new();
        };
        process.record.status = Some(status);
        process.deadline = None;
        process.record.ended_ms = Some(since_epoch_ms(at));
        let record = &process.record;
        let waiters = process.waiters.drain(..);
        let mut finished: Vec<Finished> =
            waiters.map(|handle| (handle, Ok(Reply::Process(record.clone())))).collect();
        finished.extend(process.pump_readers());
        self.forget_oldest_ended();
        finished
    }

    /// Returns the time of the next deadline.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.table.values().filter_map(|process| process.deadline).min()
    }

    /// Takes a process whose deadline has passed, if there is one. Returns the command behind it.
    pub fn take_overdue(&mut self, now: Instant) -> Option<u32> {
        let is_overdue = |process: &&mut Process| process.deadline.is_some_and(|deadline| deadline <= now);
        let process = self.table.values_mut().find(is_overdue)?;
        process.deadline = None;
        process.record.timed_out = Some(true);
        Some(process.command)
    }

    fn forget_oldest_ended(&mut self) {
        let ended = |process: &&Process| process.record.status.is_some();
        if self.table.values().filter(ended).count() > MOST_ENDED {
            // One that is still being read stays until it has been.
            let oldest = self.table.values().filter(ended).find(|process| process.readers.is_empty());
            if let Some(id) = oldest.map(|process| process.record.id) {
                self.table.remove(&id);
            }
        }
    }

    /// Forgets whatever that call waited for or read.
    pub fn drop_call(&mut self, id: u32, connection: u32, call: u32) {
        if let Some(process) = self.table.get_mut(&id) {
            process.waiters.retain(|handle| !handle.is(connection, call));
            process.readers.retain(|reader| !reader.handle.is(connection, call));
        }
    }
}

impl Process {
    /// Tells whether the process has ended.
    pub fn has_ended(&self) -> bool {
        self.record.status.is_some()
    }

    /// A call waits for its end.
    pub fn wait(&mut self, handle: GuestCall) -> Option<Finished> {
        if self.has_ended() {
            return Some((handle, Ok(Reply::Process(self.record.clone()))));
        }
        self.waiters.push(handle);
        None
    }

    /// A call reads its log.
    pub fn read_log(&mut self, handle: GuestCall, request: &LogRequest) -> Vec<Finished> {
        let reader = LogReader::new(handle, request, &self.log);
        reader.handle.event(&Event::Log(reader.range(&self.log)));
        self.readers.push(reader);
        self.pump_readers()
    }

    /// A reader takes more.
    pub fn grant(&mut self, connection: u32, call: u32, channel: u8, bytes: u32) -> Vec<Finished> {
        for reader in self.readers.iter_mut().filter(|reader| reader.handle.is(connection, call)) {
            reader.grant(channel, bytes);
        }
        self.pump_readers()
    }

    /// Sends every reader what it takes. Whose calls that ends.
    pub fn pump_readers(&mut self) -> Vec<Finished> {
        let has_ended = self.has_ended();
        let is_done = |reader: &mut LogReader| reader.pump(&self.log, has_ended);
        self.readers.extract_if(.., is_done).map(|reader| (reader.handle, Ok(Reply::Done))).collect()
    }
}

/// Returns a time in milliseconds since 1970.
pub fn since_epoch_ms(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
