//! The condition of a sandbox, read off its container's state alone.

use bollard::models::{ContainerInspectResponse, ContainerState, ContainerStateStatusEnum as State};
use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, IdleAction, SandboxStatus};
use eyot_guest::protocol::container::{EXIT_ASKED, EXIT_IDLE, EXIT_INCOMPLETE, EXIT_TTL};

use super::labels::Record;
use super::life::Life;

/// The condition of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The container was never started: a process is making it, or was killed while doing so.
    Making,
    /// The container runs.
    Running(Life),
    /// A call or the idle timeout has put it to sleep. It can be woken.
    Sleeping,
    /// A deadline ended it, or it was never completed.
    Over,
    /// The container ended without a known reason. The sandbox can be woken.
    Dead,
    /// The container is being removed.
    Going,
}

impl Condition {
    /// Reads the condition from the Engine's description of the container.
    pub(crate) fn of(record: &Record, container: &ContainerInspectResponse) -> Self {
        match &container.state {
            Some(state) => Self::of_state(record, state),
            None => Self::Going,
        }
    }

    fn of_state(record: &Record, state: &ContainerState) -> Self {
        match state.status {
            Some(State::CREATED) if record.base.as_ref().is_some_and(|base| base.replaces) => {
                Self::ended(record, i64::from(EXIT_ASKED))
            }
            Some(State::CREATED) => Self::Making,
            Some(State::RUNNING | State::PAUSED | State::RESTARTING) => {
                Self::Running(Life(state.started_at.clone().unwrap_or_default()))
            }
            Some(State::EXITED) => Self::ended(record, state.exit_code.unwrap_or(-1)),
            _ => Self::Going,
        }
    }

    fn ended(record: &Record, exit_code: i64) -> Self {
        let lifecycle = &record.spec.lifecycle;
        match u8::try_from(exit_code).unwrap_or(u8::MAX) {
            EXIT_TTL | EXIT_INCOMPLETE => Self::Over,
            _ if record.ttl_left_ms(now_ms()) == Some(0) => Self::Over,
            EXIT_ASKED => Self::Sleeping,
            EXIT_IDLE if lifecycle.on_idle == IdleAction::Sleep => Self::Sleeping,
            EXIT_IDLE => Self::Over,
            _ => Self::Dead,
        }
    }

    /// Returns the current life of a running sandbox.
    pub(crate) fn life(&self) -> Option<&Life> {
        match self {
            Self::Running(life) => Some(life),
            _ => None,
        }
    }

    /// Returns the status that callers see.
    pub(crate) fn status(&self) -> SandboxStatus {
        match self {
            Self::Making => SandboxStatus::Creating,
            Self::Running(_) => SandboxStatus::Running,
            Self::Sleeping => SandboxStatus::Sleeping,
            Self::Over | Self::Dead | Self::Going => SandboxStatus::Dead,
        }
    }

    /// Makes the error that says why the sandbox can't be used.
    pub(crate) fn refusal(&self, name: &str) -> Error {
        match self {
            Self::Sleeping => Error::sleeping(name),
            Self::Over => Error::past_deadline(name),
            Self::Going => Error::destroyed(name),
            Self::Dead => Error::dead(name),
            Self::Making | Self::Running(_) => {
                Error::new(ErrorKind::Unavailable, format!("sandbox `{name}` is still being made"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use eyot::{SandboxSpec, SnapshotId};

    use super::*;
    use crate::docker::labels::LowerSnapshot;
    use crate::docker::labels::tests::record;

    fn exited(code: i64, change: impl FnOnce(&mut SandboxSpec)) -> Condition {
        let mut spec = SandboxSpec::default();
        change(&mut spec);
        let state = ContainerState {
            status: Some(State::EXITED),
            exit_code: Some(code),
            ..ContainerState::default()
        };
        Condition::of_state(&record(spec), &state)
    }

    #[test]
    fn a_guests_exit_code_says_whether_its_sandbox_sleeps_or_is_over() {
        assert_eq!(exited(0, |_| {}), Condition::Sleeping);
        assert_eq!(exited(70, |_| {}), Condition::Over);
        assert_eq!(exited(71, |_| {}), Condition::Over);
        assert_eq!(exited(71, |spec| spec.lifecycle.on_idle = IdleAction::Sleep), Condition::Sleeping);
        assert_eq!(exited(72, |_| {}), Condition::Over);
        for code in [1, 73, 137, 255, -1, 300] {
            assert_eq!(exited(code, |_| {}), Condition::Dead, "{code}");
        }
    }

    #[test]
    fn a_container_that_took_the_place_of_another_sleeps_until_it_is_started() {
        let created = ContainerState { status: Some(State::CREATED), ..ContainerState::default() };
        let mut record = record(SandboxSpec::default());
        assert_eq!(Condition::of_state(&record, &created), Condition::Making);
        record.base = Some(LowerSnapshot {
            follows: None,
            snapshot: SnapshotId::generate(),
            root_image: "sha256:1".to_owned(),
            has_workdir: true,
            replaces: true,
        });
        assert_eq!(Condition::of_state(&record, &created), Condition::Sleeping);
    }

    #[test]
    fn a_ttl_passes_while_a_sandbox_sleeps() {
        // The record of the tests was made in 1970.
        assert_eq!(exited(0, |spec| spec.lifecycle.ttl_ms = Some(1_000)), Condition::Over);
    }
}
