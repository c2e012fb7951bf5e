//! The way out of a sandbox whose network mode is `egress`: public addresses only, and of those what its rules allow.
//!
//! The library is words and rules: what a rule looks like ([`EgressRule`]), which addresses are public
//! ([`AddressKind`]), what a set of rules decides ([`EgressRules`]), and how the program is talked to ([`control`]).
//! The `program` (a feature) keeps the rules: an HTTP proxy, a SOCKS5 proxy and a name server that listen inside one
//! sandbox and connect from the host. What is decided is decided here, without any input or output.

mod address;
pub mod control;
mod decision;
mod host;
#[cfg(feature = "program")]
pub mod program;
mod rule;
mod rules;

pub use address::AddressKind;
pub use decision::{EgressDecision, EgressProtocol, EgressVerdict};
pub use host::{HostName, NoHost, Target};
pub use rule::{EgressRule, InvalidRule};
pub use rules::{EgressRules, Refusal};

/// Where the HTTP proxy listens inside the sandbox, on 127.0.0.1.
pub const HTTP_PORT: u16 = 3128;
/// Where the SOCKS5 proxy listens inside the sandbox, on 127.0.0.1.
pub const SOCKS_PORT: u16 = 1080;
/// Where the name server listens inside the sandbox, on 127.0.0.1, over UDP and TCP.
pub const DNS_PORT: u16 = 53;

/// The static program for `x86_64` Linux.
#[cfg(feature = "embedded")]
pub static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/eyot-egress"));
