//! A sandbox's rules together, and their decision. The order is the same for everything. A deny
//! rule refuses. An address that is not public needs a network rule of its own. A public address
//! needs an allow rule if there are any.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::address::{AddressKind, unmapped};
use crate::host::HostName;
use crate::rule::EgressRule;

/// The hosts that a sandbox may connect to. Without any rule: every public address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct EgressRules {
    /// The hosts that are allowed: `example.com`, `*.example.com`, `10.1.0.0/16`, each optionally
    /// with `:port`. If there is any rule here, nothing else is allowed. A network here also opens
    /// addresses that are not public.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub allow: Vec<EgressRule>,
    /// The hosts that are refused, whatever else holds.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub deny: Vec<EgressRule>,
}

/// The reason for a refusal. The text of it is the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There are allow rules, and none matches.
    NotAllowed,
    /// This rule denies it.
    Denied(EgressRule),
    /// The address is not public, and no rule opens it.
    NotPublic(AddressKind),
    /// One of the host's own addresses.
    OwnAddress,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed => f.write_str("no allow rule matches"),
            Self::Denied(rule) => write!(f, "the rule `deny {rule}` is about it"),
            Self::NotPublic(kind) => write!(f, "it is {kind}"),
            Self::OwnAddress => f.write_str("it is an address of the host itself"),
        }
    }
}

impl EgressRules {
    /// The most rules of each kind.
    pub const MAX_RULES: usize = 256;
    /// The most bytes of all rules together, as text.
    pub const MAX_BYTES: usize = 64 * 1024;

    /// Returns the length of all rules together as text, in bytes.
    pub fn bytes(&self) -> usize {
        self.allow.iter().chain(&self.deny).map(|rule| rule.to_string().len()).sum()
    }

    /// Decides whether a name may be resolved and connected to on this port. `None` stands for
    /// resolving alone. The name's addresses are judged later.
    pub fn judge_name(&self, name: &HostName, port: Option<u16>) -> Result<(), Refusal> {
        // A name that is denied on one port alone may still be resolved.
        let denies = |rule: &&EgressRule| rule.names(name, port) && (port.is_some() || rule.port().is_none());
        if let Some(rule) = self.deny.iter().find(denies) {
            return Err(Refusal::Denied(rule.clone()));
        }
        if self.allow.is_empty() || self.allow.iter().any(|rule| rule.names(name, port)) {
            Ok(())
        } else {
            Err(Refusal::NotAllowed)
        }
    }

    /// Decides about the very address that is to be dialled. `names` are the names that led to it:
    /// the requested name, or those that the sandbox was told to have this address. There are none
    /// for an address that no answer contained. `own` says that it is one of the host's own.
    pub fn judge_address(
        &self,
        names: &[HostName],
        address: IpAddr,
        port: u16,
        own: bool,
    ) -> Result<(), Refusal> {
        let address = unmapped(address);
        self.check_denied(names, address, port)?;
        let kind = AddressKind::of(address);
        let opened = |exactly: bool| {
            self.allow.iter().any(|rule| {
                if exactly { rule.is_exactly(address, port) } else { rule.contains(address, port) }
            })
        };
        match kind {
            _ if !kind.can_be_opened() => Err(Refusal::NotPublic(kind)),
            _ if own => if_or(opened(true), Refusal::OwnAddress),
            AddressKind::Metadata => if_or(opened(true), Refusal::NotPublic(kind)),
            AddressKind::Public => {
                if_or(opened(false) || self.allows_public(names, port), Refusal::NotAllowed)
            }
            _ => if_or(opened(false), Refusal::NotPublic(kind)),
        }
    }

    /// Decides whether a DNS answer to the sandbox may contain this address. It may if the sandbox
    /// could connect to it on some port. The name's resolution must be allowed already.
    pub fn judge_dns_answer(&self, name: &HostName, address: IpAddr, own: bool) -> Result<(), Refusal> {
        let ports = self.allow.iter().filter_map(EgressRule::port).chain([443, 80]);
        let mut refused = Refusal::NotAllowed;
        for port in ports {
            match self.judge_address(std::slice::from_ref(name), address, port, own) {
                Ok(()) => return Ok(()),
                Err(refusal) => refused = refusal,
            }
        }
        Err(refused)
    }

    fn check_denied(&self, names: &[HostName], address: IpAddr, port: u16) -> Result<(), Refusal> {
        let about = |rule: &&EgressRule| {
            rule.contains(address, port)
                || rule.is_everything(port)
                || names.iter().any(|name| rule.names(name, Some(port)))
        };
        match self.deny.iter().find(about) {
            Some(rule) => Err(Refusal::Denied(rule.clone())),
            None => Ok(()),
        }
    }

    fn allows_public(&self, names: &[HostName], port: u16) -> bool {
        self.allow.is_empty()
            || self
                .allow
                .iter()
                .any(|rule| rule.is_everything(port) || names.iter().any(|name| rule.names(name, Some(port))))
    }
}

