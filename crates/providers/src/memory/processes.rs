//! Started processes: they run on when whoever asked for them has gone, and their output is kept.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use eyot::internal::now_ms;
use eyot::{
    Error, ErrorKind, ExitStatus, Log, LogChunk, LogQuery, LogRange, LogStream, ProcessId, ProcessInfo,
    ProcessStatus, Result, Signal, StartTerms,
};
use eyot_guest::log_ring::{LogRing, Positions, StreamSelection};
use eyot_guest::protocol::{CHANNEL_STDERR, CHANNEL_STDOUT, LOG_BYTES};
use futures_util::StreamExt;
use tokio::sync::watch;

use super::clock::{DeadlineClock, Scheduled};
use super::job::ShellJob;
use super::running_job::{JobEnd, JobSink, RunningJob};
use super::sinks::signalled;

/// The ended processes that are remembered.
const MOST_ENDED: usize = 64;
/// The bytes of one piece of a log.
const PIECE_BYTES: usize = 64 << 10;

/// The started processes of one life of a sandbox.
pub(super) struct StartedJobs {
    table: Mutex<StartedTable>,
    clock: DeadlineClock,
}

struct StartedTable {
    last: u32,
    processes: BTreeMap<u32, Arc<StartedJob>>,
}

struct StartedJob {
    state: Mutex<State>,
    /// Counts what happened, so that nobody waits for what has been.
    changed: watch::Sender<u64>,
}

struct State {
    info: ProcessInfo,
    log: LogRing,
    job: Option<Arc<RunningJob>>,
    deadline: Option<Scheduled>,
}

impl StartedJob {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn info(&self) -> ProcessInfo {
        self.lock().info.clone()
    }

    fn has_ended(&self) -> bool {
        self.lock().info.status != ProcessStatus::Running
    }

    fn kill(&self) {
        let job = self.lock().job.clone();
        if let Some(job) = job {
            job.kill();
        }
    }

    fn end_overdue(&self) {
        {
            let mut state = self.lock();
            if state.info.status != ProcessStatus::Running {
                return;
            }
            state.info.timed_out = true;
        }
        self.kill();
    }
}

#[async_trait]
impl JobSink for StartedJob {
    async fn take(&self, stream: LogStream, bytes: Bytes) {
        self.lock().log.append(channel(stream), &bytes);
        self.tell();
    }

    fn end(&self, end: JobEnd) {
        let status = match end {
            JobEnd::Ended { status, .. } => status,
            JobEnd::WithSandbox => ExitStatus::Signaled(Signal::KILL.0),
        };
        let deadline = {
            let mut state = self.lock();
            state.info.status = ProcessStatus::Ended(status);
            state.info.ended_ms = Some(now_ms());
            state.deadline.take()
        };
        drop(deadline);
        self.tell();
    }
}

impl StartedJobs {
    /// Begins behind the number of the last process of an earlier life.
    pub(super) fn new(last: u32, clock: DeadlineClock) -> Self {
        Self { table: Mutex::new(StartedTable { last, processes: BTreeMap::new() }), clock }
    }

    fn lock(&self) -> MutexGuard<'_, StartedTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of the last process.
    pub(super) fn last(&self) -> u32 {
        self.lock().last
    }

    /// Starts a process.
    pub(super) fn start(
        &self,
        job: ShellJob,
        terms: StartTerms,
        register: impl FnOnce(&Arc<RunningJob>) -> Result<()>,
    ) -> Result<ProcessInfo> {
        if let Some(input) = &job.input {
            input.offer(terms.stdin)?;
            if !terms.stdin_follows {
                input.end();
            }
        }
        let info = ProcessInfo {
            id: ProcessId(0),
            pid: 0,
            command: job.shown(),
            status: ProcessStatus::Running,
            started_ms: now_ms(),
            ended_ms: None,
            timed_out: false,
        };
        let log = LogRing::new(LOG_BYTES);
        let state = State { info, log, job: None, deadline: None };
        let process = Arc::new(StartedJob { state: Mutex::new(state), changed: watch::Sender::new(0) });
        let job = job.start(process.clone())?;
        register(&job)?;
        let pid = job.pid;
        let mut table = self.lock();
        table.last = table.last.wrapping_add(1);
        let id = ProcessId(table.last);
        table.processes.insert(id.0, process.clone());
        table.forget_oldest_ended();
        drop(table);
        let mut state = process.lock();
        (state.info.id, state.info.pid, state.job) = (id, pid, Some(job));
        let info = state.info.clone();
        drop(state);
        if let Some(timeout_ms) = terms.timeout_ms {
            // Without its deadline it must not run.
            self.set_deadline(&process, timeout_ms).inspect_err(|_| process.kill())?;
        }
        Ok(info)
    }

    fn set_deadline(&self, process: &Arc<StartedJob>, timeout_ms: u64) -> Result<()> {
        let now = std::time::Instant::now();
        // One that is too far off is none.
        let Some(at) = now.checked_add(std::time::Duration::from_millis(timeout_ms)) else { return Ok(()) };
        let overdue: Weak<StartedJob> = Arc::downgrade(process);
        let end = move || {
            if let Some(process) = overdue.upgrade() {
                process.end_overdue();
            }
        };
        let scheduled = self.clock.at(at, end);
        let scheduled = scheduled.map_err(|error| Error::host("watch a deadline", error))?;
        let mut state = process.lock();
        if state.info.status == ProcessStatus::Running {
            state.deadline = Some(scheduled);
        }
        Ok(())
    }

