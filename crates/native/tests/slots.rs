//! The conformance suite over native sandboxes that are made from slots.

use std::sync::Arc;

use eyot::SandboxProvider;
use eyot::conformance::Fixture;
use eyot_native::{NativeOptions, NativeProvider};

struct FromSlots {
    provider: Arc<NativeProvider>,
    _state: tempfile::TempDir,
}

impl FromSlots {
    fn new() -> Self {
        let state = tempfile::tempdir().expect("a folder for the state");
        let options = NativeOptions {
            state: state.path().join("state"),
            always_from_slots: true,
            ..NativeOptions::default()
        };
        Self { provider: NativeProvider::new(options).expect("a provider"), _state: state }
    }
}

impl Fixture for FromSlots {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.provider.clone()
    }
}

eyot::conformance_tests!(FromSlots::new());
