//! Steps of a run as its journal notes them.

use eyot::{Error, ErrorKind, Result};
use serde_json::Value;

use crate::failure::{AgentError, AgentResult};
use crate::journal::EventScope;
use crate::step::{AgentStep, NumberedStep, StepFailure, StepKind, StepOutcome};
use crate::store::StoreChange;

/// A step of a run. Outside of a run it is nowhere noted.
pub(in crate::harness) struct NotedStep {
    numbered: Option<NumberedStep>,
    pub(in crate::harness) step: AgentStep,
}

impl NotedStep {
    /// The next step of a session. One that is new gets this operation, and begins behind so many entries.
    pub(in crate::harness) fn next(
        scope: &EventScope,
        kind: StepKind,
        asked: Value,
        new: impl FnOnce() -> (String, usize),
    ) -> AgentResult<Self> {
        let numbered = match scope.journal().steps() {
            Some(steps) => Some(steps.next(&scope.session_path(), kind, &asked)?),
            None => None,
        };
        let known = numbered.as_ref().and_then(|numbered| numbered.known.clone());
        let step = known.unwrap_or_else(|| {
            let (operation_id, from) = new();
            AgentStep { kind, asked, operation_id, from, outcome: None }
        });
        Ok(Self { numbered, step })
    }

    /// Returns whether a process before this one began it.
    pub(in crate::harness) fn is_known(&self) -> bool {
        self.numbered.as_ref().is_some_and(|numbered| numbered.known.is_some())
    }

    /// The change that notes it as it is now.
    pub(in crate::harness) fn change(&self) -> Vec<StoreChange> {
        let note = self.numbered.as_ref().map(|numbered| StoreChange::Step {
            session: numbered.session.clone(),
            number: numbered.number,
            step: Box::new(self.step.clone()),
        });
        note.into_iter().collect()
    }

    /// The change that notes its end.
    pub(in crate::harness) fn ended(&mut self, outcome: StepOutcome) -> Vec<StoreChange> {
        self.step.outcome = Some(outcome);
        self.change()
    }

    /// The end that it had in a process before this one, for a step that has no result.
    pub(in crate::harness) fn known_end(&self) -> Option<Result<()>> {
        let outcome = self.step.outcome.clone()?;
        Some(outcome.into_result::<()>().map_err(as_error))
    }
}

/// The outcome of a step that has no result.
pub(super) fn outcome_of(done: Result<(), &Error>) -> StepOutcome {
    match done {
        Ok(()) => StepOutcome::Done(Value::Null),
        Err(error) => {
            StepOutcome::Failed(StepFailure::Other { error: error.kind(), message: error.to_string() })
        }
    }
}

/// The failure, where the caller asked for nothing of a model.
pub(super) fn as_error(error: AgentError) -> Error {
    match error {
        AgentError::Other(error) => error,
        error => Error::new(ErrorKind::Conflict, error.to_string()),
    }
}
