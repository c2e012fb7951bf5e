//! The record of a sandbox, in E2B's metadata. Everybody with the team's key reads these, so they have
//! no values of variables: E2B keeps those as the sandbox's own variables.

use std::collections::{BTreeMap, BTreeSet};

use eyot::{
    Error, ErrorKind, Isolation, Manifest, Result, SandboxId, SandboxInfo, SandboxName, SandboxSpec,
    SandboxStatus, ValidSpec,
};
use serde::{Deserialize, Serialize};

use super::NAME;
use super::api::State;

/// The owner: sandboxes of other owners are not seen.
pub(super) const OWNER: &str = "eyot_owner";
/// The key of the create that made it, by which what a create without an answer has made is found.
pub(super) const CREATE: &str = "eyot_create";
const ID: &str = "eyot_id";
const SANDBOX_NAME: &str = "eyot_name";
const RECORD: &str = "eyot_record";

/// The data that a later process needs to use a sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SandboxNote {
    pub id: SandboxId,
    pub name: SandboxName,
    pub created_ms: i64,
    /// The spec, without the values of variables and the files of the manifest.
    pub spec: SandboxSpec,
    variables: BTreeSet<String>,
    manifest_variables: BTreeSet<String>,
}

impl SandboxNote {
    pub fn new(spec: &ValidSpec, created_ms: i64) -> Self {
        let whole = spec.spec();
        let names = |variables: &BTreeMap<String, String>| variables.keys().cloned().collect();
        Self {
            id: spec.id().clone(),
            name: spec.name().clone(),
            created_ms,
            variables: names(&whole.env),
            manifest_variables: names(&whole.manifest.env),
            spec: SandboxSpec {
                env: BTreeMap::new(),
                manifest: Manifest::default(),
                workdir: Some(spec.workdir().clone()),
                ..whole.clone()
            },
        }
    }

    /// Returns the metadata of a new sandbox.
    pub fn metadata(&self, owner: &str) -> Result<BTreeMap<String, String>> {
        let record = serde_json::to_string(self).map_err(|error| {
            Error::new(ErrorKind::Internal, "write a sandbox's record").with_source(error)
        })?;
        let pairs = [
            (OWNER, owner.to_owned()),
            (ID, self.id.to_string()),
            (SANDBOX_NAME, self.name.to_string()),
            (RECORD, record),
        ];
        Ok(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Reads the record in metadata; `None`: this owner has made none.
    pub fn read(owner: &str, metadata: &BTreeMap<String, String>) -> Option<Self> {
        if metadata.get(OWNER).map(String::as_str) != Some(owner) {
            return None;
        }
        serde_json::from_str(metadata.get(RECORD)?).ok()
    }

    /// Returns whether this is the sandbox of an id or a name.
    pub fn is(&self, key: &str) -> bool {
        self.id.as_str() == key || self.name.as_str() == key
    }

    /// Returns the query for the sandbox of an id or a name.
    pub fn query<'a>(owner: &'a str, key: &'a str) -> [(&'a str, &'a str); 2] {
        let by = if SandboxId::parse(key).is_ok() { ID } else { SANDBOX_NAME };
        [(OWNER, owner), (by, key)]
    }

    /// Puts the values back that E2B keeps.
    pub fn with_variables(mut self, values: &BTreeMap<String, String>) -> Self {
        let of = |names: &BTreeSet<String>| -> BTreeMap<String, String> {
            names.iter().filter_map(|name| Some((name.clone(), values.get(name)?.clone()))).collect()
        };
        self.spec.env = of(&self.variables);
        self.spec.manifest.env = of(&self.manifest_variables);
        self
    }

    /// Returns the facts about the sandbox.
    pub(super) fn info(&self, state: State) -> SandboxInfo {
        let status = if state == State::Paused { SandboxStatus::Sleeping } else { SandboxStatus::Running };
        SandboxInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            pool: None,
            provider: NAME.to_owned(),
            status,
            workdir: self.spec.workdir.clone().unwrap_or_else(eyot::SandboxPath::root),
            created_ms: self.created_ms,
            spec: self.spec.clone(),
            isolation: isolation(&self.spec),
            life: String::new(),
        }
    }
}

/// Returns what E2B promises of a sandbox: a virtual machine. Its limits are the template's.
pub(super) fn isolation(spec: &SandboxSpec) -> Isolation {
    let network = match spec.network {
        eyot::NetworkMode::None => eyot::NetworkMode::None,
        _ => eyot::NetworkMode::Bridge,
    };
    Isolation { shares_host_kernel: false, network, ..Isolation::none(NAME) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_have_the_names_of_variables_and_not_their_values() {
        let text = r#"{"name":"a","env":{"TOKEN":"secret-1"},"manifest":{"env":{"KEY":"secret-2"}}}"#;
        let spec: SandboxSpec = serde_json::from_str(text).unwrap();
        let record = SandboxNote::new(&spec.validate().unwrap(), 7);
        let metadata = record.metadata("me").unwrap();
        assert!(!format!("{metadata:?} {record:?}").contains("secret-"));
        assert_eq!(SandboxNote::read("somebody", &metadata), None);
        let read = SandboxNote::read("me", &metadata).unwrap();
        assert_eq!(read, record);
        let values = [("TOKEN", "secret-1"), ("KEY", "secret-2"), ("OTHER", "x")];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let whole = read.with_variables(&values).spec;
        assert_eq!(whole.env, BTreeMap::from([("TOKEN".to_owned(), "secret-1".to_owned())]));
        assert_eq!(whole.manifest.env, BTreeMap::from([("KEY".to_owned(), "secret-2".to_owned())]));
    }
}
