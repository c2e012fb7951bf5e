//! E2B's API from outside, where its SDKs do not lead: requests at once, clients that leave, a provider that fails,
//! and what a request may take into a sandbox.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod ground;
mod inside;
mod lives;
#[path = "../shared/state_folder.rs"]
mod state_folder;
