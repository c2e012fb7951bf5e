//! The place where cases are tested: a folder inside the state folder, and so on the file system of
//! the sandboxes, with state folders of its own. Nothing of it remains.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use eyot::conformance::{Fixture, ReusedSandboxes};
use eyot::{Error, ErrorKind, Lifecycle, Result, Sandbox, SandboxProvider, SandboxSpec};
use eyot_archive::remove_tree;
use eyot_probes::World;
use eyot_providers::row::ProviderTests;
use tempfile::TempDir;

use crate::provider::{Makes, ProviderSettings};

/// The folder and the provider of the tests.
pub struct VerifyGround {
    world: Option<Arc<World>>,
    provider: Arc<dyn SandboxProvider>,
    spec: SandboxSpec,
    tests: ProviderTests,
    reused: Option<ReusedSandboxes>,
    folder: TempDir,
}

impl VerifyGround {
    /// Prepares the folder, and creates a first sandbox: if that fails there is nothing to verify.
    /// `image` is the image of sandboxes where the threats are not tried.
    ///
    /// # Errors
    /// The reason why no sandbox can be created, in the words of every command.
    pub async fn prepare(settings: &ProviderSettings, state: PathBuf, image: Option<&str>) -> Result<Self> {
        let row = settings.row;
        let folder = folder(settings, &state)?;
        let provider = settings.at(folder.path().join("state")).open(Makes::Many)?;
        let mut spec = (row.tests.spec)();
        if let (Some(image), false) = (image, row.tries_threats) {
            spec.image = Some(image.to_owned());
        }
        let lifecycle = Lifecycle { ttl_ms: Some(60_000), ..spec.lifecycle.clone() };
        Sandbox::create(&*provider, SandboxSpec { lifecycle, ..spec.clone() }).await?.destroy().await?;
        let world = if row.tries_threats { Some(Arc::new(World::new(folder.path())?)) } else { None };
        let reused = row.tests.reuses_sandboxes.then(ReusedSandboxes::default);
        Ok(Self { world, provider, spec, tests: row.tests, reused, folder })
    }

    /// Returns the scene of the threats, where they are tried.
    pub fn world(&self) -> Option<Arc<World>> {
        self.world.clone()
    }

    /// Destroys the sandboxes that waited for a further case.
    pub async fn settle(&self) -> Result<()> {
        match &self.reused {
            Some(reused) => reused.destroy().await,
            None => Ok(()),
        }
    }

    /// Destroys what failed and stopped cases have left, and the folder.
    pub async fn clear(&self) -> Result<()> {
        if let Some(world) = &self.world {
            world.clear().await?;
        }
        for info in self.provider.list().await? {
            match self.provider.remove(info.id.as_str()).await {
                Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        // What snapshots keep may be closed to its owner.
        remove_tree(self.folder.path()).map_err(|error| {
            Error::new(ErrorKind::Internal, "remove the folder that was verified in: failed")
                .with_source(error)
        })
    }
}

impl Fixture for VerifyGround {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        Arc::clone(&self.provider)
    }

    fn spec(&self) -> SandboxSpec {
        self.spec.clone()
    }

    fn rounds(&self) -> usize {
        self.tests.rounds
    }

    fn exceptions(&self) -> &'static [(&'static str, &'static str)] {
        self.tests.exceptions
    }

    fn reused(&self) -> Option<&ReusedSandboxes> {
        self.reused.as_ref()
    }
}

/// Makes the folder: in the state folder where sandboxes keep their files there. A state folder that
/// they can't live in is refused.
fn folder(settings: &ProviderSettings, state: &Path) -> Result<TempDir> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Setup, "prepare a folder to verify in: failed").with_source(error)
    };
    (settings.row.make_state_folder)(settings)?;
    let mut named = tempfile::Builder::new();
    named.prefix("verify-");
    let made =
        if settings.row.keeps_files_in_state_folder { named.tempdir_in(state) } else { named.tempdir() };
    made.map_err(failed)
}
