//! Kept commands: they outlive whoever asked for them, with their output, for a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use eyot::internal::now_ms;
use eyot::{
    Error, ErrorKind, ExecResult, ExitStatus, KeptAttachment, KeptControl, KeptEvent, KeptInfo, KeptPiece,
    LogStream, Outcome, Result, SandboxOperationUnsupported, Signal,
};
use eyot_guest::kept_output::KeptOutput;
use eyot_guest::protocol::MAX_KEPT;
use futures_util::StreamExt;
use tokio::sync::watch;

use super::NAME;
use super::activity::Busy;
use super::clock::{DeadlineClock, Scheduled};
use super::job::ShellJob;
use super::processes::{channel, stream};
use super::running_job::{JobEnd, JobSink, RunningJob};
use super::sinks::signalled;

/// The kept commands of one life of a sandbox.
pub(super) struct KeptJobs {
    table: Arc<Mutex<BTreeMap<String, Arc<Kept>>>>,
    clock: DeadlineClock,
}

struct Kept {
    state: Mutex<State>,
    /// Counts what happened, so that nobody waits for what has been.
    changed: watch::Sender<u64>,
}

struct State {
    id: String,
    command: String,
    started: Instant,
    started_ms: i64,
    timeout_ms: Option<u64>,
    linger: Duration,
    output: KeptOutput,
    /// The number of the client that reads; 0 for none.
    reader: u64,
    last_reader: u64,
    job: Option<Arc<RunningJob>>,
    stop: Option<Outcome>,
    result: Option<ExecResult>,
    is_forgotten: bool,
    busy: Option<Busy>,
    deadline: Option<Scheduled>,
    forgetting: Option<Scheduled>,
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Kills it, if it runs.
    fn stop(&self, outcome: Outcome) {
        let job = {
            let mut state = self.lock();
            if state.result.is_some() {
                return;
            }
            state.stop.get_or_insert(outcome);
            state.job.clone()
        };
        if let Some(job) = job {
            job.kill();
        }
    }

    /// Kills it, and tells whoever waits that it is not there any more.
    fn forget(&self) {
        self.stop(Outcome::Cancelled);
        let schedules = {
            let mut state = self.lock();
            (state.is_forgotten, state.reader) = (true, 0);
            (state.deadline.take(), state.forgetting.take())
        };
        drop(schedules);
        self.tell();
    }
}

impl State {
    fn info(&self) -> KeptInfo {
        KeptInfo {
            id: self.id.clone(),
            command: self.command.clone(),
            is_terminal: false,
            started_ms: self.started_ms,
            age_ms: milliseconds(self.started.elapsed()),
            is_attached: self.reader != 0,
            timeout_ms: self.timeout_ms,
            first: self.output.first(),
            next: self.output.next(),
            result: self.result.clone(),
        }
    }

    fn outcome(&self, end: JobEnd) -> (Outcome, bool) {
        let (status, output_open) = match end {
            JobEnd::Ended { status, output_open } => (status, output_open),
            JobEnd::WithSandbox => (ExitStatus::Signaled(Signal::KILL.0), false),
        };
        (self.stop.unwrap_or_else(|| status.into()), output_open)
    }
}

#[async_trait]
impl JobSink for Kept {
    async fn take(&self, stream: LogStream, bytes: Bytes) {
        let mut changed = self.changed.subscribe();
        loop {
            changed.mark_unchanged();
            {
                let mut state = self.lock();
                if state.output.has_room(state.reader != 0) {
                    state.output.append(channel(stream), &bytes);
                    break;
                }
            }
            if changed.changed().await.is_err() {
                return;
            }
        }
        self.tell();
    }

    fn end(&self, end: JobEnd) {
        let held = {
            let mut state = self.lock();
            let (outcome, output_open) = state.outcome(end);
            let [stdout_bytes, stderr_bytes] = state.output.written();
            state.result = Some(ExecResult {
                outcome,
                stdout: Bytes::new(),
                stderr: Bytes::new(),
                stdout_bytes,
                stderr_bytes,
                duration_ms: milliseconds(state.started.elapsed()),
                timeout_ms: state.timeout_ms,
                may_still_be_running: false,
                output_open,
            });
            (state.deadline.take(), state.busy.take())
        };
        drop(held);
        self.tell();
    }
}

