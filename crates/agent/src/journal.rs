//! The journal of a run. It numbers the events, and records everything in the order in which it happened.
//!
//! One task writes for all sessions of a run. Everything that arrives during a write goes into the next one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::{Error, ErrorKind, Result};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::abort::AbortSwitch;
use crate::conversation::ConversationEntry;
use crate::event::{AgentEvent, AgentEventKind, EventOrigin};
use crate::observe::publish;
use crate::redaction::redact_event;
use crate::step::RunSteps;
use crate::store::{AgentStore, RunLease, StoreChange};
use crate::unfinished::UnfinishedWork;

/// The most notes that are written at once.
pub(crate) const MAX_NOTES_AT_ONCE: usize = 1_000;

/// The journal of a run. Clones share it.
#[derive(Clone)]
pub(crate) struct RunJournal {
    run: Option<Arc<JournalRun>>,
    state: Arc<Mutex<JournalState>>,
    calls: TaskTracker,
}

/// The run of a journal.
pub(crate) struct JournalRun {
    pub(crate) lease: RunLease,
    pub(crate) steps: RunSteps,
    pub(crate) unfinished: Mutex<UnfinishedWork>,
    pub(crate) abort: AbortSwitch,
    /// The most notes that are written at once.
    pub(crate) notes_at_once: usize,
}

struct JournalState {
    next_index: u64,
    /// An `idle` was told by this process.
    has_told_idle: bool,
    listeners: Vec<mpsc::UnboundedSender<Arc<AgentEvent>>>,
    writer: mpsc::UnboundedSender<JournalNote>,
}

/// A message to the task that writes.
enum JournalNote {
    /// Changes that are written together, or not at all.
    Changes(Vec<StoreChange>),
    /// A request for an answer once everything before it is written.
    Written(oneshot::Sender<Result<()>>),
}

/// The journal, for the events that come from one place in a run.
#[derive(Clone)]
pub(crate) struct EventScope {
    journal: RunJournal,
    origin: EventOrigin,
}

impl RunJournal {
    /// Starts a journal, whose first event gets the number `next_index`. Its task ends with the last clone.
    pub(crate) fn start(run: Option<JournalRun>, next_index: u64, store: Arc<dyn AgentStore>) -> Self {
        let (writer, notes) = mpsc::unbounded_channel();
        let lease = run.as_ref().map(|run| run.lease.clone());
        let at_once = run.as_ref().map_or(MAX_NOTES_AT_ONCE, |run| run.notes_at_once);
        tokio::spawn(write(store, lease, notes, at_once));
        let state = JournalState { next_index, has_told_idle: false, listeners: Vec::new(), writer };
        Self { run: run.map(Arc::new), state: Arc::new(Mutex::new(state)), calls: TaskTracker::new() }
    }

    /// Returns the steps of the run, or `None` outside of a run.
    pub(crate) fn steps(&self) -> Option<&RunSteps> {
        self.run.as_ref().map(|run| &run.steps)
    }

    /// The right to write the run, if it is of one.
    pub(crate) fn lease(&self) -> Option<&RunLease> {
        self.run.as_ref().map(|run| &run.lease)
    }

