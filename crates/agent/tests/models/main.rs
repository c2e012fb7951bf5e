//! Tests of models with stand-ins for the vendors' HTTP APIs.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod failures;
mod history;
mod logs;
mod setup;
mod streams;
mod waits;
