//! A kind of backend: it makes sandboxes from specs, finds them again, and says what it can do.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::capabilities::Capabilities;
use crate::driver::SandboxDriver;
use crate::error::{Error, ErrorKind, Result, SandboxOperationUnsupported};
use crate::images::{SandboxImages, SandboxNamer};
use crate::isolation::Isolation;
use crate::now::now_ms;
use crate::path::SandboxPath;
use crate::process::Usage;
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

/// A kind of backend.
#[async_trait]
#[doc(alias = "SandboxFactory")]
pub trait SandboxProvider: Send + Sync + 'static {
    /// The name, such as `native`.
    fn name(&self) -> &str;

    /// Returns what its sandboxes can do.
    fn capabilities(&self) -> &Capabilities;

    /// Reports the protections that would hold around a sandbox made here and now from a default
    /// spec.
    async fn isolation(&self) -> Result<Isolation>;

    /// Makes a sandbox, ready but for its manifest. An id or a name in use is `already_exists` and
    /// harms no sandbox; a failure halfway leaves nothing.
    async fn create(&self, spec: &ValidSpec) -> Result<Created>;

    /// Finds a running sandbox by id or name: `not_found`, or `destroyed` if it is known to have been; `unavailable` if
    /// it sleeps or is dead ([`crate::Error::is_sleeping`]); `conflict` if it is damaged.
    async fn open(&self, id_or_name: &str) -> Result<Created>;

    /// Every sandbox there is, oldest first.
    async fn list(&self) -> Result<Vec<SandboxInfo>>;

    /// Lists as [`SandboxProvider::list`] does, and adds what each running sandbox uses, as far as
    /// that is known without asking the sandbox: none is woken. What only the sandbox knows is
    /// missing; `None`: nothing is known.
    async fn list_with_usage(&self) -> Result<Vec<(SandboxInfo, Option<Usage>)>> {
        Ok(self.list().await?.into_iter().map(|info| (info, None)).collect())
    }

    /// Returns what is known of one sandbox, by id or name, as [`SandboxProvider::list`] does. The
    /// sandbox is not woken, and this does not count as activity. `not_found`, or `destroyed` if it
    /// is known to have been.
    async fn info(&self, id_or_name: &str) -> Result<SandboxInfo> {
        let is_it = |info: &SandboxInfo| info.id.as_str() == id_or_name || info.name.as_str() == id_or_name;
        let found = self.list().await?.into_iter().find(is_it);
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no sandbox `{id_or_name}`")))
    }

    /// Destroys a sandbox by id or name, whatever state it is in; `not_found` if there is none.
    async fn remove(&self, id_or_name: &str) -> Result<()>;

    // The methods below are optional; each is refused unless the provider has it.

    /// Returns the images that its sandboxes are made from, to list and change them. Errors name
    /// sandboxes as `names` does.
    fn images(&self, names: SandboxNamer) -> Result<Arc<dyn SandboxImages>> {
        drop(names);
        Err(SandboxOperationUnsupported::new("images", self.name(), &[]).into())
    }

    /// Puts a sandbox to sleep, by id or name: every process is stopped for good, every file that was written is kept
    /// (what lies in memory, such as `/dev/shm`, is not), and so is its env. One that sleeps already is fine. Commands
    /// that run end as when their sandbox is destroyed: their calls fail with the error of
    /// [`crate::Error::sleeping`], as do all later ones on handles that were made before.
    async fn sleep(&self, id_or_name: &str) -> Result<()> {
        let _: &str = id_or_name;
        Err(SandboxOperationUnsupported::new("sleep", self.name(), &[]).into())
    }

    /// Wakes a sandbox that sleeps or is dead, by id or name: the same id, name, files, env, limits, network and user ids, without
    /// a process. One that runs is opened. A wake that fails leaves it asleep.
    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        let _: &str = id_or_name;
        Err(SandboxOperationUnsupported::new("wake", self.name(), &[]).into())
    }

    /// Tells whether there is a persistent workspace of this id that its sandboxes may have. A
    /// provider without [`crate::Capability::PersistentWorkspace`] has none.
    async fn has_workspace(&self, id: &str) -> Result<bool> {
        let _: &str = id;
        Ok(false)
    }
}
