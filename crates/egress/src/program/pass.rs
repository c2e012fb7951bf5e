//! A connection that was allowed, and what it was allowed by: when the rules change, it is judged again.

use std::net::IpAddr;

use super::journal::About;
use crate::decision::EgressProtocol;
use crate::host::{HostName, Target};
use crate::rules::{EgressRules, Refusal};

/// Where an allowed connection leads.
#[derive(Debug, Clone)]
pub(super) struct Pass {
    pub(super) protocol: EgressProtocol,
    pub(super) target: Target,
    pub(super) names: Vec<HostName>,
    pub(super) address: IpAddr,
    pub(super) port: u16,
    /// The address is one of the host's own.
    pub(super) own: bool,
}

impl Pass {
    /// Judges it by these rules.
    pub(super) fn judge(&self, rules: &EgressRules) -> Result<(), Refusal> {
        if let Target::Name(name) = &self.target {
            rules.judge_name(name, Some(self.port))?;
        }
        rules.judge_address(&self.names, self.address, self.port, self.own)
    }

    /// What a decision about it is about; `host` is the target as text.
    pub(super) fn about<'a>(&self, host: &'a str) -> About<'a> {
        About { protocol: self.protocol, host, port: Some(self.port), address: Some(self.address) }
    }
}
