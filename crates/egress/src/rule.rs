//! One rule: hosts by name, or addresses by network, on one port or on every port.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::address::{AddressKind, is_public_throughout};
use crate::host::HostName;

/// One rule, as text: `example.com`, `*.example.com` (every name below it), `10.1.0.0/16`,
/// `93.184.216.34`, `[2001:db8::]/32`, each with an optional `:port`; or `*`, every public host.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EgressRule {
    subject: Subject,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Subject {
    /// Every public host.
    Everything,
    Host(HostName),
    Below(HostName),
    Net(IpNet),
}

/// The error of a text that is not a rule, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidRule(String);

impl fmt::Display for InvalidRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidRule {}

impl EgressRule {
    /// Tells whether the rule is about this name on this port. `None` stands for any port at all.
    pub fn names(&self, name: &HostName, port: Option<u16>) -> bool {
        let is_it = match &self.subject {
            Subject::Everything => true,
            Subject::Host(host) => host == name,
            Subject::Below(domain) => name.is_below(domain),
            Subject::Net(_) => false,
        };
        is_it && self.has_port(port)
    }

    /// Tells whether the rule is about every public host, on this port.
    pub fn is_everything(&self, port: u16) -> bool {
        self.subject == Subject::Everything && self.has_port(Some(port))
    }

    /// Tells whether the rule is about a network that has this address, on this port.
    pub fn contains(&self, address: IpAddr, port: u16) -> bool {
        matches!(&self.subject, Subject::Net(net) if net.contains(&address)) && self.has_port(Some(port))
    }

    /// Tells whether the rule allows nothing but public addresses: it is about a name, whose
    /// addresses are judged when they are dialled, or about a network without any address of a
    /// host's own networks.
    pub fn is_public(&self) -> bool {
        match &self.subject {
            Subject::Net(net) => is_public_throughout(*net),
            _ => true,
        }
    }

    /// Tells whether the rule is about this address alone, on this port.
    pub fn is_exactly(&self, address: IpAddr, port: u16) -> bool {
        matches!(&self.subject, Subject::Net(net) if net.prefix_len() == net.max_prefix_len())
            && self.contains(address, port)
    }

    /// Returns the one port that the rule is for, unless it is for every port.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    fn has_port(&self, port: Option<u16>) -> bool {
        self.port.is_none() || port.is_none() || self.port == port
    }

    /// Refuses a network that lies wholly in what no rule can open.
    fn checked(self) -> Result<Self, InvalidRule> {
        let Subject::Net(net) = &self.subject else { return Ok(self) };
        let (first, last) = (AddressKind::of(net.network()), AddressKind::of(net.broadcast()));
        if first == last && !first.can_be_opened() {
            Err(InvalidRule(format!("`{self}` is {first}, which no rule can open")))
        } else {
            Ok(self)
        }
    }
}

impl FromStr for EgressRule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        let (host, port) = split_port(text)?;
        let subject = parse_subject(host).ok_or_else(|| {
            InvalidRule(format!(
                "`{text}` is no rule; write a host (example.com, *.example.com), an address or a network \
                 (10.1.0.0/16), each with :port if need be, or `*`"
            ))
        })?;
        Self { subject, port }.checked()
    }
}

/// Splits the host part from the port. An IPv6 address with a port stands in brackets; without a
/// port it may.
fn split_port(text: &str) -> Result<(&str, Option<u16>), InvalidRule> {
    let without_port = text.parse::<Ipv6Addr>().is_ok() || text.parse::<IpNet>().is_ok();
    let Some((host, port)) = text.rsplit_once(':').filter(|(_, port)| !without_port && !port.contains(']'))
    else {
        return Ok((text, None));
    };
    match port.parse::<u16>() {
        Ok(number) if number > 0 => Ok((host, Some(number))),
        _ if text.contains("://") => Err(InvalidRule(format!(
            "`{text}` is a URL; write its host and port alone, such as example.com:443"
        ))),
        _ => Err(InvalidRule(format!("`{text}` has no port from 1 to 65535 after its colon"))),
    }
}

fn parse_subject(host: &str) -> Option<Subject> {
    if host == "*" {
        return Some(Subject::Everything);
    }
    if let Some(domain) = host.strip_prefix("*.") {
        return HostName::parse(domain).ok().map(Subject::Below);
    }
    match parse_net(host) {
        Some(net) => Some(Subject::Net(net)),
        None => HostName::parse(host).ok().map(Subject::Host),
    }
}

