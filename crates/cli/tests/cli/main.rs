//! The real program against the real provider. Each test has a new state folder and a new home.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod as_json;
mod backup;
mod bench;
mod configuration;
mod copying;
mod events;
mod files;
mod habits;
mod help;
mod images;
mod init;
mod kept;
mod listening;
mod lost_store;
mod machine;
mod mcp;
mod parent;
mod pool;
mod previews;
mod processes;
mod quotas;
mod running;
mod sandboxes;
mod scarce;
mod served;
mod server;
mod serving;
mod signals;
mod state_folder;
mod terminals;
mod tls;
mod tools;
mod top;
mod verify;
mod watching;
