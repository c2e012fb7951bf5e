//! The routers from outside: real requests to a server on loopback, over a store in memory.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod admin;
mod client_tools;
mod failures;
mod ground;
mod invoking;
mod runs;
mod streams;
mod transcript;