    /// The work that a process before this one left in the run, if it is of one.
    pub(crate) fn unfinished(&self) -> Option<MutexGuard<'_, UnfinishedWork>> {
        let run = self.run.as_ref()?;
        Some(run.unfinished.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The calls of sessions that go on.
    pub(crate) fn calls(&self) -> &TaskTracker {
        &self.calls
    }

    /// Returns the switch that aborts the run. Outside of a run it never aborts.
    pub(crate) fn abort(&self) -> AbortSwitch {
        self.run.as_ref().map(|run| run.abort.clone()).unwrap_or_default()
    }

    /// Returns whether this process has told an `idle` of the run.
    pub(crate) fn has_told_idle(&self) -> bool {
        self.lock().has_told_idle
    }

    /// Returns the events from now on.
    pub(crate) fn listen(&self) -> mpsc::UnboundedReceiver<Arc<AgentEvent>> {
        let (sender, events) = mpsc::unbounded_channel();
        self.lock().listeners.push(sender);
        events
    }

    /// Adds an entry to a conversation. [`RunJournal::written`] waits until it is stored.
    pub(crate) fn append(&self, key: &str, entry: ConversationEntry) {
        self.note(appended(key, entry));
    }

    /// Waits until everything so far is written.
    pub(crate) async fn written(&self) -> Result<()> {
        let (sender, answer) = oneshot::channel();
        let sent = self.lock().writer.send(JournalNote::Written(sender));
        match (sent, answer.await) {
            (Ok(()), Ok(written)) => written,
            _ => Err(Error::new(ErrorKind::Internal, "write the journal of an agent: its task has ended")),
        }
    }

    /// Writes these changes together, or none of them.
    pub(crate) fn note_all(&self, changes: Vec<StoreChange>) {
        // If the writer is gone, `written` reports it.
        self.lock().writer.send(JournalNote::Changes(changes)).ok();
    }

    fn note(&self, change: StoreChange) {
        self.note_all(vec![change]);
    }

    /// Publishes events in order, and records them in one transaction with the changes that they report.
    fn emit(&self, origin: &EventOrigin, kinds: Vec<AgentEventKind>, changes: Vec<StoreChange>) {
        let kinds: Vec<AgentEventKind> = kinds.into_iter().map(redact_event).collect();
        // The lock keeps the numbers in the order in which the events are published.
        let mut state = self.lock();
        let mut noted = Vec::new();
        for kind in kinds {
            state.has_told_idle |= matches!(kind, AgentEventKind::Idle);
            let event = Arc::new(self.event(origin, kind, state.next_index));
            state.next_index += 1;
            state.listeners.retain(|listener| listener.send(Arc::clone(&event)).is_ok());
            publish(&event);
            if self.run.is_some() {
                noted.push(StoreChange::Event(event));
            }
        }
        noted.extend(changes);
        if !noted.is_empty() {
            state.writer.send(JournalNote::Changes(noted)).ok();
        }
    }

    fn event(&self, origin: &EventOrigin, kind: AgentEventKind, event_index: u64) -> AgentEvent {
        AgentEvent {
            kind,
            run_id: self.run.as_ref().map(|run| run.lease.id().to_owned()),
            event_index,
            timestamp: humantime::format_rfc3339_millis(std::time::SystemTime::now()).to_string(),
            session: origin.session.clone(),
            parent_session: origin.parent_session.clone(),
            task_id: origin.task_id.clone(),
            harness: origin.harness.clone(),
            operation_id: origin.operation_id.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventScope {
    /// Returns the scope of a run.
    pub(crate) fn of_run(journal: RunJournal) -> Self {
        Self { journal, origin: EventOrigin::default() }
    }

    /// Returns the scope of a harness.
    pub(crate) fn of_harness(journal: RunJournal, harness: &str) -> Self {
        let harness = Some(harness.to_owned());
        Self { journal, origin: EventOrigin { harness, ..EventOrigin::default() } }
    }

    /// Returns the scope of a session.
    pub(crate) fn of_session(&self, session: &str) -> Self {
        self.at(EventOrigin { session: Some(session.to_owned()), ..self.origin.clone() })
    }

    /// Returns the scope of a task's session.
    pub(crate) fn of_task(&self, parent: &str, task_id: &str, session: &str) -> Self {
        self.at(EventOrigin {
            session: Some(session.to_owned()),
            parent_session: Some(parent.to_owned()),
            task_id: Some(task_id.to_owned()),
            operation_id: None,
            ..self.origin.clone()
        })
    }

    /// Returns the scope of an operation.
    pub(crate) fn of_operation(&self, operation_id: &str) -> Self {
        self.at(EventOrigin { operation_id: Some(operation_id.to_owned()), ..self.origin.clone() })
    }

    /// Returns the scope of the events about a task that the session started.
    pub(crate) fn about_task(&self, task_id: &str) -> Self {
        self.at(EventOrigin {
            task_id: Some(task_id.to_owned()),
            parent_session: self.origin.session.clone(),
            ..self.origin.clone()
        })
    }

    /// The scope of another place of the run.
    pub(crate) fn at(&self, origin: EventOrigin) -> Self {
        Self { journal: self.journal.clone(), origin }
    }

    /// Publishes an event.
    pub(crate) fn emit(&self, kind: AgentEventKind) {
        self.journal.emit(&self.origin, vec![kind], Vec::new());
    }

    /// Publishes an event, and records it in one transaction with these changes.
    pub(crate) fn emit_with(&self, kind: AgentEventKind, changes: Vec<StoreChange>) {
        self.emit_all_with(vec![kind], changes);
    }

    /// The same with several events.
    pub(crate) fn emit_all_with(&self, kinds: Vec<AgentEventKind>, changes: Vec<StoreChange>) {
        self.journal.emit(&self.origin, kinds, changes);
    }

    /// Publishes an event, and records it in one transaction with a conversation's entry.
    pub(crate) fn emit_with_entry(&self, kind: AgentEventKind, key: &str, entry: ConversationEntry) {
        self.journal.emit(&self.origin, vec![kind], vec![appended(key, entry)]);
    }

    /// The same with several events.
    pub(crate) fn emit_all_with_entry(
        &self,
        kinds: Vec<AgentEventKind>,
        key: &str,
        entry: ConversationEntry,
    ) {
        self.journal.emit(&self.origin, kinds, vec![appended(key, entry)]);
    }

    /// Returns the name of the session in the run.
    pub(crate) fn session_path(&self) -> String {
        self.origin.session_path()
    }

    /// The place that its events come from.
    pub(crate) fn origin(&self) -> &EventOrigin {
        &self.origin
    }

    /// Returns the journal.
    pub(crate) fn journal(&self) -> &RunJournal {
        &self.journal
    }
}

fn appended(key: &str, entry: ConversationEntry) -> StoreChange {
    StoreChange::Append { key: key.to_owned(), entry: Box::new(entry) }
}

/// Writes what arrives, until the last clone of the journal is dropped.
async fn write(
    store: Arc<dyn AgentStore>,
    lease: Option<RunLease>,
    mut notes: mpsc::UnboundedReceiver<JournalNote>,
    at_once: usize,
) {
    let mut waiting = Vec::new();
    let mut failure: Option<Error> = None;
    while notes.recv_many(&mut waiting, at_once).await > 0 {
        let (mut changes, mut hearers) = (Vec::new(), Vec::new());
        for note in waiting.drain(..) {
            match note {
                JournalNote::Changes(noted) => changes.extend(noted),
                JournalNote::Written(hearer) => hearers.push(hearer),
            }
        }
        // After a failure nothing more is written, so that the record has no gap.
        if failure.is_none() && !changes.is_empty() {
            failure = store.commit(lease.as_ref(), changes).await.err();
        }
        for hearer in hearers {
            hearer.send(failure.as_ref().map_or(Ok(()), |error| Err(repeated(error)))).ok();
        }
    }
}

fn repeated(error: &Error) -> Error {
    Error::new(error.kind(), format!("write the journal of an agent: {error}"))
}