impl KeptJobs {
    pub(super) fn new(clock: DeadlineClock) -> Self {
        Self { table: Arc::default(), clock }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Kept>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, id: &str) -> Result<Arc<Kept>> {
        self.lock().get(id).cloned().ok_or_else(|| not_found(id))
    }

    /// Runs a command that outlives its call.
    pub(super) fn keep(
        &self,
        job: ShellJob,
        terms: Terms,
        busy: Busy,
        register: impl FnOnce(&Arc<RunningJob>) -> Result<()>,
    ) -> Result<KeptAttachment> {
        if self.lock().len() >= MAX_KEPT {
            let reason = format!(
                "this sandbox has {MAX_KEPT} streamed commands, with those that ended and are kept; \
                 end one, or wait until one that ended is forgotten"
            );
            return Err(Error::new(ErrorKind::Quota, reason));
        }
        let id = format!("ex_{}", uuid::Uuid::new_v4().simple());
        let state = State {
            id: id.clone(),
            command: job.shown(),
            started: Instant::now(),
            started_ms: now_ms(),
            timeout_ms: terms.timeout_ms,
            linger: Duration::from_millis(terms.linger_ms),
            output: KeptOutput::new(false),
            reader: 0,
            last_reader: 0,
            job: None,
            stop: None,
            result: None,
            is_forgotten: false,
            busy: Some(busy),
            deadline: None,
            forgetting: None,
        };
        let kept = Arc::new(Kept { state: Mutex::new(state), changed: watch::Sender::new(0) });
        if let Some(input) = &job.input {
            input.give_all(terms.stdin);
        }
        let job = job.start(kept.clone())?;
        kept.lock().job = Some(job.clone());
        register(&job)?;
        self.lock().insert(id, kept.clone());
        // Without its deadline it must not run.
        self.set_deadline(&kept).inspect_err(|_| kept.stop(Outcome::Cancelled))?;
        self.attach_to(&kept, None)
    }

    fn set_deadline(&self, kept: &Arc<Kept>) -> Result<()> {
        let at = {
            let state = kept.lock();
            let timeout = state.timeout_ms.map(Duration::from_millis);
            timeout.and_then(|timeout| state.started.checked_add(timeout))
        };
        let Some(at) = at else { return Ok(()) };
        let overdue = Arc::downgrade(kept);
        let end = move || {
            if let Some(kept) = overdue.upgrade() {
                kept.stop(Outcome::TimedOut);
            }
        };
        let scheduled = self.clock.at(at, end).map_err(|error| Error::host("watch a deadline", error))?;
        let mut state = kept.lock();
        if state.result.is_none() {
            state.deadline = Some(scheduled);
        }
        Ok(())
    }

    /// Attaches to a command, from a position on or from the first output that is kept.
    pub(super) fn attach(&self, id: &str, from: Option<u64>) -> Result<KeptAttachment> {
        let kept = self.get(id)?;
        self.attach_to(&kept, from)
    }

    fn attach_to(&self, kept: &Arc<Kept>, from: Option<u64>) -> Result<KeptAttachment> {
        let changed = kept.changed.subscribe();
        let mut state = kept.lock();
        let (first, next) = (state.output.first(), state.output.next());
        let from = from.unwrap_or(first);
        if from < first {
            let reason = format!("output {from} is not kept any more; the first that is kept is {first}");
            return Err(Error::new(ErrorKind::Conflict, reason));
        }
        // The end has a position too.
        if from > next + u64::from(state.result.is_some()) {
            let reason = format!("there is no output {from} yet; the next is {next}");
            return Err(Error::new(ErrorKind::Invalid, reason));
        }
        state.last_reader += 1;
        state.reader = state.last_reader;
        let (number, info, forgetting) = (state.reader, state.info(), state.forgetting.take());
        drop(state);
        drop(forgetting);
        kept.tell();
        let reader = KeptJobReader {
            kept: kept.clone(),
            number,
            next: from,
            changed,
            is_over: false,
            table: Arc::downgrade(&self.table),
            clock: self.clock.clone(),
        };
        let events = futures_util::stream::unfold(reader, |mut reader| async move {
            let event = reader.next().await?;
            Some((Ok(event), reader))
        });
        Ok(KeptAttachment { info, events: events.boxed(), input: None })
    }

