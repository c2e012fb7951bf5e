//! Steps of a run: the calls of its handler in order, and their outcomes.
//!
//! When a run is resumed, its handler is called again from the beginning. Each call to a session is compared with the step of
//! the same number. A finished step returns its recorded outcome, and an unfinished step is continued.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use eyot::{Error, ErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::BudgetLimit;
use crate::event::OperationKind;
use crate::failure::{AgentError, AgentResult};
use crate::model::{ModelError, ModelErrorKind};

/// A kind of step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StepKind {
    /// An operation of the session.
    Operation(OperationKind),
    /// The session itself.
    Session(SessionStep),
}

/// A step that is about the session itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionStep {
    /// The session was opened, or created.
    Open,
    /// The session was deleted.
    Delete,
}

impl StepKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Operation(kind) => kind.as_str(),
            Self::Session(SessionStep::Open) => "opening it",
            Self::Session(SessionStep::Delete) => "deleting it",
        }
    }
}

impl From<OperationKind> for StepKind {
    fn from(kind: OperationKind) -> Self {
        Self::Operation(kind)
    }
}

/// A step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentStep {
    /// The kind of the call.
    pub kind: StepKind,
    /// The arguments of the call.
    pub asked: Value,
    /// The id of the operation.
    pub operation_id: String,
    /// The number of entries that the conversation had before the step.
    pub from: usize,
    /// The outcome, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<StepOutcome>,
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// The result.
    Done(Value),
    /// The failure.
    Failed(StepFailure),
}

/// A failure, in the form that is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum StepFailure {
    Aborted { reason: String },
    GaveUp { reason: String, text: String },
    Refused { text: String },
    Model { asked: String, error: ModelErrorKind, message: String },
    Budget { limit: BudgetLimit },
    Other { error: ErrorKind, message: String },
}

impl StepFailure {
    pub(crate) fn of(error: &AgentError) -> Self {
        match error {
            AgentError::Aborted(reason) => Self::Aborted { reason: reason.clone() },
            AgentError::GaveUp { reason, text } => {
                Self::GaveUp { reason: reason.clone(), text: text.clone() }
            }
            AgentError::Refused(text) => Self::Refused { text: text.clone() },
            AgentError::Model { asked, source } => {
                Self::Model { asked: asked.clone(), error: source.kind, message: source.message.clone() }
            }
            AgentError::Budget(limit) => Self::Budget { limit: *limit },
            AgentError::Nondeterministic(message) => {
                Self::Other { error: ErrorKind::Conflict, message: message.clone() }
            }
            AgentError::Other(error) => Self::Other { error: error.kind(), message: error.to_string() },
        }
    }

    fn into_error(self) -> AgentError {
        match self {
            Self::Aborted { reason } => AgentError::Aborted(reason),
            Self::GaveUp { reason, text } => AgentError::GaveUp { reason, text },
            Self::Refused { text } => AgentError::Refused(text),
            Self::Model { asked, error, message } => {
                AgentError::Model { asked, source: ModelError::new(error, message) }
            }
            Self::Budget { limit } => AgentError::Budget(limit),
            Self::Other { error, message } => AgentError::Other(Error::new(error, message)),
        }
    }
}

impl StepOutcome {
    /// Returns the outcome as the result of the call.
    pub(crate) fn into_result<T: for<'de> Deserialize<'de>>(self) -> AgentResult<T> {
        match self {
            Self::Done(value) => serde_json::from_value(value).map_err(|error| {
                let message = "a step of the run has a result that can't be read";
                AgentError::Other(Error::new(ErrorKind::Internal, message).with_source(error))
            }),
            Self::Failed(failure) => Err(failure.into_error()),
        }
    }
}

/// The steps of a run.
#[derive(Debug, Default)]
pub(crate) struct RunSteps {
    state: Mutex<StepState>,
}

#[derive(Debug, Default)]
struct StepState {
    /// The recorded steps, by session and number.
    known: HashMap<(String, u64), AgentStep>,
    /// The number of the next step of each session.
    next: HashMap<String, u64>,
    divergence: Option<String>,
}

