//! The answers of E2B's REST calls, as far as they are used.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::secret::Secret;

/// A sandbox in a list, or by itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedSandbox {
    #[serde(rename = "sandboxID")]
    pub id: String,
    pub state: State,
    #[serde(default)]
    started_at: String,
    #[serde(default)]
    pub metadata: Option<BTreeMap<String, String>>,
}

impl ListedSandbox {
    /// Returns the time of its last start, by E2B's clock.
    pub fn started(&self) -> Option<Timestamp> {
        self.started_at.parse().ok()
    }
}

/// The state of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    Running,
    Paused,
    /// One that E2B has added since.
    #[serde(other)]
    Other,
}

/// The means to reach a sandbox.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnvdAccess {
    #[serde(rename = "sandboxID")]
    pub id: String,
    #[serde(default)]
    envd_version: String,
    #[serde(default)]
    envd_access_token: Option<String>,
    #[serde(default)]
    pub domain: Option<String>,
}

impl EnvdAccess {
    /// Returns the token that envd wants.
    pub fn token(&self) -> Option<Secret> {
        self.envd_access_token.as_ref().map(Secret::new)
    }

    /// Tells whether envd is at least of a version.
    pub fn envd_is_at_least(&self, wanted: [u64; 3]) -> bool {
        let numbers = self.envd_version.split('.').map(|number| number.parse::<u64>().ok());
        numbers.collect::<Option<Vec<u64>>>().is_some_and(|version| version.as_slice() >= wanted.as_slice())
    }
}

/// A refusal's body.
#[derive(Debug, Deserialize)]
pub(super) struct RefusalBody {
    #[serde(default)]
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let session = |version: &str| -> EnvdAccess {
            serde_json::from_value(serde_json::json!({ "sandboxID": "i1", "envdVersion": version })).unwrap()
        };
        assert!(session("0.10.0").envd_is_at_least([0, 5, 7]));
        assert!(session("0.5.7").envd_is_at_least([0, 5, 7]));
        assert!(!session("0.5.6").envd_is_at_least([0, 5, 7]));
        assert!(!session("new").envd_is_at_least([0, 5, 7]));
    }

    #[test]
    fn starts_are_compared_however_many_digits_they_have() {
        let started = |text: &str| {
            let listed = serde_json::json!({ "sandboxID": "i1", "state": "running", "startedAt": text });
            serde_json::from_value::<ListedSandbox>(listed).unwrap().started()
        };
        assert!(started("2026-01-02T03:04:05.5Z") < started("2026-01-02T03:04:05.51Z"));
        assert!(started("2026-01-02T03:04:05Z") < started("2026-01-02T03:04:05.000000001Z"));
        assert_eq!(started("soon"), None);
    }

    #[test]
    fn a_state_that_is_not_known_is_read_too() {
        let listed = serde_json::json!({
            "sandboxID": "i1", "templateID": "base", "state": "snapshotting"
        });
        assert_eq!(serde_json::from_value::<ListedSandbox>(listed).unwrap().state, State::Other);
    }
}
