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
    /// The number of half-made sandboxes that are kept ready for creates of the shape that was asked
    /// for last: see [`NativeProvider::fill_slots`](crate::NativeProvider::fill_slots). Each takes about as much memory
    /// as an idle sandbox. 0, the default: every create begins with nothing. The most is
    /// [`MOST_SLOTS`](crate::MOST_SLOTS). Only root has
    /// slots; with `in_process` they are refused.
    pub slots: usize,
    /// The sources of images that the state folder's store does not have; none by default.
    pub images: Option<Arc<ImageSources>>,
    /// Makes every sandbox from a slot that is made right before, if it can be: tests use it to try
    /// sandboxes from slots.
    #[doc(hidden)]
    pub always_from_slots: bool,
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
        Self {
            state: default_state_dir(),
            in_process: false,
            slots: 0,
            images: None,
            always_from_slots: false,
            fail_step: None,
            simulated: None,
        }
    }
}
