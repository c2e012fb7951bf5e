//! The options of a provider.

use std::path::PathBuf;
use std::sync::Arc;

use crate::image::ImageSources;
use crate::state::default_state_dir;

/// The options of a provider.
#[derive(Debug, Clone)]
pub struct NativeOptions {
    /// The state folder. The first create makes it if need be, with mode 0700.
    pub state: PathBuf,
    /// Runs the launcher as a thread of this process, not as a process that starts with the first
    /// create. This is faster for a program that makes one sandbox and ends. For a server it is
    /// slower, and the sandboxes' first processes become its children.
    pub in_process: bool,
    /// The sources of images that the state folder's store does not have; none by default.
    pub images: Option<Arc<ImageSources>>,
    /// The name of a step that fails in every create: tests use it to show that a create fails
    /// closed.
    #[doc(hidden)]
    pub fail_step: Option<String>,
    /// Facts (see [`crate::host::Facts`]) that replace those of the host, for tests of diagnoses.
    /// They change what is refused and reported, never what is enforced.
    #[doc(hidden)]
    pub simulated: Option<serde_json::Value>,
}

impl Default for NativeOptions {
    fn default() -> Self {
        Self { state: default_state_dir(), in_process: false, images: None, fail_step: None, simulated: None }
    }
}
