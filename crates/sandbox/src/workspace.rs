//! Anvia's view. (Being written.)

/// Anvia's view over a sandbox.
#[derive(Debug, Clone, Copy)]
pub struct Workspace;
