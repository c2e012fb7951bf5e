//! What was decided about one attempt to reach something.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// How something was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressProtocol {
    /// A tunnel by HTTP's `CONNECT`.
    Connect,
    /// A request for an `http://` address through the proxy.
    Http,
    /// A tunnel by SOCKS5.
    Socks5,
    /// A name's addresses.
    Dns,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressVerdict {
    /// It may be reached; whether it answers is another matter.
    Allowed,
    /// It may not.
    Refused,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressDecision {
    /// Counts the sandbox's decisions from 1; a gap means that some were forgotten.
    pub number: u64,
    /// When, in milliseconds since 1970 (UTC).
    pub at_ms: i64,
    /// What was decided.
    pub verdict: EgressVerdict,
    /// How it was asked for.
    pub protocol: EgressProtocol,
    /// The host as it was asked for, at most 255 bytes of it.
    pub host: String,
    /// The port; none for a name's addresses.
    pub port: Option<u16>,
    /// The address that was dialled or refused, where it came to one.
    pub address: Option<IpAddr>,
    /// Why, as the end of a sentence.
    pub reason: String,
}
