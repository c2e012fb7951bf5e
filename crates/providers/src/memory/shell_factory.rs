//! The maker of interpreters.

use std::sync::Arc;

use bashkit::BashBuilder;

/// Makes a fresh interpreter for each command.
#[doc(alias = "BashFactory")]
pub type ShellFactory = Arc<dyn Fn() -> BashBuilder + Send + Sync>;
