//! One sandbox: a folder whose sub-folder `root` is the sandbox's `/`.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use eyot::{
    ByteRange, ByteStream, CancellationToken, Capabilities, ConfinedPath, CreateDirOptions, DirEntry, Error,
    ErrorKind, ExecRequest, Execution, FileStat, Isolation, RemoveOptions, Result, SandboxDriver,
    SandboxInfo, SandboxPath, WriteOptions,
};
use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use crate::{NAME, Sandboxes, files, run};

pub(crate) struct FolderDriver {
    info: SandboxInfo,
    capabilities: Capabilities,
    /// Removed when it is dropped, as after a create that was given up.
    folder: TempDir,
    /// Held while a file is put into its place, so that two appends never mix.
    writing: Mutex<()>,
    /// Cancelled when the sandbox is destroyed, for every handle on it.
    gone: CancellationToken,
    /// The commands that run, each until all that it started in its process group is dead.
    commands: TaskTracker,
    sandboxes: Weak<Sandboxes>,
}

impl FolderDriver {
    pub(crate) async fn make(
        info: SandboxInfo,
        capabilities: Capabilities,
        sandboxes: &Arc<Sandboxes>,
    ) -> Result<Arc<Self>> {
        let workdir = info.workdir.clone();
        let folder = files::blocking(move || {
            let folder = tempfile::Builder::new().prefix("eyot-folder-").tempdir()?;
            std::fs::create_dir(folder.path().join("drafts"))?;
            for directory in [workdir.as_str(), "/home/user", "/tmp"] {
                std::fs::create_dir_all(folder.path().join("root").join(&directory[1..]))?;
            }
            Ok(folder)
        });
        // The sentence of an error has no path of the host in it. Its source may.
        let folder = folder.await.map_err(|error| {
            Error::new(ErrorKind::Setup, "create sandbox: its folder could not be made").with_source(error)
        })?;
        Ok(Arc::new(Self {
            info,
            capabilities,
            folder,
            writing: Mutex::default(),
            gone: CancellationToken::new(),
            commands: TaskTracker::new(),
            sandboxes: Arc::downgrade(sandboxes),
        }))
    }

    pub(crate) fn info(&self) -> &SandboxInfo {
        &self.info
    }

    pub(crate) fn check_alive(&self) -> Result<()> {
        if self.gone.is_cancelled() { Err(Error::destroyed(&self.info.name)) } else { Ok(()) }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// The host's path of a place in the sandbox, once every call has been refused that must be.
    fn host_path(&self, place: &ConfinedPath) -> Result<PathBuf> {
        self.check_alive()?;
        // The handle never asks for this without `Capability::Beneath`. If it did, no path may be let through unchecked.
        if place.beneath.is_some() {
            return Err(eyot::SandboxOperationUnsupported::new("beneath", NAME, &[]).into());
        }
        Ok(self.root().join(&place.path.as_str()[1..]))
    }

    /// Does something with the host's files. What fails because the folder is being removed is `destroyed`.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let done = files::blocking(work).await;
        if done.is_err() {
            self.check_alive()?;
        }
        done.map_err(Error::file)
    }
}

#[async_trait]
impl SandboxDriver for FolderDriver {
    fn provider(&self) -> &str {
        NAME
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn isolation(&self) -> &Isolation {
        &self.info.isolation
    }

    fn workdir(&self) -> &SandboxPath {
        &self.info.workdir
    }

    async fn read(&self, file: &ConfinedPath, range: ByteRange) -> Result<ByteStream> {
        let path = self.host_path(file)?;
        let opened = self.on_disk(move || files::open(&path, range.offset)).await?;
        Ok(files::stream(opened, range.limit))
    }

    async fn write(&self, file: &ConfinedPath, content: ByteStream, options: WriteOptions) -> Result<u64> {
        let path = self.host_path(file)?;
        let directory = path.parent().map(PathBuf::from).unwrap_or_default();
        // Before the content is taken: the handle then makes the directory and writes once more.
        self.on_disk(move || files::require_directory(&directory)).await?;
        let draft = files::draft(self.folder.path().join("drafts"), content, options.max_file_bytes).await?;
        let _turn = self.writing.lock().await;
        let placed = files::blocking(move || Ok(files::place(draft, &path, options))).await;
        self.check_alive()?;
        placed.map_err(Error::file)?
    }

    async fn stat(&self, file: &ConfinedPath) -> Result<FileStat> {
        let path = self.host_path(file)?;
        self.on_disk(move || files::stat(&path)).await
    }

    async fn list(&self, directory: &ConfinedPath) -> Result<Vec<DirEntry>> {
        let path = self.host_path(directory)?;
        self.on_disk(move || files::list(&path)).await
    }

    async fn exists(&self, file: &ConfinedPath) -> Result<bool> {
        let path = self.host_path(file)?;
        self.on_disk(move || files::exists(&path)).await
    }

    async fn create_dir(&self, directory: &ConfinedPath, options: CreateDirOptions) -> Result<()> {
        let path = self.host_path(directory)?;
        self.on_disk(move || files::create_dir(&path, options)).await
    }

    async fn remove(&self, file: &ConfinedPath, options: RemoveOptions) -> Result<()> {
        let path = self.host_path(file)?;
        if file.path.is_root() {
            return Err(Error::new(ErrorKind::Invalid, "the root directory can't be removed"));
        }
        self.on_disk(move || files::remove(&path, options)).await
    }

    async fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> Result<()> {
        let (from, to) = (self.host_path(from)?, self.host_path(to)?);
        self.on_disk(move || std::fs::rename(from, to)).await
    }

    async fn exec(&self, request: ExecRequest) -> Result<Execution> {
        let cwd = self.host_path(&request.cwd)?;
        let look = cwd.clone();
        self.on_disk(move || files::require_directory(&look)).await?;
        run::start(request, &cwd, &self.root(), &self.commands, &self.gone)
    }

    async fn destroy(&self) -> Result<()> {
        // Every step may be done again, so a destroy that is dropped halfway can be repeated.
        self.gone.cancel();
        self.commands.close();
        self.commands.wait().await;
        let (folder, _turn) = (self.folder.path().to_owned(), self.writing.lock().await);
        let removed = files::blocking(move || files::remove_tree(&folder)).await;
        removed.map_err(|error| Error::file(error).context("remove its folder"))?;
        if let Some(sandboxes) = self.sandboxes.upgrade() {
            sandboxes.forget(&self.info.id);
        }
        Ok(())
    }
}
