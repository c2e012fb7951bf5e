//! Anvia's view over a sandbox: programs with arguments instead of shell lines, relative paths only, a default deadline.
//!
//! A path is refused lexically when it is absolute or leaves the workspace, and the guest holds it beneath the workspace
//! once every symbolic link is followed: a link to `/etc` is refused with `permission`. (A program that runs inside may
//! of course follow it.) Where a provider cannot hold paths, every call that takes one is `unsupported`.

mod exec;
mod files;
mod page;
mod processes;
mod text;

use crate::capabilities::Capability;
use crate::error::Result;
use crate::path::{ConfinedPath, SandboxPath, WorkspacePath};
use crate::sandbox::Sandbox;

pub use exec::{
    DEFAULT_TIMEOUT_MS, OutputCallback, WorkspaceExec, WorkspaceExecEvent, WorkspaceExecResult,
    WorkspaceExecStream,
};
pub use files::WorkspaceEntry;
pub use page::{PageOptions, TextPage, TruncatedBy};
pub use processes::WorkspaceStart;

/// A sandbox's working directory, and commands in it. Made by [`Sandbox::workspace`]; clones and the sandbox itself are
/// the same world.
#[derive(Debug, Clone)]
#[doc(alias = "SandboxSession")]
pub struct Workspace {
    sandbox: Sandbox,
}

impl Sandbox {
    /// Anvia's view over the same sandbox: relative paths only, held beneath the working directory.
    pub fn workspace(&self) -> Workspace {
        Workspace::new(self.clone())
    }
}

impl Workspace {
    pub(crate) fn new(sandbox: Sandbox) -> Self {
        Self { sandbox }
    }

    /// The sandbox's id.
    pub fn id(&self) -> &str {
        self.sandbox.id().as_str()
    }

    /// The provider's name.
    pub fn provider(&self) -> &str {
        &self.sandbox.info().provider
    }

    /// The working directory, absolute.
    pub fn workdir(&self) -> &SandboxPath {
        self.sandbox.cwd()
    }

    /// The sandbox that this is a view of.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Destroys the sandbox. Twice is fine.
    pub async fn destroy(&self) -> Result<()> {
        self.sandbox.destroy().await
    }

    /// A path that names something inside, and where that is. Whether the sandbox lives comes first.
    fn place(&self, operation: &str, path: &str) -> Result<(WorkspacePath, ConfinedPath)> {
        self.sandbox.check_alive()?;
        self.confine(operation, WorkspacePath::parse(path)?)
    }

    /// The same for a path that may be the workspace itself.
    fn directory(&self, operation: &str, path: &str) -> Result<(WorkspacePath, ConfinedPath)> {
        self.sandbox.check_alive()?;
        self.confine(operation, WorkspacePath::parse_directory(path)?)
    }

    fn confine(&self, operation: &str, path: WorkspacePath) -> Result<(WorkspacePath, ConfinedPath)> {
        self.sandbox.require(Capability::Beneath, operation, &["beneath"])?;
        let place = path.place(self.workdir())?;
        Ok((path, place))
    }
}
