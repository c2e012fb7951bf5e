//! A kind of backend: it makes sandboxes from specs, finds them again, and says what it can do.

use std::sync::Arc;

use async_trait::async_trait;

use crate::apply::SandboxCowMounts;
use crate::capabilities::Capabilities;
use crate::created::{Created, SandboxInfo};
use crate::error::{Error, ErrorKind, Result, SandboxOperationUnsupported};
use crate::images::{SandboxImages, SandboxNamer};
use crate::isolation::Isolation;
use crate::process::Usage;
use crate::provider_tools::ProviderTools;
use crate::snapshot::SandboxSnapshots;
use crate::spec::ValidSpec;

/// A kind of backend.
#[async_trait]
#[doc(alias = "SandboxFactory")]
pub trait SandboxProvider: Send + Sync + 'static {
    /// The name, such as `native`.
    fn name(&self) -> &str;

    /// Returns what its sandboxes can do.
    fn capabilities(&self) -> &Capabilities;

    /// Tells whether its sandboxes end with the process that made them. No other process finds them, and none takes
    /// their names while that process runs.
    fn lives_with_its_process(&self) -> bool {
        false
    }

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

    /// Returns the snapshots of its sandboxes. A provider that has them has [`crate::Capability::Snapshots`], and makes
    /// sandboxes from [`crate::SandboxSpec::snapshot`].
    fn snapshots(&self) -> Result<Arc<dyn SandboxSnapshots>> {
        Err(SandboxOperationUnsupported::new("snapshots", self.name(), &[]).into())
    }

    /// Returns the copies on write of folders of the host that its sandboxes have. A provider that has them has
    /// [`crate::Capability::CowMounts`].
    fn cow_mounts(&self) -> Result<Arc<dyn SandboxCowMounts>> {
        Err(SandboxOperationUnsupported::new("apply", self.name(), &[]).into())
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

    /// Returns the tools that a model is shown of its sandboxes, in place of the default list. None: the default list, the
    /// toolset `pool`.
    #[doc(alias = "SessionToolFactory")]
    fn tools(&self) -> Option<Arc<dyn ProviderTools>> {
        None
    }
}
