//! The version of this program, and which build of it this is.

use std::sync::LazyLock;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The commit and its date, or `debug build`; empty if neither is known.
pub const BUILD: &str = env!("EYOT_BUILD");

/// The version and the build in words, such as `0.1.0 (6121437bb0 2026-11-28)`.
pub static VERSION_IN_WORDS: LazyLock<String> = LazyLock::new(|| match BUILD {
    "" => VERSION.to_owned(),
    build => format!("{VERSION} ({build})"),
});
