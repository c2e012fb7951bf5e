//! The `SandboxDriver` of a sandbox in which everything is done by scripts.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    ByteRange, ByteStream, Capabilities, ConfinedPath, CreateDirOptions, DirEntry, ExecRequest, Execution,
    FileStat, Isolation, RemoveOptions, Result, SandboxDriver, SandboxPath, TarInOptions, WriteOptions,
};

use super::adopt::AdoptionNotes;
use super::files::FileScripts;
use super::{files, tar};

/// A vendor's sandbox in which scripts run.
#[async_trait]
pub(crate) trait ScriptedSandbox: FileScripts {
    /// Refuses once the sandbox was destroyed here.
    fn check(&self) -> Result<()>;

    /// Starts a command.
    async fn exec(self: Arc<Self>, request: ExecRequest) -> Result<Execution>;

    /// Returns the vendor's id.
    fn vendor_id(&self) -> &str;

    /// Has the vendor end it.
    async fn end(&self) -> Result<()>;

    /// Ends the calls on it that are under way, and refuses later ones.
    fn let_go(&self);
}

/// One sandbox.
pub(crate) struct ScriptedDriver<S> {
    pub sandbox: Arc<S>,
    pub capabilities: Capabilities,
    pub isolation: Isolation,
    pub workdir: SandboxPath,
    /// The note of an adopted sandbox, which is forgotten instead of being destroyed.
    pub adopted: Option<AdoptionNotes>,
}

#[async_trait]
impl<S: ScriptedSandbox> SandboxDriver for ScriptedDriver<S> {
    fn provider(&self) -> &str {
        self.sandbox.provider()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn workdir(&self) -> &SandboxPath {
        &self.workdir
    }

    fn is_connected(&self) -> bool {
        self.sandbox.check().is_ok()
    }

    async fn read(&self, file: &ConfinedPath, range: ByteRange) -> Result<ByteStream> {
        files::read(&self.sandbox, file, range).await
    }

    async fn write(&self, file: &ConfinedPath, content: ByteStream, options: WriteOptions) -> Result<u64> {
        files::write(&self.sandbox, file, content, options).await
    }

    async fn stat(&self, file: &ConfinedPath) -> Result<FileStat> {
        files::stat(&*self.sandbox, file).await
    }

    async fn list(&self, directory: &ConfinedPath) -> Result<Vec<DirEntry>> {
        files::list(&*self.sandbox, directory).await
    }

    async fn exists(&self, file: &ConfinedPath) -> Result<bool> {
        files::exists(&*self.sandbox, file).await
    }

    async fn create_dir(&self, directory: &ConfinedPath, options: CreateDirOptions) -> Result<()> {
        files::create_dir(&*self.sandbox, directory, options).await
    }

    async fn remove(&self, file: &ConfinedPath, options: RemoveOptions) -> Result<()> {
        files::remove(&*self.sandbox, file, options).await
    }

    async fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> Result<()> {
        files::rename(&*self.sandbox, from, to).await
    }

    async fn tar_out(&self, root: &ConfinedPath) -> Result<ByteStream> {
        tar::tar_out(&self.sandbox, root).await
    }

    async fn tar_in(&self, directory: &ConfinedPath, tar: ByteStream, options: TarInOptions) -> Result<u64> {
        tar::tar_in(&self.sandbox, directory, tar, options).await
    }

    async fn exec(&self, request: ExecRequest) -> Result<Execution> {
        Arc::clone(&self.sandbox).exec(request).await
    }

    async fn destroy(&self) -> Result<()> {
        match &self.adopted {
            Some(notes) => notes.forget(self.sandbox.vendor_id())?,
            None => self.sandbox.end().await?,
        }
        self.sandbox.let_go();
        Ok(())
    }
}
