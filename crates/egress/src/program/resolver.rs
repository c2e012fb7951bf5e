//! Name lookup as the host does it: by its `/etc/resolv.conf` and `/etc/hosts`, read again when
//! they change.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hickory_proto::rr::RecordType;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::ResolveHosts;
use hickory_resolver::net::NetError;

use super::limits;
use crate::host::HostName;

/// The host's settings. A change of either file makes a new resolver.
const SETTINGS: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];
/// The number of answers that are cached.
const CACHED: u64 = 512;
/// The longest time that an answer is cached, in seconds.
const MAX_TTL: u32 = 300;

/// The host's resolver.
#[derive(Default)]
pub(super) struct HostResolver {
    current: Mutex<Option<(Stamp, TokioResolver)>>,
}

/// A version of the settings: numbers, times and sizes of their files.
type Stamp = Vec<(u64, i64, i64, u64)>;

/// The addresses of a name.
#[derive(Debug, Default)]
pub(super) struct ResolvedAddresses {
    pub(super) addresses: Vec<IpAddr>,
    /// The time to live, in seconds.
    pub(super) ttl: u32,
}

/// The reason why a name has no address, as the end of a sentence.
#[derive(Debug)]
pub(super) enum LookupError {
    /// There is no such name.
    NoSuchName,
    /// The name has no address, or none of this family.
    NoAddress(Option<Family>),
    /// No name server answered.
    Failed(String),
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchName => f.write_str("there is no such host"),
            Self::NoAddress(None) => f.write_str("the host has no address"),
            Self::NoAddress(Some(Family::V4)) => f.write_str("the host has no IPv4 address"),
            Self::NoAddress(Some(Family::V6)) => f.write_str("the host has no IPv6 address"),
            Self::Failed(reason) => write!(f, "the host can't be resolved: {reason}"),
        }
    }
}

/// The family of the addresses to look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl HostResolver {
    /// Looks up the addresses of a name. CNAMEs are followed.
    pub(super) async fn lookup(
        &self,
        name: &HostName,
        family: Family,
    ) -> Result<ResolvedAddresses, LookupError> {
        if name.is_loopback() {
            let address = match family {
                Family::V4 => Ipv4Addr::LOCALHOST.into(),
                Family::V6 => Ipv6Addr::LOCALHOST.into(),
            };
            return Ok(ResolvedAddresses { addresses: vec![address], ttl: MAX_TTL });
        }
        let resolver = self.resolver().map_err(|error| LookupError::Failed(error.to_string()))?;
        let kind = match family {
            Family::V4 => RecordType::A,
            Family::V6 => RecordType::AAAA,
        };
        // The final dot keeps the host's search list out of it.
        let asked = resolver.lookup(format!("{name}."), kind);
        let found = match tokio::time::timeout(limits::LOOKUP, asked).await {
            Err(_) => return Err(LookupError::Failed("the name servers do not answer".to_owned())),
            Ok(Err(error)) => return Err(not_found(&error, family)),
            Ok(Ok(found)) => found,
        };
        let addresses: Vec<IpAddr> =
            found.answers().iter().filter_map(|record| record.data.ip_addr()).collect();
        let left = found.valid_until().saturating_duration_since(Instant::now()).as_secs();
        if addresses.is_empty() {
            Err(LookupError::NoAddress(Some(family)))
        } else {
            Ok(ResolvedAddresses { addresses, ttl: u32::try_from(left).unwrap_or(MAX_TTL).min(MAX_TTL) })
        }
    }

    /// Looks up all addresses of a name, those of IPv4 first.
    pub(super) async fn lookup_all(&self, name: &HostName) -> Result<Vec<IpAddr>, LookupError> {
        let (four, six) = tokio::join!(self.lookup(name, Family::V4), self.lookup(name, Family::V6));
        match (four, six) {
            (Err(LookupError::NoAddress(_)), Err(LookupError::NoAddress(_))) => {
                Err(LookupError::NoAddress(None))
            }
            (Err(error @ LookupError::Failed(_)), Err(_)) | (Err(_), Err(error)) => Err(error),
            (four, six) => {
                let mut addresses = four.unwrap_or_default().addresses;
                addresses.extend(six.unwrap_or_default().addresses);
                Ok(addresses)
            }
        }
    }

    fn resolver(&self) -> io::Result<TokioResolver> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp();
        if let Some((of, resolver)) = current.as_ref()
            && *of == stamp
        {
            return Ok(resolver.clone());
        }
        let made = make().map_err(|error| io::Error::other(format!("the host's resolver: {error}")))?;
        *current = Some((stamp, made.clone()));
        Ok(made)
    }
}

fn make() -> Result<TokioResolver, NetError> {
    let mut builder = TokioResolver::builder_tokio()?;
    let options = builder.options_mut();
    options.cache_size = CACHED;
    options.positive_max_ttl = Some(Duration::from_secs(MAX_TTL.into()));
    options.negative_max_ttl = Some(Duration::from_secs(MAX_TTL.into()));
    options.use_hosts_file = ResolveHosts::Always;
    builder.build()
}

fn stamp() -> Stamp {
    let of = |path: &&str| match std::fs::metadata(path) {
        Ok(found) => (found.ino(), found.mtime(), found.mtime_nsec(), found.size()),
        Err(_) => (0, 0, 0, 0),
    };
    SETTINGS.iter().map(of).collect()
}

fn not_found(error: &NetError, family: Family) -> LookupError {
    match error {
        _ if error.is_nx_domain() => LookupError::NoSuchName,
        _ if error.is_no_records_found() => LookupError::NoAddress(Some(family)),
        _ => LookupError::Failed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn localhost_and_what_is_below_it_is_loopback_whatever_the_host_says() {
        let names = HostResolver::default();
        for name in ["localhost", "LOCALHOST.", "a.b.localhost"] {
            let found = names.lookup_all(&HostName::parse(name).unwrap()).await.unwrap();
            assert_eq!(found, [IpAddr::from([127, 0, 0, 1]), IpAddr::from(Ipv6Addr::LOCALHOST)], "{name}");
        }
        assert!(names.current.lock().unwrap().is_none(), "the host's resolver was asked");
        assert!(!HostName::parse("notlocalhost").unwrap().is_loopback());
    }
}
