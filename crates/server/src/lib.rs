//! Eyot for programs that speak a protocol rather than Rust: the library's pools and tools over
//! HTTP and MCP.
//!
//! A client's calls are calls of the tool table ([`eyot_tools`]) on a pool
//! ([`eyot_engine::SandboxPool`]); this crate carries them and decides who may make them. It knows no
//! provider: the program that starts it passes one in with the pool.

pub mod api;
mod browse;
pub mod e2b;
mod hop_by_hop;
mod http;
pub mod mcp;
mod page;
mod preview;
mod problem;
mod random_hex;
mod static_file;

pub use browse::Browse;
pub use preview::TTL_MS_RANGE as PREVIEW_TTL_MS;
