//! The names under which the sandbox learned an address. A connection to the address is judged by
//! those names.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use crate::host::HostName;

/// The number of addresses that are remembered. The one that was told longest ago is forgotten
/// first.
const MAX_ADDRESSES: usize = 4096;
/// The number of names of one address that are remembered.
const MAX_NAMES: usize = 16;

/// The answers that the sandbox's name server gave: addresses with their names.
#[derive(Default)]
pub(super) struct DnsCache {
    names: HashMap<IpAddr, Vec<HostName>>,
    order: VecDeque<IpAddr>,
}

impl DnsCache {
    /// Remembers that `name` has `address`.
    pub(super) fn remember(&mut self, address: IpAddr, name: &HostName) {
        if !self.names.contains_key(&address) {
            if self.order.len() == MAX_ADDRESSES
                && let Some(oldest) = self.order.pop_front()
            {
                self.names.remove(&oldest);
            }
            self.order.push_back(address);
        }
        let names = self.names.entry(address).or_default();
        names.retain(|known| known != name);
        if names.len() == MAX_NAMES {
            names.remove(0);
        }
        names.push(name.clone());
    }

    /// Returns the names that were told to have this address.
    pub(super) fn names(&self, address: IpAddr) -> Vec<HostName> {
        self.names.get(&address).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_and_the_oldest_goes_first() {
        let mut dns_cache = DnsCache::default();
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        let name = |n: u32| HostName::parse(&format!("h{n}.test")).unwrap();
        for n in 0..u32::try_from(MAX_ADDRESSES).unwrap() + 10 {
            dns_cache.remember(address(n), &name(n));
        }
        assert_eq!((dns_cache.names.len(), dns_cache.order.len()), (MAX_ADDRESSES, MAX_ADDRESSES));
        assert!(dns_cache.names(address(9)).is_empty() && dns_cache.names(address(10)) == [name(10)]);
        for n in 0..40 {
            dns_cache.remember(address(100), &name(n));
        }
        assert_eq!(dns_cache.names(address(100)).len(), MAX_NAMES);
    }
}
