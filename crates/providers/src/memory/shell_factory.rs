//! The factory for interpreters.

use std::sync::Arc;

use bashkit::BashBuilder;

/// Makes interpreters. Each command has one of its own, but some are made before there is a command for
/// them, and one only tells the names of its programs. So what a factory captures must not change.
#[doc(alias = "BashFactory")]
pub type ShellFactory = Arc<dyn Fn() -> BashBuilder + Send + Sync>;
