//! The work that a process began and did not bring to an end, as the events of its run tell it.

use serde_json::{Value, json};

use crate::event::{AgentEvent, AgentEventKind, EventOrigin, OperationKind};
use crate::failure::AgentError;
use crate::message::{ContentBlock, StopReason};
use crate::task_session::{is_task_of, task_session};

/// The work that a process before this one left.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedWork {
    /// In the order in which it began.
    begun: Vec<BegunWork>,
}

#[derive(Debug)]
struct BegunWork {
    origin: EventOrigin,
    kind: WorkKind,
}

#[derive(Debug, PartialEq, Eq)]
enum WorkKind {
    /// A model that is answering.
    Turn,
    Tool {
        name: String,
        id: String,
    },
    Task,
    Operation(OperationKind),
}

impl UnfinishedWork {
    /// Adds the next event of the run.
    pub(crate) fn add(&mut self, event: &AgentEvent) {
        let origin = EventOrigin::of(event);
        // A model's turn is over with the next event of its session that is no part of its answer.
        self.take_turn(&origin.session_path());
        match &event.kind {
            AgentEventKind::TextDelta { .. }
            | AgentEventKind::ThinkingStart
            | AgentEventKind::ThinkingDelta { .. }
            | AgentEventKind::ThinkingEnd { .. } => self.begin(origin, WorkKind::Turn),
            AgentEventKind::ToolStart { tool_name, tool_call_id, .. } => {
                self.begin(origin, tool(tool_name, tool_call_id));
            }
            AgentEventKind::ToolCall { tool_name, tool_call_id, .. } => {
                self.end(&origin, &tool(tool_name, tool_call_id));
            }
            AgentEventKind::TaskStart { .. } => self.begin(origin, WorkKind::Task),
            AgentEventKind::Task { .. } => self.end(&origin, &WorkKind::Task),
            AgentEventKind::OperationStart { operation_kind } => {
                self.begin(origin, WorkKind::Operation(*operation_kind));
            }
            AgentEventKind::Operation { operation_kind, .. } => {
                self.end(&origin, &WorkKind::Operation(*operation_kind));
            }
            _ => {}
        }
    }

    /// Takes the turn of a session out. `true`: its model was answering.
    pub(crate) fn take_turn(&mut self, session_path: &str) -> bool {
        self.take(|work| work.kind == WorkKind::Turn && work.origin.session_path() == session_path)
    }

    /// Takes a task out. `true`: nobody has heard of its end.
    pub(crate) fn take_task(&mut self, task_id: &str) -> bool {
        self.take(|work| work.kind == WorkKind::Task && work.origin.task_id.as_deref() == Some(task_id))
    }

    /// Takes an operation out with its own tool calls: who goes on with it ends them.
    pub(crate) fn take_operation(&mut self, operation_id: &str) {
        let is_meant = |kind: &WorkKind| matches!(kind, WorkKind::Operation(_) | WorkKind::Tool { .. });
        self.take(|work| work.origin.operation_id.as_deref() == Some(operation_id) && is_meant(&work.kind));
    }

    /// Takes everything out. Returns the events that end it, what began last first.
    pub(crate) fn end_all(&mut self) -> Vec<(EventOrigin, AgentEventKind)> {
        std::mem::take(&mut self.begun).into_iter().rev().flat_map(BegunWork::end).collect()
    }

    /// Takes the tasks of a session out with everything that was going on in them. Returns the events that end it, what began
    /// last first.
    pub(crate) fn end_tasks(&mut self, session_path: &str) -> Vec<(EventOrigin, AgentEventKind)> {
        let of_session = |work: &&BegunWork| work.origin.session_path() == session_path;
        let tasks = self.begun.iter().filter(of_session).filter(|work| work.kind == WorkKind::Task);
        let tasks: Vec<EventOrigin> = tasks.map(|work| work.origin.clone()).collect();
        let is_below = |work: &BegunWork| tasks.iter().any(|task| is_of_task(work, task));
        let (ended, kept) = std::mem::take(&mut self.begun).into_iter().partition(is_below);
        self.begun = kept;
        ended.into_iter().rev().flat_map(BegunWork::end).collect()
    }

    fn take(&mut self, is_meant: impl Fn(&BegunWork) -> bool) -> bool {
        let before = self.begun.len();
        self.begun.retain(|work| !is_meant(work));
        self.begun.len() < before
    }

    fn begin(&mut self, origin: EventOrigin, kind: WorkKind) {
        self.begun.push(BegunWork { origin, kind });
    }

    fn end(&mut self, origin: &EventOrigin, kind: &WorkKind) {
        self.take(|work| work.origin == *origin && work.kind == *kind);
    }
}

impl BegunWork {
    /// The events that end it.
    fn end(self) -> Vec<(EventOrigin, AgentEventKind)> {
        let kinds = match self.kind {
            WorkKind::Turn => vec![cut_turn()],
            WorkKind::Tool { name, id } => {
                let content = interrupted_call(&name);
                vec![interrupted_tool(name, id, &content)]
            }
            WorkKind::Task => vec![AgentEventKind::Task {
                is_error: true,
                result: Some("the process ended before the task was done".to_owned()),
                duration_ms: 0,
            }],
            WorkKind::Operation(operation_kind) => {
                vec![interrupted_operation(operation_kind), AgentEventKind::Idle]
            }
        };
        kinds.into_iter().map(|kind| (self.origin.clone(), kind)).collect()
    }
}

/// The end of a turn whose process ended before it.
pub(crate) fn cut_turn() -> AgentEventKind {
    AgentEventKind::Turn {
        duration_ms: 0,
        model: None,
        usage: None,
        stop_reason: Some(StopReason::Error),
        is_error: true,
        error: Some("the process ended before the model's answer was complete".to_owned()),
    }
}

/// The answer of a tool call whose process ended before it.
pub(crate) fn interrupted_call(name: &str) -> Vec<ContentBlock> {
    let text = format!(
        "The call of `{name}` was interrupted: its process ended before it was done. It may have done a part of its work. \
         Look before you repeat it."
    );
    vec![ContentBlock::text(text)]
}

/// The end of a tool call that has this answer.
pub(crate) fn interrupted_tool(
    tool_name: String,
    tool_call_id: String,
    content: &[ContentBlock],
) -> AgentEventKind {
    let result = json!({"content": content, "details": {}});
    AgentEventKind::ToolCall { tool_name, tool_call_id, is_error: true, result, duration_ms: 0 }
}

fn interrupted_operation(operation_kind: OperationKind) -> AgentEventKind {
    let error = AgentError::Aborted("the process ended before it was done".to_owned());
    AgentEventKind::Operation {
        operation_kind,
        duration_ms: 0,
        is_error: true,
        error: Some(error.to_event()),
        result: Value::Null,
        usage: None,
    }
}

fn tool(name: &str, id: &str) -> WorkKind {
    WorkKind::Tool { name: name.to_owned(), id: id.to_owned() }
}

/// Returns whether this is the task, or was going on in it.
fn is_of_task(work: &BegunWork, task: &EventOrigin) -> bool {
    if work.origin == *task {
        return work.kind == WorkKind::Task;
    }
    let (Some(parent), Some(id)) = (&task.session, &task.task_id) else { return false };
    let (inside, session) = (task_session(parent, id), work.origin.session.as_deref().unwrap_or_default());
    work.origin.harness == task.harness && (session == inside || is_task_of(session, &inside))
}
