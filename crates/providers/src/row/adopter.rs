//! Sandboxes on a shared backend that this state folder does not know. They are left alone until an
//! operator adopts them.

use async_trait::async_trait;
use eyot::{Error, ErrorKind, Result, SandboxId, SandboxName};
use serde::Serialize;

/// Lists what is foreign on a backend, and adopts it.
#[async_trait]
pub trait SandboxAdopter: Send + Sync {
    /// Lists what looks like Eyot's but does not belong to this state folder. None of it is ever
    /// used or removed.
    async fn foreign(&self) -> Result<Vec<Foreign>>;

    /// Adopts something [`Foreign`], by the name of its sandbox or its own.
    async fn adopt(&self, named: &str) -> Result<Adopted>;
}

/// Something on a backend with Eyot's marks that this state folder does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Foreign {
    /// The kind: a container, or the volume of a persistent workspace.
    pub kind: ForeignKind,
    /// The name that the backend has for it. Somebody else chose it.
    pub name: String,
    /// The reason why it is foreign.
    pub why: &'static str,
}

impl Foreign {
    /// Returns a machine of a vendor that another program has made.
    pub(crate) fn machine(name: String) -> Self {
        Self { kind: ForeignKind::Machine, name, why: "another program has made it" }
    }
}

/// The kind of a [`Foreign`] thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForeignKind {
    /// A container.
    Container,
    /// The volume of a persistent workspace.
    Volume,
    /// A virtual machine.
    Machine,
}

impl ForeignKind {
    /// Returns the kind as a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Volume => "volume",
            Self::Machine => "machine",
        }
    }
}

/// The result of an adoption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Adopted {
    /// The kind of what was adopted.
    pub kind: ForeignKind,
    /// The name of the sandbox, or of the volume.
    pub name: String,
    /// The sandbox's id; `None` for a volume.
    pub id: Option<SandboxId>,
    /// The volume of the sandbox's persistent workspace, if it does not belong to this state
    /// folder. It stays when the sandbox ends, unless it is adopted too.
    pub foreign_volume: Option<String>,
    /// The variables that the sandbox was made with can't be read: another state folder has encrypted them.
    pub lacks_variables: bool,
}

impl Adopted {
    /// Returns a machine of a vendor that was adopted.
    pub(crate) fn machine(name: &SandboxName, id: SandboxId) -> Self {
        let kind = ForeignKind::Machine;
        Self { kind, name: name.to_string(), id: Some(id), foreign_volume: None, lacks_variables: false }
    }
}

/// Says of an adoption that failed because a vendor has no such sandbox what there is.
pub(crate) fn no_such_machine(error: Error, vendor: &str, provider: &str, named: &str) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    Error::new(ErrorKind::NotFound, format!("{vendor} has no sandbox `{named}`"))
        .with_hint(format!("`eyot --provider {provider} ls` shows what can be adopted, with its id"))
}
