//! A sandbox of E2B as a `SandboxDriver`.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{
    ByteRange, ByteStream, Capabilities, ConfinedPath, CreateDirOptions, DirEntry, ExecRequest, Execution,
    FileStat, Isolation, RemoveOptions, Result, SandboxDriver, SandboxPath, TarInOptions, WriteOptions,
};

use super::adopt::AdoptionNotes;
use super::link::Link;
use super::{NAME, exec, files, tar};

/// One sandbox.
pub(super) struct E2bDriver {
    pub link: Arc<Link>,
    pub capabilities: Capabilities,
    pub isolation: Isolation,
    pub workdir: SandboxPath,
    /// The note of an adopted sandbox, which is forgotten instead of being destroyed.
    pub adopted: Option<AdoptionNotes>,
}

#[async_trait]
impl SandboxDriver for E2bDriver {
    fn provider(&self) -> &str {
        NAME
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
        self.link.check().is_ok()
    }

    async fn read(&self, file: &ConfinedPath, range: ByteRange) -> Result<ByteStream> {
        files::read(&self.link, file, range).await
    }

    async fn write(&self, file: &ConfinedPath, content: ByteStream, options: WriteOptions) -> Result<u64> {
        files::write(&self.link, file, content, options).await
    }

    async fn stat(&self, file: &ConfinedPath) -> Result<FileStat> {
        files::stat(&self.link, file).await
    }

    async fn list(&self, directory: &ConfinedPath) -> Result<Vec<DirEntry>> {
        files::list(&self.link, directory).await
    }

    async fn exists(&self, file: &ConfinedPath) -> Result<bool> {
        files::exists(&self.link, file).await
    }

    async fn create_dir(&self, directory: &ConfinedPath, options: CreateDirOptions) -> Result<()> {
        files::create_dir(&self.link, directory, options).await
    }

    async fn remove(&self, file: &ConfinedPath, options: RemoveOptions) -> Result<()> {
        files::remove(&self.link, file, options).await
    }

    async fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> Result<()> {
        files::rename(&self.link, from, to).await
    }

    async fn tar_out(&self, root: &ConfinedPath) -> Result<ByteStream> {
        tar::tar_out(&self.link, root).await
    }

    async fn tar_in(&self, directory: &ConfinedPath, tar: ByteStream, options: TarInOptions) -> Result<u64> {
        tar::tar_in(&self.link, directory, tar, options).await
    }

    async fn exec(&self, request: ExecRequest) -> Result<Execution> {
        exec::exec(&self.link, request).await
    }

    async fn destroy(&self) -> Result<()> {
        match &self.adopted {
            Some(notes) => notes.forget(&self.link.id)?,
            None => self.link.client.kill(&self.link.id).await?,
        }
        self.link.destroyed.cancel();
        Ok(())
    }
}
