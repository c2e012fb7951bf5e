//! The guest: one protocol, served inside every sandbox that has a real Linux.
//!
//! [`protocol`] is the wire. [`accounts`] and [`environment`] are agreements between makers and
//! guests beside it. The feature `client` adds the host's side as a [`SandboxDriver`], and the
//! feature `program` the program that runs inside. A backend differs only in how it places the
//! program and opens a byte stream to it.
//!
//! [`SandboxDriver`]: https://docs.rs/eyot

pub mod accounts;
#[cfg(feature = "client")]
pub mod client;
pub mod environment;
#[cfg(feature = "program")]
pub mod program;
pub mod protocol;

/// The static guest for `x86_64` Linux, to be placed into a sandbox and run as its PID 1.
#[cfg(feature = "embedded")]
pub static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/eyot-guest"));

/// The SHA-256 of [`PROGRAM`] in hexadecimal.
#[cfg(feature = "embedded")]
pub static PROGRAM_DIGEST: &str = include_str!(concat!(env!("OUT_DIR"), "/eyot-guest.sha256"));
