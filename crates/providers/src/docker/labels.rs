//! What is kept of a sandbox: labels of its container. They never change, and whoever may use the Engine can read them;
//! that is somebody who could enter the container anyway.

use std::collections::HashMap;

use eyot::{Error, ErrorKind, Manifest, Result, SandboxId, SandboxInfo, SandboxName, SandboxSpec};
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::life::Life;

/// Labels that begin so are Eyot's own.
pub(crate) const PREFIX: &str = "dev.eyot.";
/// On everything that Eyot makes: the version of what the other labels mean.
pub(crate) const SCHEMA: &str = "dev.eyot.schema";
/// What [`SCHEMA`] says.
pub(crate) const SCHEMA_VERSION: &str = "1";
/// A sandbox's id.
pub(crate) const ID: &str = "dev.eyot.id";
/// A sandbox's name.
pub(crate) const NAME: &str = "dev.eyot.name";
/// The id of a persistent workspace.
pub(crate) const WORKSPACE: &str = "dev.eyot.workspace";
/// Before the key of each of a spec's metadata.
const METADATA: &str = "dev.eyot.metadata.";
const RECORD: &str = "dev.eyot.record";

/// What a later process needs to use or to remove a sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The contents of the manifest's files are not among it: they may be large, and are in the sandbox.
    pub id: SandboxId,
    pub name: SandboxName,
    pub created_ms: i64,
    pub spec: SandboxSpec,
    /// Both sides' nonces are derived from it.
    pub secret: [u8; 32],
    /// Who runs commands, as images have it.
    pub user: String,
    /// The image's variables, in order.
    pub env: Vec<(String, String)>,
    /// The persistent workspace was made for it; one that was there before outlives a create that fails.
    pub made_workspace: bool,
}

impl Record {
    /// A spec as it is recorded.
    pub(crate) fn recorded(spec: &SandboxSpec) -> SandboxSpec {
        SandboxSpec {
            manifest: Manifest { env: spec.manifest.env.clone(), ..Manifest::default() },
            ..spec.clone()
        }
    }

    /// The labels of the sandbox's container.
    pub(crate) fn labels(&self) -> Result<HashMap<String, String>> {
        let record = serde_json::to_string(self).map_err(|error| {
            Error::new(ErrorKind::Internal, "write the sandbox's record").with_source(error)
        })?;
        let mut labels: HashMap<String, String> = self.spec.labels.clone().into_iter().collect();
        labels.extend(
            self.spec.metadata.iter().map(|(key, value)| (format!("{METADATA}{key}"), value.clone())),
        );
        labels.extend([
            (SCHEMA.to_owned(), SCHEMA_VERSION.to_owned()),
            (ID.to_owned(), self.id.to_string()),
            (NAME.to_owned(), self.name.to_string()),
            (RECORD.to_owned(), record),
        ]);
        Ok(labels)
    }

    /// The record in a container's labels; `None` if it is no sandbox, or one of another version of Eyot.
    pub(crate) fn of(labels: &HashMap<String, String>) -> Option<Self> {
        let known = labels.get(SCHEMA).is_some_and(|version| version == SCHEMA_VERSION);
        known.then(|| serde_json::from_str(labels.get(RECORD)?).ok()).flatten()
    }

    /// The name of the sandbox's container. It is what makes names unique.
    pub(crate) fn container_name(&self) -> String {
        container_name(&self.name)
    }

    /// What is known of the sandbox without asking it.
    pub(crate) fn info(&self, condition: &Condition, isolation: eyot::Isolation) -> SandboxInfo {
        SandboxInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            provider: super::NAME.to_owned(),
            status: condition.status(),
            workdir: self.workdir(),
            created_ms: self.created_ms,
            spec: self.spec.clone(),
            isolation,
            life: condition.life().map(|Life(life)| life.clone()).unwrap_or_default(),
        }
    }

    /// The working directory.
    pub(crate) fn workdir(&self) -> eyot::SandboxPath {
        // A record is made from a checked spec, in which it is filled in.
        self.spec.workdir.clone().unwrap_or_else(eyot::SandboxPath::root)
    }

    /// What is left of its time to live, in milliseconds; `None` without one.
    pub(crate) fn ttl_left_ms(&self, now_ms: i64) -> Option<u64> {
        let lifecycle = &self.spec.lifecycle;
        let ttl = lifecycle.ttl_ms.filter(|_| lifecycle.auto_destroy)?;
        let lived = u64::try_from(now_ms.saturating_sub(self.created_ms)).unwrap_or(0);
        Some(ttl.saturating_sub(lived))
    }
}

/// The name of the container of a sandbox of this name.
pub(crate) fn container_name(name: &SandboxName) -> String {
    format!("eyot-{name}")
}

/// Refuses labels that would be taken for Eyot's own.
pub(crate) fn check(spec: &SandboxSpec) -> Result<()> {
    match spec.labels.keys().find(|key| key.starts_with(PREFIX)) {
        Some(key) => Err(Error::invalid("labels", format!("must not begin with `{PREFIX}`: `{key}`"))),
        None => Ok(()),
    }
}

/// Milliseconds since 1970 (UTC).
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use eyot::{Bytes, Lifecycle};

    use super::*;

    /// A record of a sandbox from this spec.
    pub(crate) fn record(spec: SandboxSpec) -> Record {
        let spec = spec.validate().unwrap();
        Record {
            id: spec.id().clone(),
            name: spec.name().clone(),
            created_ms: 1_000,
            spec: Record::recorded(spec.spec()),
            secret: [7; 32],
            user: "0".to_owned(),
            env: Vec::new(),
            made_workspace: false,
        }
    }

    #[test]
    fn a_record_is_found_again_in_the_labels_beside_the_users_own() {
        let mut spec = SandboxSpec::default();
        spec.labels.insert("team".into(), "red".into());
        spec.metadata.insert("ticket".into(), "ä 42".into());
        spec.manifest.files.insert("a".into(), Bytes::from("large"));
        spec.manifest.env.insert("A".into(), "1".into());
        let record = record(spec);
        let labels = record.labels().unwrap();
        assert_eq!(labels["team"], "red");
        assert_eq!(labels["dev.eyot.metadata.ticket"], "ä 42");
        let found = Record::of(&labels).unwrap();
        assert_eq!(found, record);
        assert!(found.spec.manifest.files.is_empty() && found.spec.manifest.env.contains_key("A"));
    }

    #[test]
    fn another_versions_labels_and_anybody_elses_are_no_sandbox() {
        let mut labels = record(SandboxSpec::default()).labels().unwrap();
        labels.insert(SCHEMA.into(), "2".into());
        assert_eq!(Record::of(&labels), None);
        assert_eq!(Record::of(&HashMap::new()), None);
        let mut spec = SandboxSpec::default();
        spec.labels.insert("dev.eyot.id".into(), "x".into());
        assert!(check(&spec).is_err());
    }

    #[test]
    fn a_ttl_passes_by_the_wall_clock_and_not_where_it_is_switched_off() {
        let with = |auto_destroy| {
            let lifecycle = Lifecycle { ttl_ms: Some(500), auto_destroy, ..Lifecycle::default() };
            record(SandboxSpec { lifecycle, ..SandboxSpec::default() })
        };
        assert_eq!(with(true).ttl_left_ms(1_200), Some(300));
        assert_eq!(with(true).ttl_left_ms(9_999), Some(0));
        assert_eq!(with(false).ttl_left_ms(1_200), None);
    }
}
