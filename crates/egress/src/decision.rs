//! The decision about one attempt to reach a host.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The protocol of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressProtocol {
    /// A tunnel by HTTP's `CONNECT`.
    Connect,
    /// A request for an `http://` address through the proxy.
    Http,
    /// A tunnel by SOCKS5.
    Socks5,
    /// A lookup of a name's addresses.
    Dns,
}

/// The outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressVerdict {
    /// The host may be reached. It may still not answer.
    Allowed,
    /// The host may not be reached.
    Refused,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressDecision {
    /// The position among the sandbox's decisions, counted from 1. A gap means that some were
    /// forgotten.
    pub number: u64,
    /// The time, in milliseconds since 1970 (UTC).
    pub at_ms: i64,
    /// The outcome.
    pub verdict: EgressVerdict,
    /// The protocol of the attempt.
    pub protocol: EgressProtocol,
    /// The host as the client wrote it, at most 255 bytes of it.
    pub host: String,
    /// The port; none for a lookup of a name's addresses.
    pub port: Option<u16>,
    /// The address that was dialled or refused, if the attempt got that far.
    pub address: Option<IpAddr>,
    /// The reason, as the end of a sentence.
    pub reason: String,
}
