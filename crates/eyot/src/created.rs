//! Sandboxes as providers hand them out: the facts, the driver, and who has more to do at their end.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::driver::SandboxDriver;
use crate::error::Result;
use crate::isolation::Isolation;
use crate::now::now_ms;
use crate::path::SandboxPath;
use crate::spec::{SandboxId, SandboxName, SandboxSpec, ValidSpec};

/// The status of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SandboxStatus {
    /// It is being made.
    Creating,
    /// It answers.
    Running,
    /// The processes were stopped; its files and its env are kept, and it can be woken.
    Sleeping,
    /// The guest ended unexpectedly: it was killed from outside, or the host was restarted. Its
    /// files are kept, and it can be woken.
    Dead,
    /// The kept state can't be read, after a power loss, say. It can only be removed.
    Damaged,
}

/// The facts about a sandbox that are known without asking it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxInfo {
    /// The id.
    pub id: SandboxId,
    /// The name.
    pub name: SandboxName,
    /// The pool whose sandbox it is, with that name. None where it was asked of a provider that knows
    /// no pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<SandboxName>,
    /// The provider.
    pub provider: String,
    /// The status.
    pub status: SandboxStatus,
    /// The working directory.
    pub workdir: SandboxPath,
    /// The time at which it was made, in milliseconds since 1970 (UTC).
    pub created_ms: i64,
    /// The spec it was made from, with every default filled in; secrets in `env` and manifest file
    /// contents included.
    pub spec: SandboxSpec,
    /// The protections around it.
    pub isolation: Isolation,
    /// The life of the sandbox: another text after every wake, to be compared only. Empty where the
    /// provider does not know.
    #[serde(default)]
    pub life: String,
}

impl SandboxInfo {
    /// The facts about a sandbox that was just made from a spec: it runs, and everything else is as the spec says. A
    /// provider whose sandboxes sleep also sets `life`.
    pub fn running(spec: &ValidSpec, isolation: Isolation) -> Self {
        Self {
            id: spec.id().clone(),
            name: spec.name().clone(),
            pool: None,
            provider: isolation.provider.clone(),
            status: SandboxStatus::Running,
            workdir: spec.workdir().clone(),
            created_ms: now_ms(),
            spec: spec.spec().clone(),
            isolation,
            life: String::new(),
        }
    }
}

/// A sandbox that a provider made or found.
pub struct Created {
    /// The facts about it.
    pub info: SandboxInfo,
    /// The driver.
    pub driver: Arc<dyn SandboxDriver>,
    /// The keeper that destroys it, if that is not the driver.
    pub keeper: Option<Arc<dyn SandboxKeeper>>,
}

/// A party that has more to do at the end of a sandbox than its driver: the pool that holds its
/// name.
#[async_trait]
pub trait SandboxKeeper: Send + Sync + 'static {
    /// Destroys the sandbox, as [`SandboxDriver::destroy`].
    async fn destroy(&self) -> Result<()>;

    /// Undoes its create, as [`SandboxDriver::abandon`].
    async fn abandon(&self) -> Result<()>;
}
