//! The store from outside: what gets in, what is refused, what stays.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod ground;
mod import;
mod refusals;
mod removal;
mod stream;
