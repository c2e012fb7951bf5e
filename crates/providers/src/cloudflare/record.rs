//! The record of a sandbox.

use eyot::{
    Isolation, Manifest, SandboxId, SandboxInfo, SandboxName, SandboxPath, SandboxSpec, SandboxStatus,
    ValidSpec,
};
use serde::{Deserialize, Serialize};

use super::{NAME, isolation};
use crate::terminal_guest::GuestLife;

/// The directory in which the commands of an adopted sandbox start: the vendor's own.
const WORKDIR: &str = "/workspace";

/// The state of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BridgeState {
    /// It is being made.
    Making,
    /// It was made.
    Made,
    /// It is being removed.
    Ending,
}

/// The data that a later process needs to use a sandbox. The files of the manifest are left out: they are in the sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct BridgeRecord {
    pub id: SandboxId,
    pub name: SandboxName,
    pub created_ms: i64,
    pub spec: SandboxSpec,
    /// The bridge's id.
    pub bridge_id: String,
    pub is_adopted: bool,
    pub state: BridgeState,
    pub life: GuestLife,
}

impl BridgeRecord {
    /// Makes the record of a sandbox that is to be made.
    pub fn new(spec: &ValidSpec, bridge_id: String, created_ms: i64) -> Self {
        let manifest = Manifest { env: spec.spec().manifest.env.clone(), ..Manifest::default() };
        let workdir = Some(spec.workdir().clone());
        Self {
            id: spec.id().clone(),
            name: spec.name().clone(),
            created_ms,
            spec: SandboxSpec { manifest, workdir, ..spec.spec().clone() },
            bridge_id,
            is_adopted: false,
            state: BridgeState::Making,
            life: GuestLife::generate(),
        }
    }

    /// Makes the record of a sandbox that is to be adopted.
    pub fn adopting(bridge_id: &str, created_ms: i64) -> eyot::Result<Self> {
        let id = SandboxId::generate();
        let name = Some(id.default_name());
        let spec = SandboxSpec {
            id: Some(id),
            name,
            workdir: Some(SandboxPath::parse(WORKDIR)?),
            ..Default::default()
        };
        let record = Self::new(&spec.validate()?, bridge_id.to_owned(), created_ms);
        Ok(Self { is_adopted: true, ..record })
    }

    /// Returns whether this is the sandbox of an id or a name.
    pub fn is(&self, key: &str) -> bool {
        self.id.as_str() == key || self.name.as_str() == key
    }

    pub fn workdir(&self) -> SandboxPath {
        // A record is made from a checked spec, in which it is filled in.
        self.spec.workdir.clone().unwrap_or_else(SandboxPath::root)
    }

    /// Describes the sandbox without asking for it: the bridge would start a container for whoever asks.
    pub fn info(&self, isolation: Isolation) -> SandboxInfo {
        SandboxInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            pool: None,
            provider: NAME.to_owned(),
            status: SandboxStatus::Running,
            workdir: self.workdir(),
            created_ms: self.created_ms,
            spec: self.spec.clone(),
            isolation,
            life: self.life.key.clone(),
        }
    }

    /// Describes it with what the vendor promises.
    pub fn promised_info(&self) -> SandboxInfo {
        self.info(isolation::promised())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was_and_hides_its_secret() {
        let record = BridgeRecord::adopting("abc234", 7).unwrap();
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<BridgeRecord>(&text).unwrap(), record);
        assert!(format!("{record:?}").contains("secret: GuestSecret }"));
        assert!(record.is(record.id.as_str()) && record.is(record.name.as_str()) && !record.is("abc234"));
    }
}
