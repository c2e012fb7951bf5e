//! A state folder of the test's own, and pools over it.

use std::path::Path;
use std::sync::Arc;

use eyot::{ExecOptions, Sandbox, SandboxName};
use eyot_engine::{PoolOptions, SandboxPool};
use eyot_native::{NativeOptions, NativeProvider};
use libtest_mimic::Failed;

/// A state folder.
pub struct Session {
    folder: tempfile::TempDir,
}

impl Session {
    pub fn new() -> Result<Self, Failed> {
        Ok(Self { folder: tempfile::tempdir()? })
    }

    /// Keeps the state on a disk, wherever temporary folders are.
    pub fn on_disk() -> Result<Self, Failed> {
        Ok(Self { folder: tempfile::tempdir_in("/var/tmp")? })
    }

    /// Returns the folder that holds `sandboxes/` and the others.
    pub fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    /// Opens a provider, as another process would.
    pub fn provider(&self) -> Result<Arc<NativeProvider>, Failed> {
        let provider =
            NativeProvider::new(NativeOptions { state: self.state(), ..NativeOptions::default() })?;
        provider.make_state_folder()?;
        Ok(provider)
    }

    /// Opens the pool of this name.
    pub fn pool(&self, name: &str) -> Result<SandboxPool, Failed> {
        self.pool_with(PoolOptions { name: SandboxName::parse(name)?, ..PoolOptions::default() })
    }

    pub fn pool_with(&self, options: PoolOptions) -> Result<SandboxPool, Failed> {
        Ok(SandboxPool::open(self.provider()?, options)?)
    }

    /// Counts the sandboxes in the folder, of all pools.
    pub fn count(&self) -> Result<usize, Failed> {
        Ok(std::fs::read_dir(Path::new(&self.state()).join("sandboxes"))?.count())
    }
}

/// Runs a shell line that must succeed, and returns its output.
pub async fn output(sandbox: &Sandbox, line: &str) -> Result<String, Failed> {
    let result = sandbox.exec(line, ExecOptions::default()).await?;
    if result.success() {
        Ok(result.stdout_text().trim_end().to_owned())
    } else {
        Err(format!("`{line}`: {:?}, {}", result.outcome, result.stderr_text()).into())
    }
}
