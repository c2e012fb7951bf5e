//! The record of a sandbox, kept in an annotation of its Pod.

use eyot::{
    Error, ErrorKind, Isolation, Manifest, Result, SandboxId, SandboxInfo, SandboxName, SandboxPath,
    SandboxSpec, ValidSpec,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::pod_state::PodState;

/// The label with the id of whoever holds the key.
pub(super) const OWNER: &str = "eyot.dev/owner";
/// The label with the sandbox's id.
pub(super) const ID: &str = "eyot.dev/id";
/// The label with the network that the sandbox may reach, for policies.
pub(super) const NETWORK: &str = "eyot.dev/network";
/// The annotation with the record.
pub(super) const RECORD: &str = "eyot.dev/record";
/// The annotation that tells an object from another of the same name.
pub(super) const MAKING: &str = "eyot.dev/making";
/// The most bytes of a record: a server takes 256 KiB of annotations.
const MAX_BYTES: usize = 200 << 10;

/// The data that a later process needs to use a sandbox. The files of the manifest are left out: they
/// are in the sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PodRecord {
    pub id: SandboxId,
    pub name: SandboxName,
    pub created_ms: i64,
    pub spec: SandboxSpec,
}

impl PodRecord {
    /// Makes the record of a sandbox that is to be made.
    pub(super) fn new(spec: &ValidSpec, created_ms: i64) -> Self {
        let manifest = Manifest { env: spec.spec().manifest.env.clone(), ..Manifest::default() };
        let (id, name) = (spec.id().clone(), spec.name().clone());
        Self { id, name, created_ms, spec: SandboxSpec { manifest, ..spec.spec().clone() } }
    }

    /// Returns the text of the annotation.
    pub(super) fn text(&self) -> Result<String> {
        let text = serde_json::to_string(self).map_err(|error| {
            Error::new(ErrorKind::Internal, "write the sandbox's record").with_source(error)
        })?;
        if text.len() > MAX_BYTES {
            let message = format!(
                "create sandbox: its variables, labels and metadata are larger than {} KiB",
                MAX_BYTES >> 10
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        Ok(text)
    }

    /// Reads the record of a Pod. A Pod whose name is not that of its record has none.
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        let record: Self = serde_json::from_str(pod.annotations().get(RECORD)?).ok()?;
        (pod.name_any() == record.pod_name()).then_some(record)
    }

    /// Returns the name of the sandbox's Pod. The server keeps it unique, and so the id.
    pub(super) fn pod_name(&self) -> String {
        pod_name(&self.id)
    }

    /// Returns the working directory.
    pub(super) fn workdir(&self) -> SandboxPath {
        // A record is made from a checked spec, in which it is filled in.
        self.spec.workdir.clone().unwrap_or_else(SandboxPath::root)
    }

    /// Describes the sandbox without asking it.
    pub(super) fn info(&self, state: &PodState, pod_uid: String, isolation: Isolation) -> SandboxInfo {
        SandboxInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            pool: None,
            provider: super::NAME.to_owned(),
            status: state.status(),
            workdir: self.workdir(),
            created_ms: self.created_ms,
            spec: self.spec.clone(),
            isolation,
            life: pod_uid,
        }
    }
}

/// Returns the name of the Pod of a sandbox with this id.
pub(super) fn pod_name(id: &SandboxId) -> String {
    named(&["pod", id.as_str()])
}

/// Returns the name of the Lease that reserves a name for an owner.
pub(super) fn lease_name(owner: &str, name: &SandboxName) -> String {
    named(&["name", owner, name.as_str()])
}

/// Returns a name that every kind of object may have.
fn named(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    format!("eyot-{}", hex::encode(&digest.finalize()[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_owner_has_names_of_its_own_and_a_name_is_one_that_a_server_takes() {
        let name = SandboxName::parse("dev").unwrap();
        assert_ne!(lease_name("a", &name), lease_name("b", &name));
        assert_eq!(lease_name("a", &name), lease_name("a", &name));
        assert!(lease_name("a", &name).len() < 63);
    }

    #[test]
    fn a_record_that_a_server_would_not_take_is_refused_before() {
        let mut spec = SandboxSpec::default();
        let value = "x".repeat(100 << 10);
        spec.env = ["A", "B", "C"].map(|name| (name.to_owned(), value.clone())).into();
        let record = PodRecord::new(&spec.validate().unwrap(), 1);
        assert_eq!(record.text().unwrap_err().kind(), ErrorKind::TooLarge);
    }
}