const SAME_CALLS: &str = "a handler that is run again must ask for the same in the same order";

/// The step of a call, with its session and number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NumberedStep {
    pub(crate) session: String,
    pub(crate) number: u64,
    /// The record of an earlier process; `None`: the step is new.
    pub(crate) known: Option<AgentStep>,
}

impl RunSteps {
    /// Creates the steps of a resumed run from its records.
    pub(crate) fn known(steps: Vec<(String, u64, AgentStep)>) -> Self {
        let known = steps.into_iter().map(|(session, number, step)| ((session, number), step)).collect();
        Self { state: Mutex::new(StepState { known, ..StepState::default() }) }
    }

    /// Returns the next step of a session. An error: the handler made a different call than before, and the run can't continue.
    pub(crate) fn next(&self, session: &str, kind: StepKind, asked: &Value) -> AgentResult<NumberedStep> {
        let mut state = self.lock();
        if let Some(divergence) = &state.divergence {
            return Err(AgentError::Nondeterministic(divergence.clone()));
        }
        let next = state.next.entry(session.to_owned()).or_default();
        let number = *next;
        *next += 1;
        let known = state.known.get(&(session.to_owned(), number)).cloned();
        if let Some(step) = known.as_ref().filter(|step| step.kind != kind || step.asked != *asked) {
            let message = format!(
                "call {number} of session `{session}` was {} and is {} now, or with other arguments: {SAME_CALLS}",
                step.kind.as_str(),
                kind.as_str()
            );
            state.divergence = Some(message.clone());
            return Err(AgentError::Nondeterministic(message));
        }
        Ok(NumberedStep { session: session.to_owned(), number, known })
    }

    /// Returns the reason why the run can't continue, if there is one. `is_whole`: no more calls will come.
    pub(crate) fn divergence(&self, is_whole: bool) -> Option<String> {
        let state = self.lock();
        if state.divergence.is_some() || !is_whole {
            return state.divergence.clone();
        }
        let was_called = |session: &String, number: u64| {
            // The session of a task is asked for nothing again if the task has been answered.
            session.contains("/task:") || state.next.get(session).is_some_and(|next| number < *next)
        };
        let missing = state.known.iter().find(|((session, number), _)| !was_called(session, *number))?;
        let ((session, number), step) = missing;
        Some(format!(
            "call {number} of session `{session}` was {} and did not come: {SAME_CALLS}",
            step.kind.as_str()
        ))
    }

    fn lock(&self) -> MutexGuard<'_, StepState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(asked: &str) -> AgentStep {
        AgentStep {
            kind: OperationKind::Prompt.into(),
            asked: json!(asked),
            operation_id: "op".into(),
            from: 0,
            outcome: Some(StepOutcome::Done(json!(1))),
        }
    }

    #[test]
    fn a_call_is_the_step_of_its_number_in_its_session() {
        let steps = RunSteps::known(vec![("s".into(), 0, step("a"))]);
        let first = steps.next("s", OperationKind::Prompt.into(), &json!("a")).unwrap();
        assert_eq!(first.known.unwrap().outcome.unwrap().into_result::<u64>().unwrap(), 1);
        let second = steps.next("s", OperationKind::Shell.into(), &json!("b")).unwrap();
        assert_eq!((second.number, second.known), (1, None));
    }

    #[test]
    fn another_call_than_before_is_an_error_and_so_is_every_call_behind_it() {
        let steps = RunSteps::known(vec![("s".into(), 0, step("a"))]);
        let error = steps.next("s", OperationKind::Prompt.into(), &json!("b")).unwrap_err();
        assert!(matches!(error, AgentError::Nondeterministic(_)));
        assert!(steps.next("other", OperationKind::Prompt.into(), &json!("a")).is_err());
        assert!(steps.divergence(false).is_some());
    }

    #[test]
    fn a_failure_is_read_as_it_was_written() {
        let error = AgentError::GaveUp { reason: "r".into(), text: "t".into() };
        let read = StepOutcome::Failed(StepFailure::of(&error)).into_result::<u64>().unwrap_err();
        assert_eq!(read.to_string(), error.to_string());
    }
}
