//! **This provider isolates nothing. Do not give it to an agent.**
//!
//! A sandbox is a folder of the host, and its commands are plain processes of the host: they run as you, see every file
//! that you see, and reach every network that you reach. What a command leaves in the background outlives its sandbox.
//!
//! It is an example: the smallest provider that runs real commands and passes Eyot's conformance suite.
//! `docs/writing-a-provider.md` explains how to write your own.
#![forbid(unsafe_code)]

mod driver;
mod files;
mod run;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use eyot::{
    Capabilities, Capability, Created, Error, ErrorKind, Isolation, Result, SandboxDriver, SandboxId,
    SandboxInfo, SandboxProvider, ValidSpec,
};

use driver::FolderDriver;

/// The provider's name, as errors and `SandboxInfo` tell it.
const NAME: &str = "folder";

/// Makes sandboxes that are folders. They live as long as the provider.
pub struct FolderProvider {
    capabilities: Capabilities,
    sandboxes: Arc<Sandboxes>,
}

/// The sandboxes that exist, by id. An id begins with the time, so this is oldest first.
#[derive(Default)]
pub(crate) struct Sandboxes(Mutex<BTreeMap<SandboxId, Arc<FolderDriver>>>);

impl FolderProvider {
    /// A provider without sandboxes.
    pub fn new() -> Arc<Self> {
        // Everything else is refused by the handle before it reaches a driver.
        let capabilities = Capabilities::new([
            Capability::Argv,
            Capability::Append,
            Capability::AtomicWrite,
            Capability::RangedRead,
        ]);
        Arc::new(Self { capabilities, sandboxes: Arc::default() })
    }
}

impl Sandboxes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SandboxId, Arc<FolderDriver>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a sandbox, if neither its id nor its name is in use.
    fn add(&self, driver: &Arc<FolderDriver>) -> Result<()> {
        let (mut all, info) = (self.lock(), driver.info());
        if all.contains_key(&info.id) || all.values().any(|other| other.info().name == info.name) {
            let message = format!("create sandbox: the name `{}` or its id is in use", info.name);
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        all.insert(info.id.clone(), Arc::clone(driver));
        Ok(())
    }

    fn find(&self, id_or_name: &str) -> Result<Arc<FolderDriver>> {
        let all = self.lock();
        let is_it = |info: &SandboxInfo| info.id.as_str() == id_or_name || info.name.as_str() == id_or_name;
        let found = all.values().find(|driver| is_it(driver.info())).cloned();
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no sandbox `{id_or_name}`")))
    }

    pub(crate) fn forget(&self, id: &SandboxId) {
        self.lock().remove(id);
    }
}

#[async_trait]
impl SandboxProvider for FolderProvider {
    fn name(&self) -> &str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn isolation(&self) -> Result<Isolation> {
        Ok(Isolation::none(NAME))
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        // Limits, mounts, deadlines, other users: nothing here could keep them, so none is taken.
        spec.refuse_all_but(NAME, &[])?;
        let info = SandboxInfo::running(spec, Isolation::none(NAME));
        let driver = FolderDriver::make(info, self.capabilities.clone(), &self.sandboxes).await?;
        // Behind the only `await`: a create that is dropped there drops the folder, and no name is taken.
        self.sandboxes.add(&driver)?;
        Ok(created(driver))
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        let driver = self.sandboxes.find(id_or_name)?;
        driver.check_alive()?;
        Ok(created(driver))
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        let all = self.sandboxes.lock();
        Ok(all
            .values()
            .filter(|driver| driver.check_alive().is_ok())
            .map(|driver| driver.info().clone())
            .collect())
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        self.sandboxes.find(id_or_name)?.destroy().await
    }
}

fn created(driver: Arc<FolderDriver>) -> Created {
    Created { info: driver.info().clone(), driver, keeper: None }
}
