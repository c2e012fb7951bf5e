//! The state of a sandbox, read off its Pod alone.

use eyot::{Error, ErrorKind, SandboxStatus};
use eyot_guest::protocol::container::{EXIT_ASKED, EXIT_IDLE, EXIT_INCOMPLETE, EXIT_TTL, EXIT_UNCONFIGURED};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodStatus};

/// The container with the guest.
pub(super) const CONTAINER: &str = "sandbox";

/// The reasons of a waiting container that no waiting ends.
const HOPELESS: [&str; 7] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

/// The state of a Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PodState {
    /// It does not run yet, for this reason if there is one.
    Pending(Option<String>),
    /// It can't run, in the cluster's words.
    Stuck(String),
    /// It runs, at this address.
    Running(String),
    /// It is being deleted, or its guest was asked to end for that.
    Going,
    /// A deadline of the sandbox ended it, or it was never completed.
    Over,
    /// It has ended, for this reason.
    Dead(String),
}

impl PodState {
    /// Reads the state.
    pub(super) fn of(pod: &Pod) -> Self {
        if pod.metadata.deletion_timestamp.is_some() {
            return Self::Going;
        }
        let Some(status) = &pod.status else { return Self::Pending(None) };
        match status.phase.as_deref() {
            Some("Failed" | "Succeeded") => Self::ended(status),
            _ => Self::living(status),
        }
    }

    fn living(status: &PodStatus) -> Self {
        let container = container(status);
        let state = container.and_then(|container| container.state.as_ref());
        if let Some(ended) = state.and_then(|state| state.terminated.as_ref()) {
            return Self::of_exit(ended.exit_code, ended.reason.as_deref().unwrap_or_default());
        }
        let runs = state.is_some_and(|state| state.running.is_some());
        if let Some(address) = status.pod_ip.clone().filter(|address| runs && !address.is_empty()) {
            return Self::Running(address);
        }
        stuck(status).map_or_else(|| Self::Pending(unscheduled(status)), Self::Stuck)
    }

    fn ended(status: &PodStatus) -> Self {
        let state = container(status).and_then(|container| container.state.as_ref());
        match state.and_then(|state| state.terminated.as_ref()) {
            Some(ended) if status.reason.is_none() => {
                Self::of_exit(ended.exit_code, ended.reason.as_deref().unwrap_or_default())
            }
            _ => Self::Dead(in_words(status.reason.as_deref(), status.message.as_deref())),
        }
    }

    fn of_exit(code: i32, reason: &str) -> Self {
        match u8::try_from(code).unwrap_or(u8::MAX) {
            // Its owner has asked the guest to end, and deletes the Pod next.
            EXIT_ASKED => Self::Going,
            EXIT_TTL | EXIT_IDLE | EXIT_INCOMPLETE | EXIT_UNCONFIGURED => Self::Over,
            _ => Self::Dead(format!("{reason}, exit code {code}")),
        }
    }

    /// Returns the status that callers see.
    pub(super) fn status(&self) -> SandboxStatus {
        match self {
            Self::Pending(_) | Self::Stuck(_) => SandboxStatus::Creating,
            Self::Running(_) => SandboxStatus::Running,
            Self::Going | Self::Over | Self::Dead(_) => SandboxStatus::Dead,
        }
    }

    /// Makes the error that says why the sandbox can't be used.
    pub(super) fn refusal(&self, name: &str) -> Error {
        match self {
            Self::Over => Error::past_deadline(name),
            Self::Going => Error::destroyed(name),
            Self::Dead(reason) => Error::destroyed(name).with_hint(format!("its Pod has ended: {reason}")),
            Self::Stuck(reason) => Error::new(ErrorKind::Unavailable, format!("its Pod can't run: {reason}")),
            Self::Pending(_) | Self::Running(_) => {
                Error::new(ErrorKind::Unavailable, format!("sandbox `{name}` is still being made"))
            }
        }
    }
}

fn container(status: &PodStatus) -> Option<&ContainerStatus> {
    status.container_statuses.iter().flatten().find(|container| container.name == CONTAINER)
}

fn stuck(status: &PodStatus) -> Option<String> {
    let init = status.init_container_statuses.iter().flatten();
    let containers = init.chain(status.container_statuses.iter().flatten());
    let waiting = containers.filter_map(|container| container.state.as_ref()?.waiting.as_ref());
    let is_hopeless = |reason: &str| HOPELESS.contains(&reason);
    waiting
        .filter(|waiting| waiting.reason.as_deref().is_some_and(is_hopeless))
        .map(|waiting| in_words(waiting.reason.as_deref(), waiting.message.as_deref()))
        .next()
}

fn unscheduled(status: &PodStatus) -> Option<String> {
    let conditions = status.conditions.iter().flatten();
    let mut unmet =
        conditions.filter(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    unmet.next().map(|condition| in_words(condition.reason.as_deref(), condition.message.as_deref()))
}

fn in_words(reason: Option<&str>, message: Option<&str>) -> String {
    match (reason, message) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => "the cluster gives no reason".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn state(status: Value) -> PodState {
        PodState::of(&serde_json::from_value(json!({"metadata": {"name": "a"}, "status": status})).unwrap())
    }

    fn with(container: Value) -> PodState {
        let status = json!([{"name": "sandbox", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": container}]);
        state(json!({"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": status}))
    }

    #[test]
    fn a_pod_runs_when_its_container_does_and_not_when_its_phase_says_so() {
        assert_eq!(with(json!({"running": {}})), PodState::Running("10.0.0.1".to_owned()));
        assert_eq!(with(json!({"waiting": {"reason": "ContainerCreating"}})), PodState::Pending(None));
        assert!(matches!(
            with(json!({"waiting": {"reason": "ErrImageNeverPull", "message": "image is not present"}})),
            PodState::Stuck(reason) if reason == "ErrImageNeverPull: image is not present"
        ));
    }

    #[test]
    fn an_exit_code_says_whether_a_deadline_or_its_owner_ended_it() {
        assert_eq!(with(json!({"terminated": {"exitCode": 70}})), PodState::Over);
        assert_eq!(with(json!({"terminated": {"exitCode": 71}})), PodState::Over);
        assert_eq!(with(json!({"terminated": {"exitCode": 0, "reason": "Completed"}})), PodState::Going);
        assert_eq!(
            with(json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}})),
            PodState::Dead("OOMKilled, exit code 137".to_owned())
        );
    }

    #[test]
    fn an_eviction_is_told_in_the_clusters_words() {
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."});
        let PodState::Dead(reason) = state(evicted) else { panic!("it lives") };
        assert_eq!(reason, "Evicted: The node was low on resource: memory.");
    }
}
