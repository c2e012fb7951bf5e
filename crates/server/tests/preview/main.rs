//! N2 and the purpose of previews, from outside: a server with previews on loopback, and servers in
//! native sandboxes behind it.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod entry;
mod ground;
mod hostile;
mod server;
mod sleeping;
#[path = "../shared/state_folder.rs"]
mod state_folder;
mod streams;
mod stripped;