    /// Lists every kept command, oldest first.
    pub(super) fn list(&self) -> Vec<KeptInfo> {
        let mut all: Vec<(Instant, KeptInfo)> = self
            .lock()
            .values()
            .map(|kept| {
                let state = kept.lock();
                (state.started, state.info())
            })
            .collect();
        all.sort_by_key(|(started, _)| *started);
        all.into_iter().map(|(_, info)| info).collect()
    }

    /// Waits for the end of a kept command.
    pub(super) async fn end(&self, id: &str) -> Result<KeptInfo> {
        let kept = self.get(id)?;
        let mut changed = kept.changed.subscribe();
        loop {
            changed.mark_unchanged();
            {
                let state = kept.lock();
                if state.is_forgotten {
                    let reason = format!("the kept command `{id}` was forgotten");
                    return Err(Error::new(ErrorKind::NotFound, reason));
                }
                if state.result.is_some() {
                    return Ok(state.info());
                }
            }
            if changed.changed().await.is_err() {
                return Err(not_found(id));
            }
        }
    }

    /// Changes a kept command.
    pub(super) fn control(&self, id: &str, control: KeptControl) -> Result<()> {
        let kept = self.get(id)?;
        match control {
            KeptControl::Kill => kept.stop(Outcome::Cancelled),
            KeptControl::Forget => {
                self.lock().remove(id);
                kept.forget();
            }
            KeptControl::Signal(signal) => {
                let job = kept.lock().job.clone().filter(|job| !job.has_ended());
                return job.map_or(Ok(()), |job| signalled(&job, signal));
            }
            KeptControl::Resize(_) => {
                return Err(SandboxOperationUnsupported::new("resize", NAME, &[]).into());
            }
        }
        Ok(())
    }
}

/// The terms of a kept command.
pub(super) struct Terms {
    pub stdin: Bytes,
    pub timeout_ms: Option<u64>,
    pub linger_ms: u64,
}

fn not_found(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no kept command `{id}`"))
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A client that reads the output. The last one to come is the one that reads.
struct KeptJobReader {
    kept: Arc<Kept>,
    number: u64,
    next: u64,
    changed: watch::Receiver<u64>,
    is_over: bool,
    table: Weak<Mutex<BTreeMap<String, Arc<Kept>>>>,
    clock: DeadlineClock,
}

impl KeptJobReader {
    async fn next(&mut self) -> Option<KeptEvent> {
        loop {
            self.changed.mark_unchanged();
            match self.look() {
                Some(event) => return event,
                None => self.changed.changed().await.ok()?,
            }
        }
    }

    /// The next event, if it is there; `Some(None)` is the end of what this client hears.
    fn look(&mut self) -> Option<Option<KeptEvent>> {
        let mut state = self.kept.lock();
        if self.is_over || state.reader != self.number {
            return Some(None);
        }
        if let Some(piece) = state.output.piece(self.next, usize::MAX) {
            let piece = KeptPiece {
                stream: stream(piece.channel),
                start: piece.start,
                end: piece.end,
                data: Bytes::copy_from_slice(piece.bytes),
            };
            self.next = piece.end;
            state.output.note_read(piece.end);
            drop(state);
            self.kept.tell();
            return Some(Some(KeptEvent::Output(piece)));
        }
        let result = state.result.clone()?;
        self.is_over = true;
        Some(Some(KeptEvent::End(Box::new(result))))
    }
}

impl Drop for KeptJobReader {
    fn drop(&mut self) {
        let mut state = self.kept.lock();
        if state.reader != self.number {
            return;
        }
        state.reader = 0;
        // One whose time is too far off is kept as long as its sandbox.
        let at = Instant::now().checked_add(state.linger);
        let id = state.id.clone();
        drop(state);
        self.kept.tell();
        let (kept, table) = (Arc::downgrade(&self.kept), self.table.clone());
        let forget = move || {
            if let Some(table) = table.upgrade() {
                table.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            }
            if let Some(kept) = kept.upgrade() {
                kept.forget();
            }
        };
        let Some(at) = at else { return };
        match self.clock.at(at, forget) {
            Ok(scheduled) => {
                let mut state = self.kept.lock();
                let is_left = state.reader == 0 && !state.is_forgotten;
                let before = if is_left { state.forgetting.replace(scheduled) } else { Some(scheduled) };
                drop(state);
                drop(before);
            }
            Err(error) => {
                tracing::warn!(%error, "a command that nobody reads is ended at once, because its time can't be watched");
                self.kept.forget();
            }
        }
    }
}