fn if_or(holds: bool, refusal: Refusal) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(refusal) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> EgressRules {
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        EgressRules { allow: parse(allow), deny: parse(deny) }
    }

    fn name(text: &str) -> HostName {
        HostName::parse(text).unwrap()
    }

    fn judge(rules: &EgressRules, names: &[&str], address: &str, port: u16) -> Result<(), Refusal> {
        let names: Vec<HostName> = names.iter().map(|text| name(text)).collect();
        rules.judge_address(&names, address.parse().unwrap(), port, false)
    }

    #[test]
    fn without_rules_everything_public_is_allowed_and_nothing_else() {
        let none = EgressRules::default();
        assert!(none.judge_name(&name("a.b"), Some(1)).is_ok());
        assert!(judge(&none, &["a.b"], "1.1.1.1", 1).is_ok() && judge(&none, &[], "2606:4700::1", 1).is_ok());
        for address in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "::1", "0.0.0.0"] {
            assert!(matches!(judge(&none, &["a.b"], address, 1), Err(Refusal::NotPublic(_))), "{address}");
        }
    }

    #[test]
    fn with_an_allow_rule_everything_else_is_refused_addresses_included() {
        let some = rules(&["example.com:443"], &[]);
        assert!(some.judge_name(&name("example.com"), Some(443)).is_ok());
        assert_eq!(some.judge_name(&name("example.com"), Some(80)), Err(Refusal::NotAllowed));
        assert!(some.judge_name(&name("example.com"), None).is_ok());
        assert_eq!(some.judge_name(&name("a.example.com"), None), Err(Refusal::NotAllowed));
        assert!(judge(&some, &["example.com"], "1.1.1.1", 443).is_ok());
        assert_eq!(judge(&some, &[], "1.1.1.1", 443), Err(Refusal::NotAllowed));
        assert_eq!(judge(&some, &["other.com"], "1.1.1.1", 443), Err(Refusal::NotAllowed));
    }

    #[test]
    fn an_allowed_name_opens_no_private_address_and_a_network_rule_does() {
        let named = rules(&["example.com"], &[]);
        assert_eq!(
            judge(&named, &["example.com"], "10.0.0.1", 80),
            Err(Refusal::NotPublic(AddressKind::Private))
        );
        let both = rules(&["example.com", "10.0.0.0/8:80"], &[]);
        assert!(judge(&both, &["example.com"], "10.0.0.1", 80).is_ok());
        assert!(judge(&both, &["example.com"], "10.0.0.1", 81).is_err());
        assert!(judge(&both, &[], "10.0.0.1", 80).is_ok());
        assert_eq!(judge(&both, &[], "1.1.1.1", 80), Err(Refusal::NotAllowed));
    }

    #[test]
    fn no_network_however_wide_opens_loopback_metadata_or_the_hosts_own_addresses() {
        let wide = rules(&["0.0.0.0/0", "::/0"], &[]);
        for address in [
            "127.0.0.1",
            "0.0.0.0",
            "::1",
            "::ffff:127.0.0.1",
            "224.0.0.1",
            "169.254.169.254",
            "2002:7f00:1::",
        ] {
            assert!(judge(&wide, &[], address, 80).is_err(), "{address}");
        }
        let own = |rules: &EgressRules| rules.judge_address(&[], "10.0.0.5".parse().unwrap(), 80, true);
        assert_eq!(own(&wide), Err(Refusal::OwnAddress));
        assert!(own(&rules(&["10.0.0.5"], &[])).is_ok());
        assert!(judge(&rules(&["169.254.169.254:80"], &[]), &[], "169.254.169.254", 80).is_ok());
    }

    #[test]
    fn a_deny_rule_wins_over_every_allow_rule() {
        let both = rules(&["*"], &["evil.com", "*.evil.com", "9.9.9.0/24", "slow.com:25"]);
        assert!(matches!(both.judge_name(&name("a.evil.com"), None), Err(Refusal::Denied(_))));
        assert!(matches!(judge(&both, &[], "9.9.9.9", 53), Err(Refusal::Denied(_))));
        assert!(matches!(judge(&both, &["evil.com"], "1.1.1.1", 80), Err(Refusal::Denied(_))));
        assert!(
            both.judge_name(&name("slow.com"), None).is_ok()
                && both.judge_name(&name("slow.com"), Some(80)).is_ok()
        );
        assert!(both.judge_name(&name("slow.com"), Some(25)).is_err());
        assert!(
            judge(&both, &["good.com"], "1.1.1.1", 80).is_ok() && judge(&both, &[], "1.1.1.1", 80).is_ok()
        );
        assert!(judge(&both, &["good.com"], "10.0.0.1", 80).is_err());
    }

    #[test]
    fn rules_are_plain_texts_on_the_wire_and_wrong_ones_are_refused() {
        let some = rules(&["*.example.com:443"], &["10.0.0.0/8"]);
        let text = serde_json::to_string(&some).unwrap();
        assert_eq!(text, r#"{"allow":["*.example.com:443"],"deny":["10.0.0.0/8"]}"#);
        assert_eq!(serde_json::from_str::<EgressRules>(&text).unwrap(), some);
        assert!(serde_json::from_str::<EgressRules>(r#"{"allow":["a b"]}"#).is_err());
    }
}
