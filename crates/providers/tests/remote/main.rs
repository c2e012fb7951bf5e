//! The conformance suite over a server with native sandboxes.

mod ground;

use std::sync::Arc;

use eyot::SandboxProvider;
use eyot::conformance::Fixture;

struct Remote {
    ground: ground::Ground,
}

impl Fixture for Remote {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.ground.provider()
    }
}

eyot::conformance_tests!(Remote { ground: ground::Ground::new() });
