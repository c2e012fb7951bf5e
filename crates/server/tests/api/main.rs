//! The HTTP API from outside: real requests to a server on loopback over native sandboxes.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod access;
mod agents;
mod authority;
mod changes;
mod commands;
mod document;
mod dropped;
mod ends;
mod files;
mod ground;
mod images;
mod limits;
mod lives;
mod mcp;
mod names;
mod page;
mod problems;
mod provider_tools;
mod rates;
mod snapshots;
mod sockets;
#[path = "../shared/state_folder.rs"]
mod state_folder;
mod stopping;
mod streams;
mod tls;
mod tools;
