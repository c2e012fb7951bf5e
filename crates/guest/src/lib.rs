//! The guest: one protocol, served inside every sandbox that has a real Linux.
//!
//! [`protocol`] is the wire. [`accounts`] and [`environment`] are agreements between makers and
//! guests beside it. The feature `client` adds the host's side as a [`SandboxDriver`], and the
//! feature `program` the program that runs inside. A backend differs only in how it places the
//! program and opens a byte stream to it.
//!
//! A sandbox without a guest keeps some of the same rules. They are here for it: the feature
//! `search` has the patterns of a glob and the search for lines, `logs` the output that is kept of a
//! process, and `tarballs` what an entry of an archive may make.
//!
//! [`SandboxDriver`]: https://docs.rs/eyot

pub mod accounts;
#[cfg(feature = "client")]
pub mod client;
pub mod environment;
#[cfg(feature = "search")]
pub mod glob_pattern;
#[cfg(feature = "logs")]
pub mod kept_output;
#[cfg(feature = "search")]
pub mod line;
#[cfg(feature = "search")]
pub mod line_search;
#[cfg(feature = "logs")]
pub mod log_ring;
#[cfg(feature = "program")]
pub mod program;
pub mod protocol;
#[cfg(feature = "tarballs")]
pub mod tar_entry;

/// The static guest for `x86_64` Linux, to be placed into a sandbox and run as its PID 1.
#[cfg(feature = "embedded")]
pub static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/eyot-guest"));

/// The SHA-256 of [`PROGRAM`] in hexadecimal.
#[cfg(feature = "embedded")]
pub static PROGRAM_DIGEST: &str = include_str!(concat!(env!("OUT_DIR"), "/eyot-guest.sha256"));
