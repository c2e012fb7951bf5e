//! Eyot for programs that speak a protocol rather than Rust: what the library's pools and tools do, over MCP (and HTTP).
//!
//! Everything a client can do is a call of the tool table ([`eyot::tools`]) on a pool ([`eyot::SandboxPool`]); this crate
//! carries the calls and says who may make them. It knows no provider: whoever starts it hands one in with the pool.

pub mod api;
mod browse;
mod http;
pub mod mcp;
mod page;
mod preview;
mod problem;

pub use browse::Browse;
