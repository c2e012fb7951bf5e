//! The Engine of the tests, and the images that `cargo xtask engine` makes for them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use eyot::SandboxSpec;
use eyot_providers::docker::{DockerOptions, DockerProvider};
use libtest_mimic::{Completion, Failed, Trial};
use tokio::runtime::Runtime;

use crate::check::Check;

/// Debian with bash and Python.
pub const DEBIAN: &str = "eyot-test-debian:1";
/// Busybox alone: static, with no users and no GNU tools.
pub const BUSYBOX: &str = "eyot-test-busybox:1";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime for the tests")
});

/// Runs a future to its end.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    RUNTIME.block_on(work)
}

/// Returns the state folder of these tests. It is kept between runs, so that a run finds what a
/// killed one has left.
pub fn state() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("docker-state")
}

/// An Engine, or the reason why there is none.
#[derive(Clone)]
pub struct TestEngine {
    missing: Option<String>,
    pub provider: Arc<DockerProvider>,
}

impl TestEngine {
    /// Finds an Engine that answers.
    pub fn find() -> Self {
        let provider = DockerProvider::new(DockerOptions::node(state()));
        let missing = block_on(provider.version()).err().map(|error| {
            format!("{error}; `cargo xtask engine` starts one and makes the images that these tests need")
        });
        Self { missing, provider }
    }

    /// Makes a trial of a test that needs the Engine and an image.
    pub fn trial(
        &self,
        name: impl Into<String>,
        image: &'static str,
        test: impl FnOnce() -> Result<Completion, Failed> + Send + 'static,
    ) -> Trial {
        let (missing, provider) = (self.missing.clone(), Arc::clone(&self.provider));
        Trial::ignorable_test(name, move || match missing {
            Some(reason) => Ok(Completion::ignored_with(reason)),
            None => {
                if block_on(provider.has_image(image))? {
                    test()
                } else {
                    Ok(Completion::ignored_with(format!(
                        "the Engine has no image `{image}`: cargo xtask engine"
                    )))
                }
            }
        })
    }

    /// Makes a trial of a test with a name of its own.
    pub fn test<F: Future<Output = Check>>(
        &self,
        name: &str,
        image: &'static str,
        test: impl FnOnce(TestEngine) -> F + Send + 'static,
    ) -> Trial {
        let engine = self.clone();
        self.trial(name, image, move || block_on(test(engine)).map(|()| Completion::Completed))
    }
}

/// Lists the tests of a file. Each is a function of the Engine, with the image that it needs.
macro_rules! tests {
    ($($name:ident($image:ident);)*) => {
        pub fn trials(engine: &crate::engine::TestEngine) -> Vec<libtest_mimic::Trial> {
            vec![$(engine.test(stringify!($name), crate::engine::$image, $name)),*]
        }
    };
}

pub(crate) use tests;

/// Returns the spec of a test's sandbox. The image exists and is never fetched.
pub fn spec(image: &str) -> SandboxSpec {
    let mut spec = SandboxSpec { image: Some(image.to_owned()), ..SandboxSpec::default() };
    spec.container.pull = eyot::PullPolicy::Never;
    spec
}
