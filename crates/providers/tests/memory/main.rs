//! The conformance suite over sandboxes in memory.

use std::sync::Arc;

use eyot::SandboxProvider;
use eyot::conformance::Fixture;
use eyot_providers::memory::MemoryProvider;

#[derive(Default)]
struct Memory {
    provider: MemoryProvider,
}

impl Fixture for Memory {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        Arc::new(self.provider.clone())
    }
}

eyot::conformance_tests!(Memory::default());