/// Parses a network or an address: `10.0.0.0/8`, `10.0.0.1`, `[2001:db8::]/32`, `[2001:db8::/32]`,
/// `2001:db8::1`.
fn parse_net(host: &str) -> Option<IpNet> {
    let bare: String = host.chars().filter(|letter| !['[', ']'].contains(letter)).collect();
    let net = match bare.parse::<IpAddr>() {
        Ok(address) => IpNet::from(address),
        Err(_) => bare.parse::<IpNet>().ok()?,
    };
    Some(of_ipv4_mapped(net).trunc())
}

/// Converts a mapped network: `::ffff:10.0.0.0/104` is `10.0.0.0/8`.
fn of_ipv4_mapped(net: IpNet) -> IpNet {
    let IpNet::V6(six) = net else { return net };
    match (six.addr().to_ipv4_mapped(), six.prefix_len().checked_sub(96)) {
        (Some(four), Some(bits)) => IpNet::new(four.into(), bits).unwrap_or(net),
        _ => net,
    }
}

impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Everything => f.write_str("*")?,
            Subject::Host(host) => host.fmt(f)?,
            Subject::Below(domain) => write!(f, "*.{domain}")?,
            Subject::Net(net) => write_net(f, net)?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

fn write_net(f: &mut fmt::Formatter<'_>, net: &IpNet) -> fmt::Result {
    match net.addr() {
        IpAddr::V6(six) => write!(f, "[{six}]")?,
        IpAddr::V4(four) => write!(f, "{four}")?,
    }
    if net.prefix_len() == net.max_prefix_len() { Ok(()) } else { write!(f, "/{}", net.prefix_len()) }
}

impl TryFrom<String> for EgressRule {
    type Error = InvalidRule;
    fn try_from(text: String) -> Result<Self, InvalidRule> {
        text.parse()
    }
}

impl From<EgressRule> for String {
    fn from(rule: EgressRule) -> Self {
        rule.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> EgressRule {
        text.parse().unwrap()
    }

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    #[test]
    fn every_form_is_read_and_written_in_its_one_spelling() {
        for (text, written) in [
            ("Example.COM.", "example.com"),
            ("example.com:443", "example.com:443"),
            ("*.example.com:8080", "*.example.com:8080"),
            ("*", "*"),
            ("*:443", "*:443"),
            ("10.1.2.3/16", "10.1.0.0/16"),
            ("10.1.0.0/16:80", "10.1.0.0/16:80"),
            ("93.184.216.34", "93.184.216.34"),
            ("93.184.216.34/32:80", "93.184.216.34:80"),
            ("2606:4700::/32", "[2606:4700::]/32"),
            ("[2606:4700::]/32", "[2606:4700::]/32"),
            ("[2606:4700::/32]:443", "[2606:4700::]/32:443"),
            ("2606:4700::1", "[2606:4700::1]"),
            ("[2606:4700::1]:443", "[2606:4700::1]:443"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ] {
            assert_eq!(rule(text).to_string(), written, "{text}");
            assert_eq!(rule(written), rule(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_rule_is_refused_with_what_to_write() {
        for text in [
            "",
            "*.",
            "**.a",
            "a.*.b",
            "example.com:",
            "example.com:0",
            "example.com:65536",
            "http://a",
            "10.0.0.0/33",
            "0x7f.1",
            "a b",
            "*example.com",
        ] {
            assert!(text.parse::<EgressRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn no_rule_opens_loopback_or_what_else_leads_back_to_the_host() {
        for text in [
            "127.0.0.1",
            "127.0.0.0/8",
            "::1",
            "0.0.0.0",
            "0.0.0.0/8",
            "224.0.0.0/4",
            "::ffff:127.0.0.1",
            "2002::/16",
        ] {
            let error = text.parse::<EgressRule>().unwrap_err().to_string();
            assert!(error.contains("no rule can open"), "{text}: {error}");
        }
    }

    #[test]
    fn a_wildcard_is_what_is_below_and_not_the_domain_itself() {
        let rule = rule("*.example.com:443");
        assert!(rule.names(&name("a.example.com"), Some(443)) && rule.names(&name("a.b.example.com"), None));
        assert!(
            !rule.names(&name("example.com"), Some(443)) && !rule.names(&name("a.example.com"), Some(80))
        );
    }

    #[test]
    fn a_network_names_no_host_and_a_host_no_address() {
        let address: IpAddr = "10.1.2.3".parse().unwrap();
        assert!(rule("10.0.0.0/8").contains(address, 80) && !rule("10.0.0.0/8").names(&name("a.b"), None));
        assert!(!rule("10.0.0.0/8").is_exactly(address, 80) && rule("10.1.2.3:80").is_exactly(address, 80));
        assert!(!rule("*").contains(address, 80) && !rule("10.0.0.0/8:443").contains(address, 80));
    }
}
