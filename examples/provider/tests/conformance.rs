//! Eyot's conformance suite over this provider: `cargo test --test conformance`.

use std::sync::Arc;

use eyot::SandboxProvider;
use eyot::conformance::Fixture;
use eyot_folder::FolderProvider;

struct Folders(Arc<FolderProvider>);

impl Fixture for Folders {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.0.clone()
    }

    /// The host's path of a file is its path in the sandbox with the folder's before it.
    fn max_path_bytes(&self) -> usize {
        3_900
    }
}

eyot::conformance_tests!(Folders(FolderProvider::new()));
