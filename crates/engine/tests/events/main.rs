//! The event log through its public interface, in one process.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod append;
mod follow;
mod log;
mod recorder;
mod tampering;
