//! The record of a sandbox, in Daytona's labels. Everybody in the organization reads these, so they have no values of
//! variables: Daytona keeps those as the sandbox' own variables.

use std::collections::BTreeMap;

use eyot::{
    Capabilities, Capability, Isolation, NetworkMode, Result, SandboxId, SandboxInfo, SandboxSpec, UserCounts,
};
use eyot_guest::client::GUEST_CAPABILITIES;
use eyot_guest::protocol::Protections;

use super::NAME;
use super::facts::{DaytonaFacts, DaytonaPhase};
use crate::e2b::record::SandboxNote;

/// The label of one create, by which what a create without an answer has made is found.
const CREATE: &str = "eyot_create";

/// A sandbox that was found, and is ours.
#[derive(Debug, Clone)]
pub(super) struct FoundDaytonaSandbox {
    pub note: SandboxNote,
    pub facts: DaytonaFacts,
    pub is_adopted: bool,
}

/// Returns the labels of a new sandbox.
pub(super) fn labels(note: &SandboxNote, owner: &str, create: &str) -> Result<BTreeMap<String, String>> {
    let mut labels = note.metadata(owner)?;
    labels.insert(CREATE.to_owned(), create.to_owned());
    Ok(labels)
}

/// Returns the query for what a create has made.
pub(super) fn create_query(create: &str) -> [(&str, &str); 1] {
    [(CREATE, create)]
}

/// Tells whether a create has made a sandbox.
pub(super) fn is_of_create(facts: &DaytonaFacts, create: &str) -> bool {
    facts.labels.get(CREATE).is_some_and(|label| label == create)
}

impl FoundDaytonaSandbox {
    /// Returns the place among sandboxes of one name or id: of the times of their creates, which are the vendor's.
    pub fn place(&self) -> (Option<&str>, &str) {
        (self.facts.created_at.as_deref(), &self.facts.id)
    }

    /// Returns what puts sandboxes in the order of their creates.
    pub fn age(&self) -> (i64, SandboxId) {
        (self.note.created_ms, self.note.id.clone())
    }

    /// Describes it with what the vendor promises.
    pub fn info(&self) -> SandboxInfo {
        SandboxInfo {
            id: self.note.id.clone(),
            name: self.note.name.clone(),
            pool: None,
            provider: NAME.to_owned(),
            status: self.facts.phase().status(),
            workdir: self.note.spec.workdir.clone().unwrap_or_else(eyot::SandboxPath::root),
            created_ms: self.note.created_ms,
            spec: self.note.spec.clone(),
            isolation: isolation(&self.note.spec),
            life: String::new(),
        }
    }

    pub fn is_stopped(&self) -> bool {
        matches!(self.facts.phase(), DaytonaPhase::Stopped | DaytonaPhase::Stopping)
    }
}

/// Returns what every sandbox can do: what the guest can, but for deadlines, since a sandbox goes on when its guest has ended,
/// and sleep.
pub fn capabilities() -> Capabilities {
    let of_guest = GUEST_CAPABILITIES.into_iter().filter(|one| *one != Capability::Deadlines);
    Capabilities::new(of_guest.chain([Capability::Sleep]))
}

/// Returns what Daytona promises of a sandbox. What its limits are and whether it has a kernel of its own is the snapshot's.
pub(super) fn isolation(spec: &SandboxSpec) -> Isolation {
    let network = if spec.network == NetworkMode::None { NetworkMode::None } else { NetworkMode::Bridge };
    Isolation {
        network,
        // Commands are of the guest's own user.
        guest_out_of_reach: false,
        user_counts: Some(UserCounts::Shared),
        ..Isolation::none(NAME)
    }
}

/// Adds what the guest found in force.
pub(super) fn found(promised: Isolation, protections: &Protections) -> Isolation {
    Isolation {
        no_new_privileges: protections.no_new_privileges,
        seccomp: protections.seccomp,
        readonly_rootfs: protections.readonly_rootfs,
        ..promised
    }
}
