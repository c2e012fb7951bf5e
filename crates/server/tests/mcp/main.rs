//! The MCP server with rmcp's own client, in this process, over native sandboxes.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod access;
mod calls;
mod client;
mod ground;
mod http;
mod lines;
#[path = "../shared/state_folder.rs"]
mod state_folder;
