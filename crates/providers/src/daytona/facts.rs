//! Facts about a sandbox, as the API tells them.

use std::collections::BTreeMap;

use eyot::SandboxStatus;
use serde::Deserialize;

/// The longest id of the vendor's.
const MAX_ID_CHARS: usize = 128;

/// A sandbox, as a list or a get tells of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DaytonaFacts {
    pub id: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The variables that it was made with; a list leaves them out.
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    state: String,
    #[serde(default)]
    pub error_reason: Option<String>,
    /// The address of the toolboxes.
    #[serde(default)]
    pub toolbox_proxy_url: String,
    #[serde(default)]
    pub created_at: Option<String>,
}

/// The part of its life that a sandbox is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DaytonaPhase {
    /// The toolbox answers.
    Started,
    /// It has files and no processes.
    Stopped,
    /// It is on its way to be stopped.
    Stopping,
    /// It is on its way to be started, or to something that this version does not know.
    Changing,
    /// It can't be used.
    Failed,
    /// It is removed, or is being.
    Gone,
}

impl DaytonaFacts {
    pub fn phase(&self) -> DaytonaPhase {
        match self.state.as_str() {
            "started" => DaytonaPhase::Started,
            "stopped" | "paused" | "archived" => DaytonaPhase::Stopped,
            "stopping" | "pausing" | "archiving" => DaytonaPhase::Stopping,
            "error" | "build_failed" => DaytonaPhase::Failed,
            "destroyed" | "destroying" => DaytonaPhase::Gone,
            _ => DaytonaPhase::Changing,
        }
    }

    /// Tells whether nothing is left of it.
    pub fn is_destroyed(&self) -> bool {
        self.state == "destroyed"
    }

    /// Returns the variables that it was made with.
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.env
    }

    /// Tells whether the id is one that no path needs to escape, and no file of notes.
    pub fn has_plain_id(&self) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (1..=MAX_ID_CHARS).contains(&self.id.len()) && self.id.bytes().all(is_plain)
    }
}

impl DaytonaPhase {
    pub fn status(self) -> SandboxStatus {
        match self {
            Self::Started | Self::Gone => SandboxStatus::Running,
            Self::Stopped | Self::Stopping => SandboxStatus::Sleeping,
            Self::Changing => SandboxStatus::Creating,
            Self::Failed => SandboxStatus::Damaged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> DaytonaFacts {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_state_that_is_not_known_is_no_end_and_no_start() {
        let phase = |state: &str| of(&format!(r#"{{"id":"a","state":"{state}"}}"#)).phase();
        assert_eq!(phase("started"), DaytonaPhase::Started);
        assert_eq!(phase("archived"), DaytonaPhase::Stopped);
        assert_eq!(phase("something new"), DaytonaPhase::Changing);
        assert_eq!(of(r#"{"id":"a"}"#).phase(), DaytonaPhase::Changing);
    }

    #[test]
    fn an_id_that_leads_elsewhere_is_none() {
        for (id, is_plain) in [("3f0-A", true), ("", false), ("a/b", false), ("..", false), ("a b", false)] {
            assert_eq!(of(&format!(r#"{{"id":"{id}"}}"#)).has_plain_id(), is_plain, "{id}");
        }
        assert!(of(&format!(r#"{{"id":"{}"}}"#, "a".repeat(MAX_ID_CHARS))).has_plain_id());
        assert!(!of(&format!(r#"{{"id":"{}"}}"#, "a".repeat(MAX_ID_CHARS + 1))).has_plain_id());
    }
}
