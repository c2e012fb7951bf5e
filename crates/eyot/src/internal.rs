//! The seam between this crate and the others of the same workspace.
//!
//! It is no part of the contract. It is left out of the documentation and changes without notice: providers and programs
//! use [`Sandbox`](crate::Sandbox) and the rest of this crate.

use std::fmt;

use crate::error::Error;

pub use crate::create::refuse_another_id;
pub use crate::error::system_reason;
pub use crate::keyed_turns::KeyedTurns;
pub use crate::nearest::nearest;
pub use crate::now::now_ms;
pub use crate::sandbox::SandboxInternals;
pub use crate::snapshot::{ChangeCollector, different_images, of_another_image};
pub use crate::spec::{check_labels, check_lifecycle, check_rules};
pub use crate::tasks::run_detached;
pub use crate::text_diff::TextDiffs;

/// Returns the same error about a sandbox that the caller knows by this name.
/// [`Error::is_sleeping`] must hold.
pub fn renamed_sleeping(error: &Error, sandbox: impl fmt::Display) -> Error {
    error.renamed_sleeping(sandbox)
}