    fn get(&self, id: ProcessId) -> Result<Arc<StartedJob>> {
        let missing = || Error::new(ErrorKind::NotFound, format!("process `{id}` is not known"));
        self.lock().processes.get(&id.0).cloned().ok_or_else(missing)
    }

    /// Lists every one that runs or is remembered, oldest first.
    pub(super) fn list(&self) -> Vec<ProcessInfo> {
        self.lock().processes.values().map(|process| process.info()).collect()
    }

    /// Waits for the end of a process.
    pub(super) async fn wait(&self, id: ProcessId) -> Result<ProcessInfo> {
        let process = self.get(id)?;
        let mut changed = process.changed.subscribe();
        while !process.has_ended() {
            if changed.changed().await.is_err() {
                break;
            }
        }
        Ok(process.info())
    }

    /// Gives a process more input, or its end.
    pub(super) fn write_stdin(&self, id: ProcessId, data: Bytes, ends: bool) -> Result<()> {
        let process = self.get(id)?;
        let job = process.lock().job.clone().filter(|job| !job.has_ended());
        let refused = || Error::new(ErrorKind::Conflict, "the process takes no more input");
        let input = job.as_ref().and_then(|job| job.input.as_ref()).ok_or_else(refused)?;
        input.offer(data)?;
        if ends {
            input.end();
        }
        Ok(())
    }

    /// Kills a process; without a signal with everything that it has started.
    pub(super) fn kill(&self, id: ProcessId, signal: Option<Signal>) -> Result<()> {
        let process = self.get(id)?;
        let job = process.lock().job.clone().filter(|job| !job.has_ended());
        match (job, signal) {
            (None, _) => Ok(()),
            (Some(job), Some(signal)) => signalled(&job, signal),
            (Some(job), None) => {
                job.kill();
                Ok(())
            }
        }
    }

    /// Reads a log.
    pub(super) fn logs(&self, id: ProcessId, query: LogQuery) -> Result<Log> {
        let process = self.get(id)?;
        let selection = StreamSelection::new(query.stream.map(channel));
        let changed = process.changed.subscribe();
        let state = process.lock();
        let next = match (query.tail_bytes, query.tail_lines) {
            (Some(bytes), _) => state.log.tail_bytes(bytes, selection),
            (None, Some(lines)) => state.log.tail_lines(lines, selection),
            (None, None) => [query.offset; 2],
        };
        let range = state.log.range(next, selection);
        let range = LogRange {
            start: range.start,
            end: range.end,
            total_bytes: range.total_bytes,
            dropped_bytes: range.dropped_bytes,
        };
        let until = (!query.follow).then(|| state.log.end());
        drop(state);
        let reader = JobLogReader { process, selection, next, until, changed };
        let chunks = futures_util::stream::unfold(reader, |mut reader| async move {
            let chunk = reader.next().await?;
            Some((Ok(chunk), reader))
        });
        Ok(Log { range, chunks: chunks.boxed() })
    }
}

impl StartedTable {
    fn forget_oldest_ended(&mut self) {
        let ended: Vec<u32> =
            self.processes.iter().filter(|(_, process)| process.has_ended()).map(|(id, _)| *id).collect();
        if ended.len() > MOST_ENDED {
            self.processes.remove(&ended[0]);
        }
    }
}

/// A reader of a log.
struct JobLogReader {
    process: Arc<StartedJob>,
    selection: StreamSelection,
    next: Positions,
    /// The position at which to stop; `None` to follow.
    until: Option<u64>,
    changed: watch::Receiver<u64>,
}

impl JobLogReader {
    async fn next(&mut self) -> Option<LogChunk> {
        loop {
            self.changed.mark_unchanged();
            let has_ended = {
                let state = self.process.lock();
                match state.log.piece(self.next, self.selection, PIECE_BYTES) {
                    Some(piece) => {
                        let left = self.until.map_or(u64::MAX, |until| until.saturating_sub(piece.offset));
                        if left == 0 {
                            return None;
                        }
                        let length = piece.bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                        self.next[usize::from(piece.channel == CHANNEL_STDERR)] =
                            piece.offset + length as u64;
                        return Some(LogChunk {
                            stream: stream(piece.channel),
                            offset: piece.offset,
                            stream_offset: piece.stream_offset,
                            data: Bytes::copy_from_slice(&piece.bytes[..length]),
                        });
                    }
                    None => state.info.status != ProcessStatus::Running,
                }
            };
            if has_ended || self.until.is_some() || self.changed.changed().await.is_err() {
                return None;
            }
        }
    }
}

/// The number of a stream in a log.
pub(super) fn channel(stream: LogStream) -> u8 {
    match stream {
        LogStream::Stdout => CHANNEL_STDOUT,
        LogStream::Stderr => CHANNEL_STDERR,
    }
}

/// The stream of a number.
pub(super) fn stream(channel: u8) -> LogStream {
    if channel == CHANNEL_STDERR { LogStream::Stderr } else { LogStream::Stdout }
}
