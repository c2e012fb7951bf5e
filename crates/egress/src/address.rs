//! Classification of IP addresses: public, or one of the special kinds. The tables follow IANA's
//! special-purpose registries for IPv4 and IPv6. An address that is not known to be global unicast
//! is not public.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The kind of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// Reachable over the internet.
    Public,
    /// The host itself: 127.0.0.0/8, `::1`.
    Loopback,
    /// No address: 0.0.0.0/8 (which connects to the host itself), `::`.
    Unspecified,
    /// A private network: RFC 1918, carrier-grade NAT, `fc00::/7`, site-local.
    Private,
    /// Only on the same link: 169.254.0.0/16, `fe80::/10`.
    LinkLocal,
    /// A cloud's metadata service or host agent.
    Metadata,
    /// Many receivers.
    Multicast,
    /// Set aside for documentation, benchmarks, protocols or the future.
    Reserved,
    /// An IPv6 form that stands for an IPv4 address, through a tunnel or a translator of the local
    /// network.
    Transition,
}

impl AddressKind {
    /// Classifies an address. An IPv4 address that is written as IPv6 (`::ffff:10.0.0.1`, the
    /// well-known NAT64 prefix) has the kind of the inner address.
    pub fn of(address: IpAddr) -> Self {
        match unmapped(address) {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    /// Tells whether a rule may open addresses of this kind at all.
    pub fn can_be_opened(self) -> bool {
        !matches!(self, Self::Loopback | Self::Unspecified | Self::Multicast | Self::Transition)
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Unspecified => "an unspecified address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a metadata service's address",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
            Self::Transition => "an IPv6 transition address",
        })
    }
}

/// Returns the address that the kernel would connect to: `::ffff:a.b.c.d` is `a.b.c.d`.
pub fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(six) => six.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Tells whether every address of this network is public.
pub(crate) fn is_public_throughout(net: IpNet) -> bool {
    match net {
        IpNet::V4(net) => {
            let is_special = |(special, _): &(Ipv4Net, _)| special.contains(&net) || net.contains(special);
            !SPECIAL_V4.iter().any(is_special) && !METADATA_V4.iter().any(|address| net.contains(address))
        }
        IpNet::V6(net) => {
            let is_special = |(special, _): &(Ipv6Net, _)| special.contains(&net) || net.contains(special);
            GLOBAL_UNICAST.contains(&net) && !SPECIAL_V6.iter().any(is_special)
        }
    }
}

const fn v4(a: u8, b: u8, c: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), bits)
}

const fn v6(a: u16, b: u16, c: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), bits)
}

/// The special networks of IPv4. An address in none of these is public.
const SPECIAL_V4: [(Ipv4Net, AddressKind); 16] = [
    (v4(0, 0, 0, 8), AddressKind::Unspecified),
    (v4(10, 0, 0, 8), AddressKind::Private),
    (v4(100, 64, 0, 10), AddressKind::Private),
    (v4(127, 0, 0, 8), AddressKind::Loopback),
    (v4(169, 254, 0, 16), AddressKind::LinkLocal),
    (v4(172, 16, 0, 12), AddressKind::Private),
    (v4(192, 0, 0, 24), AddressKind::Reserved),
    (v4(192, 0, 2, 24), AddressKind::Reserved),
    (v4(192, 88, 99, 24), AddressKind::Reserved),
    (v4(192, 168, 0, 16), AddressKind::Private),
    (v4(198, 18, 0, 15), AddressKind::Reserved),
    (v4(198, 51, 100, 24), AddressKind::Reserved),
    (v4(203, 0, 113, 24), AddressKind::Reserved),
    (v4(224, 0, 0, 4), AddressKind::Multicast),
    (v4(240, 0, 0, 4), AddressKind::Reserved),
    (Ipv4Net::new_assert(Ipv4Addr::BROADCAST, 32), AddressKind::Multicast),
];

/// Addresses at which clouds hand out credentials: AWS, Google, Azure and most others, Alibaba,
/// Azure's host agent, Oracle.
const METADATA_V4: [Ipv4Addr; 5] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];
/// The same over IPv6: AWS, Google.
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

/// The special networks of IPv6. Global unicast is 2000::/3 without these.
const SPECIAL_V6: [(Ipv6Net, AddressKind); 10] = [
    (v6(0xfc00, 0, 0, 7), AddressKind::Private),
    (v6(0xfec0, 0, 0, 10), AddressKind::Private),
    (v6(0xfe80, 0, 0, 10), AddressKind::LinkLocal),
    (v6(0xff00, 0, 0, 8), AddressKind::Multicast),
    (v6(0x2001, 0, 0, 32), AddressKind::Transition),
    (v6(0x2001, 0, 0, 23), AddressKind::Reserved),
    (v6(0x2001, 0xdb8, 0, 32), AddressKind::Reserved),
    (v6(0x2002, 0, 0, 16), AddressKind::Transition),
    (v6(0x3fff, 0, 0, 20), AddressKind::Reserved),
    (v6(0x64, 0xff9b, 1, 48), AddressKind::Transition),
];
const GLOBAL_UNICAST: Ipv6Net = v6(0x2000, 0, 0, 3);
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);

