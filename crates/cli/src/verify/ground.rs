//! The place where cases are tested: a folder inside the state folder, and so on the file system of
//! the sandboxes, with state folders of its own. Nothing of it remains.

use std::path::PathBuf;
use std::sync::Arc;

use eyot::conformance::Fixture;
use eyot::{Error, ErrorKind, Lifecycle, Result, Sandbox, SandboxProvider, SandboxSpec};
use eyot_probes::World;
use tempfile::TempDir;

use crate::provider::{Makes, ProviderSettings};

/// The folder and the provider of the tests.
pub struct VerifyGround {
    world: Arc<World>,
    provider: Arc<dyn SandboxProvider>,
    folder: TempDir,
}

impl VerifyGround {
    /// Prepares the folder, and creates a first sandbox: if that fails there is nothing to verify.
    ///
    /// # Errors
    /// The reason why no sandbox can be created, in the words of every command.
    pub async fn prepare(settings: &ProviderSettings, state: PathBuf) -> Result<Self> {
        // A folder that sandboxes can't live in is refused.
        (settings.row.make_state_folder)(settings)?;
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Setup, "prepare a folder to verify in: failed").with_source(error)
        };
        let folder = tempfile::Builder::new().prefix("verify-").tempdir_in(&state).map_err(failed)?;
        let provider = settings.at(folder.path().join("state")).open(Makes::Many)?;
        let lifecycle = Lifecycle { ttl_ms: Some(60_000), ..Lifecycle::default() };
        let spec = SandboxSpec { lifecycle, ..SandboxSpec::default() };
        Sandbox::create(&*provider, spec).await?.destroy().await?;
        let world = Arc::new(World::new(folder.path())?);
        Ok(Self { world, provider, folder })
    }

    /// Returns the scene of the threats.
    pub fn world(&self) -> Arc<World> {
        Arc::clone(&self.world)
    }

    /// Destroys what failed and stopped cases have left, and the folder.
    pub async fn clear(&self) -> Result<()> {
        self.world.clear().await?;
        for info in self.provider.list().await? {
            match self.provider.remove(info.id.as_str()).await {
                Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        std::fs::remove_dir_all(self.folder.path()).map_err(|error| {
            Error::new(ErrorKind::Internal, "remove the folder that was verified in: failed")
                .with_source(error)
        })
    }
}

impl Fixture for VerifyGround {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        Arc::clone(&self.provider)
    }
}
