//! The real program against the real provider, each test with a state folder and a home of its own.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod bench;
mod configuration;
mod copying;
mod events;
mod files;
mod help;
mod images;
mod machine;
mod mcp;
mod pool;
mod processes;
mod running;
mod sandboxes;
mod signals;
mod terminals;
mod tools;
mod top;
mod verify;
mod watching;
