//! The providers of the tasks: native over a state folder for these tests, and a Docker Engine,
//! both with the images that `cargo xtask engine` makes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use eyot::SandboxProvider;
use eyot_image::{ImportOptions, NoProgress};
use eyot_native::{NativeOptions, NativeProvider, image_store};
use eyot_providers::docker::{DockerOptions, DockerProvider};
use libtest_mimic::Failed;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Stands for `node:22`: Node 22 and npm in a layer over [`PYTHON`].
pub const NODE: &str = "eyot-test-node:22";
/// Stands for `python:3.12`: Debian's Python 3 with pip and pytest, a C compiler, git.
pub const PYTHON: &str = "eyot-test-python:3";
/// The variable with an archive of both images, as `docker save` writes it, for users who may not
/// ask an Engine.
const ARCHIVE: &str = "EYOT_TEST_IMAGES";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime for the tests")
});

/// Runs a future to its end.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    RUNTIME.block_on(work)
}

/// The providers that exist here. Clones are the same.
#[derive(Clone)]
pub struct Ground {
    /// An Engine with the images, or the reason why there is none.
    pub docker: Result<Arc<DockerProvider>, String>,
    /// The source of native's images, or the reason why there is none.
    images: Result<Source, String>,
    native: Arc<Mutex<Option<Native>>>,
}

#[derive(Clone)]
enum Source {
    Archive(PathBuf),
    Engine,
}

/// The native provider, and its folder, which is removed with the last test.
struct Native {
    provider: Arc<NativeProvider>,
    _state: TempDir,
}

impl Ground {
    /// Looks for providers; nothing is created yet.
    pub fn find() -> Self {
        let docker = block_on(engine());
        let images = match (std::env::var_os(ARCHIVE), &docker) {
            (Some(archive), _) => Ok(Source::Archive(archive.into())),
            (None, Ok(_)) => Ok(Source::Engine),
            (None, Err(reason)) => Err(format!("{reason}; and {ARCHIVE} names no archive of the images")),
        };
        Self { docker, images, native: Arc::default() }
    }

    /// Returns the reason why native has no images, if there is one.
    pub fn native_is_missing(&self) -> Option<String> {
        self.images.as_ref().err().cloned()
    }

    /// Returns the native provider with the images, which are imported at the first call.
    pub fn native(&self) -> Result<Arc<dyn SandboxProvider>, Failed> {
        let mut native = self.native.lock().unwrap_or_else(PoisonError::into_inner);
        if native.is_none() {
            *native = Some(Native::with_images(self.images.as_ref()?)?);
        }
        let made = native.as_ref().map(|native| Arc::clone(&native.provider));
        Ok(made.ok_or("the native provider is gone")?)
    }
}

/// Returns a folder that is kept between runs, so that sandboxes of a killed run are found again.
fn docker_state() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("docker-state")
}

async fn engine() -> Result<Arc<DockerProvider>, String> {
    let provider = DockerProvider::new(DockerOptions::node(docker_state()));
    for image in [NODE, PYTHON] {
        let missing = || format!("the Engine has no image `{image}`: cargo xtask engine");
        let found = provider.has_image(image).await;
        found
            .map_err(|error| format!("{error}; `cargo xtask engine` starts one"))?
            .then_some(())
            .ok_or_else(missing)?;
    }
    Ok(provider)
}

impl Native {
    fn with_images(source: &Source) -> Result<Self, Failed> {
        let folder = tempfile::Builder::new().prefix("eyot-tasks-").tempdir()?;
        let state = folder.path().join("state");
        match source {
            Source::Archive(archive) => import(&state, archive)?,
            Source::Engine => {
                let archive = folder.path().join("images.tar");
                save(&archive)?;
                import(&state, &archive)?;
                std::fs::remove_file(archive)?;
            }
        }
        let provider = NativeProvider::new(NativeOptions { state, ..NativeOptions::default() })?;
        Ok(Self { provider, _state: folder })
    }
}

fn save(archive: &Path) -> Result<(), Failed> {
    let output = Command::new("docker").args(["save", "-o"]).arg(archive).args([NODE, PYTHON]).output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("docker save: {}", String::from_utf8_lossy(&output.stderr)).into())
    }
}

fn import(state: &Path, archive: &Path) -> Result<(), Failed> {
    image_store(state).import(archive, &ImportOptions::default(), &NoProgress)?;
    Ok(())
}
