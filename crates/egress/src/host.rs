//! The host that a client asks for: a name, or an address in its one usual spelling. Some resolvers
//! take spellings such as `0x7f.1`, `2130706433`, `127.1` and `0177.0.0.1` for addresses, others
//! for names. They are refused.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host's name: lower-case ASCII, without the final dot, at most 253 bytes in labels of 1 to 63.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

/// The reason why a text names no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidHost {
    /// Empty, too long, or with characters that no host's name has.
    InvalidName,
    /// A number in a spelling that programs read differently.
    AmbiguousNumber,
}

impl fmt::Display for InvalidHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidName => "is not a valid host name",
            Self::AmbiguousNumber => "is a number in an unusual spelling; write the address as a.b.c.d",
        })
    }
}

impl HostName {
    /// Parses a name. Case and one final dot do not matter.
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() || name.len() > 253 || !name.split('.').all(is_label) {
            return Err(InvalidHost::InvalidName);
        }
        if name.rsplit('.').next().is_some_and(is_number) {
            Err(InvalidHost::AmbiguousNumber)
        } else {
            Ok(Self(name))
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether the name means the host's own loopback, whatever a name server or a file says
    /// (RFC 6761, 6.3): `localhost`, and every name below it.
    pub fn is_loopback(&self) -> bool {
        self.0.rsplit('.').next() == Some("localhost")
    }

    /// Tells whether the name is below `domain`: `a.example.com` is below `example.com`. A domain
    /// is not below itself.
    pub fn is_below(&self, domain: &Self) -> bool {
        self.0.strip_suffix(&domain.0).is_some_and(|front| front.ends_with('.'))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks one label. Underscores are allowed: names in use have them (`_acme-challenge`, some
/// hosts' own), though the standard has none.
fn is_label(label: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !label.is_empty() && label.len() <= 63 && label.bytes().all(good) && !label.starts_with('-')
}

/// Tells whether a last label makes the whole a number, as the URL standard has it.
fn is_number(label: &str) -> bool {
    let hexadecimal =
        label.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hexadecimal || label.bytes().all(|byte| byte.is_ascii_digit())
}

/// A host that a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A host by name.
    Name(HostName),
    /// A host by address.
    Address(IpAddr),
}

impl Destination {
    /// Parses a name, `a.b.c.d`, or an IPv6 address with or without brackets (and without a zone).
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(inner) = bare {
            return inner
                .parse::<Ipv6Addr>()
                .map(|six| Self::Address(six.into()))
                .map_err(|_| InvalidHost::InvalidName);
        }
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            return Ok(Self::Address(address.into()));
        }
        match text.parse::<Ipv4Addr>() {
            Ok(address) => Ok(Self::Address(address.into())),
            Err(_) => HostName::parse(text).map(Self::Name),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(IpAddr::V6(six)) => write!(f, "[{six}]"),
            Self::Address(four) => four.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_unusual_spellings_are_neither_names_nor_addresses() {
        for text in [
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "127.1",
            "0177.0.0.1",
            "127.0.0.01",
            "1.2.3.4.5",
            "a.0x1",
            "0x",
        ] {
            assert_eq!(Destination::parse(text), Err(InvalidHost::AmbiguousNumber), "{text}");
        }
    }

    #[test]
    fn case_and_the_final_dot_do_not_matter() {
        assert_eq!(HostName::parse("EXAMPLE.com."), HostName::parse("example.com"));
        assert!(HostName::parse("example.com..").is_err());
    }

    #[test]
    fn what_no_host_is_called_is_refused() {
        let long = format!("{}.com", "a".repeat(64));
        for text in [
            "",
            ".",
            "a..b",
            "a b",
            "a\0b",
            "ä.com",
            "a/b",
            "user@host",
            "-a.com",
            "[::1",
            "[1.2.3.4]",
            "a%00",
            &long,
        ] {
            assert_eq!(Destination::parse(text), Err(InvalidHost::InvalidName), "{text}");
        }
    }

    #[test]
    fn a_domain_is_not_below_itself_nor_is_what_merely_ends_like_it() {
        let name = |text| HostName::parse(text).unwrap();
        assert!(name("a.b.example.com").is_below(&name("example.com")));
        assert!(!name("example.com").is_below(&name("example.com")));
        assert!(!name("badexample.com").is_below(&name("example.com")));
    }

    #[test]
    fn addresses_are_read_with_and_without_brackets() {
        assert_eq!(Destination::parse("[2001:db8::1]"), Destination::parse("2001:db8::1"));
        assert_eq!(Destination::parse("1.2.3.4").unwrap().to_string(), "1.2.3.4");
        assert_eq!(Destination::parse("::1").unwrap().to_string(), "[::1]");
    }
}
