//! A connection that the rules allowed, with what they judged. When the rules change, it is judged
//! again.

use std::net::IpAddr;

use super::journal::AccessAttempt;
use crate::decision::EgressProtocol;
use crate::host::{Destination, HostName};
use crate::rules::{EgressRules, Refusal};

/// A connection that the rules allowed.
#[derive(Debug, Clone)]
pub(super) struct AllowedConnection {
    pub(super) protocol: EgressProtocol,
    pub(super) target: Destination,
    pub(super) names: Vec<HostName>,
    pub(super) address: IpAddr,
    pub(super) port: u16,
    /// The address is one of the host's own.
    pub(super) own: bool,
}

impl AllowedConnection {
    /// Judges the connection by these rules.
    pub(super) fn judge(&self, rules: &EgressRules) -> Result<(), Refusal> {
        if let Destination::Name(name) = &self.target {
            rules.judge_name(name, Some(self.port))?;
        }
        rules.judge_address(&self.names, self.address, self.port, self.own)
    }

    /// Returns the attempt that a decision about it is about; `host` is the destination as text.
    pub(super) fn attempt<'a>(&self, host: &'a str) -> AccessAttempt<'a> {
        AccessAttempt { protocol: self.protocol, host, port: Some(self.port), address: Some(self.address) }
    }
}