fn of_v4(address: Ipv4Addr) -> AddressKind {
    if METADATA_V4.contains(&address) {
        return AddressKind::Metadata;
    }
    // The last match counts: the broadcast address lies in a wider reserved range.
    let special = SPECIAL_V4.iter().rfind(|(net, _)| net.contains(&address));
    special.map_or(AddressKind::Public, |(_, kind)| *kind)
}

fn of_v6(address: Ipv6Addr) -> AddressKind {
    let octets = address.octets();
    let embedded = Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]);
    if address == Ipv6Addr::UNSPECIFIED {
        return AddressKind::Unspecified;
    }
    if address == Ipv6Addr::LOCALHOST {
        return AddressKind::Loopback;
    }
    if METADATA_V6.contains(&address) {
        return AddressKind::Metadata;
    }
    if NAT64.contains(&address) {
        return of_v4(embedded);
    }
    let special = SPECIAL_V6.iter().find(|(net, _)| net.contains(&address)).map(|(_, kind)| *kind);
    match special {
        Some(kind) => kind,
        // IPv4-compatible, long out of use.
        None if octets[..12] == [0; 12] => AddressKind::Transition,
        None if !GLOBAL_UNICAST.contains(&address) => AddressKind::Reserved,
        // ISATAP: a public prefix, with an IPv4 address of the local network at the end.
        None if matches!(octets[8..12], [0 | 2, 0, 0x5e, 0xfe]) => match of_v4(embedded) {
            AddressKind::Public => AddressKind::Public,
            _ => AddressKind::Transition,
        },
        None => AddressKind::Public,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> AddressKind {
        AddressKind::of(text.parse().unwrap())
    }

    #[test]
    fn what_anybody_has_on_the_internet_is_public() {
        for text in [
            "1.1.1.1",
            "93.184.216.34",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "2001:200::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert_eq!(kind(text), AddressKind::Public, "{text}");
        }
    }

    #[test]
    fn a_network_is_public_throughout_only_if_nothing_special_is_in_it_or_around_it() {
        let is_public = |text: &str| is_public_throughout(text.parse().unwrap());
        for net in ["1.1.1.1/32", "8.8.8.0/24", "93.184.0.0/16", "2606:4700::/32"] {
            assert!(is_public(net), "{net}");
        }
        for net in [
            "0.0.0.0/0",
            "10.0.0.0/8",
            "10.1.2.3/32",
            "8.0.0.0/5",
            "169.254.169.254/32",
            "168.63.129.0/24",
            "192.168.0.0/15",
            "127.0.0.1/32",
            "::/0",
            "fd00::/8",
            "::ffff:8.8.8.8/128",
            "2002::/16",
            "2000::/3",
        ] {
            assert!(!is_public(net), "{net}");
        }
    }

    #[test]
    fn nothing_of_the_host_its_link_or_its_networks_is_public() {
        for (text, expected) in [
            ("127.0.0.1", AddressKind::Loopback),
            ("127.255.255.255", AddressKind::Loopback),
            ("0.0.0.0", AddressKind::Unspecified),
            ("0.1.2.3", AddressKind::Unspecified),
            ("10.0.0.1", AddressKind::Private),
            ("100.64.0.1", AddressKind::Private),
            ("172.31.255.255", AddressKind::Private),
            ("192.168.1.1", AddressKind::Private),
            ("169.254.1.1", AddressKind::LinkLocal),
            ("169.254.169.254", AddressKind::Metadata),
            ("168.63.129.16", AddressKind::Metadata),
            ("192.0.2.1", AddressKind::Reserved),
            ("198.18.0.1", AddressKind::Reserved),
            ("203.0.113.9", AddressKind::Reserved),
            ("224.0.0.1", AddressKind::Multicast),
            ("240.0.0.1", AddressKind::Reserved),
            ("255.255.255.255", AddressKind::Multicast),
            ("::", AddressKind::Unspecified),
            ("::1", AddressKind::Loopback),
            ("fc00::1", AddressKind::Private),
            ("fdff::1", AddressKind::Private),
            ("fec0::1", AddressKind::Private),
            ("fe80::1", AddressKind::LinkLocal),
            ("fd00:ec2::254", AddressKind::Metadata),
            ("ff02::1", AddressKind::Multicast),
            ("2001:db8::1", AddressKind::Reserved),
            ("3fff::1", AddressKind::Reserved),
            ("2001:2::1", AddressKind::Reserved),
            ("100::1", AddressKind::Reserved),
            ("4000::1", AddressKind::Reserved),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn an_ipv4_address_in_ipv6s_clothes_is_what_it_is_underneath_or_refused() {
        for (text, expected) in [
            ("::ffff:127.0.0.1", AddressKind::Loopback),
            ("::ffff:10.1.2.3", AddressKind::Private),
            ("::ffff:169.254.169.254", AddressKind::Metadata),
            ("::ffff:0.0.0.0", AddressKind::Unspecified),
            ("64:ff9b::7f00:1", AddressKind::Loopback),
            ("64:ff9b::a9fe:a9fe", AddressKind::Metadata),
            ("64:ff9b:1::1", AddressKind::Transition),
            ("::127.0.0.1", AddressKind::Transition),
            ("::10.0.0.1", AddressKind::Transition),
            ("2002:7f00:1::1", AddressKind::Transition),
            ("2002:0101:0101::1", AddressKind::Transition),
            ("2001:0:7f00:1::", AddressKind::Transition),
            ("2606:4700::5efe:10.0.0.1", AddressKind::Transition),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }
}
