//! Where sandboxes come from. This is the only file that knows which provider there is.

use std::path::PathBuf;
use std::sync::Arc;

use eyot::{Result, SandboxProvider};
use eyot_native::{NativeOptions, NativeProvider, default_state_dir};

/// The provider that keeps its sandboxes in `state`, or in the default state folder.
pub fn open(state: Option<PathBuf>) -> Result<Arc<dyn SandboxProvider>> {
    let mut options = NativeOptions::default();
    if let Some(state) = state {
        options.state = state;
    }
    let provider: Arc<NativeProvider> = NativeProvider::new(options)?;
    Ok(provider)
}

/// The state folder when nobody names one.
pub fn default_state_folder() -> PathBuf {
    default_state_dir()
}
