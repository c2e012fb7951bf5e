//! Tests of the store from outside: import, refusal, removal.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod commit;
mod fixture;
mod import;
mod refusals;
mod removal;
mod stream;
