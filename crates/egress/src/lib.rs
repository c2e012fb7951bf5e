//! The network mode `egress`: a sandbox reaches public addresses only, and of those only what its
//! rules allow.
//!
//! The library has the words and the rules, without any input or output: the form of a rule
//! ([`EgressRule`]), the kinds of addresses ([`AddressKind`]), the decision of a set of rules
//! ([`EgressRules`]), and the messages to the program ([`control`]). The feature `program` adds the
//! program that applies the rules: an HTTP proxy, a SOCKS5 proxy and a name server that listen
//! inside one sandbox and connect from the host.

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
pub use host::{Destination, HostName, InvalidHost};
pub use rule::{EgressRule, InvalidRule};
pub use rules::{EgressRules, Refusal};

/// The port of the HTTP proxy inside the sandbox, on 127.0.0.1.
pub const HTTP_PORT: u16 = 3128;
/// The port of the SOCKS5 proxy inside the sandbox, on 127.0.0.1.
pub const SOCKS_PORT: u16 = 1080;
/// The port of the name server inside the sandbox, on 127.0.0.1, over UDP and TCP.
pub const DNS_PORT: u16 = 53;

/// The static program for `x86_64` Linux.
#[cfg(feature = "embedded")]
pub static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/eyot-egress"));
