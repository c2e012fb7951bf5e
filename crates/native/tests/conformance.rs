//! The conformance suite over the native provider, as the user who runs it: root or an ordinary
//! user.

use std::sync::Arc;

use eyot::conformance::Fixture;
use eyot::{SandboxProvider, SandboxSpec};
use eyot_native::{NativeOptions, NativeProvider};

struct Native {
    provider: Arc<NativeProvider>,
    _state: tempfile::TempDir,
}

impl Native {
    fn new() -> Self {
        let state = tempfile::tempdir().expect("a folder for the state");
        let options = NativeOptions { state: state.path().join("state"), ..NativeOptions::default() };
        Self { provider: NativeProvider::new(options).expect("a provider"), _state: state }
    }
}

impl Fixture for Native {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.provider.clone()
    }

    fn spec(&self) -> SandboxSpec {
        SandboxSpec::default()
    }
}

eyot::conformance_tests!(Native::new());
