//! The conformance suite over a pool of native sandboxes, seen as a provider.

use std::sync::Arc;

use eyot::SandboxProvider;
use eyot::conformance::Fixture;
use eyot_engine::{PoolOptions, SandboxPool};
use eyot_native::{NativeOptions, NativeProvider};

struct Pooled {
    pool: SandboxPool,
    _state: tempfile::TempDir,
}

impl Pooled {
    fn new() -> Self {
        let state = tempfile::tempdir().expect("a folder for the state");
        let options = NativeOptions { state: state.path().join("state"), ..NativeOptions::default() };
        let provider = NativeProvider::new(options).expect("a provider");
        let pool = SandboxPool::open(provider, PoolOptions::default()).expect("a pool");
        Self { pool, _state: state }
    }
}

impl Fixture for Pooled {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.pool.as_provider()
    }
}

eyot::conformance_tests!(Pooled::new());
