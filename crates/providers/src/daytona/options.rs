//! The options of the provider.

use std::path::{Path, PathBuf};

use eyot::{Error, Result};
use reqwest::Url;

use crate::e2b::Secret;

/// The address of the API.
pub(super) const API_URL: &str = "https://app.daytona.io/api";
/// The owner in the labels of sandboxes.
pub(super) const OWNER: &str = "eyot";
/// The time without activity after which Daytona stops a sandbox, in minutes.
pub(super) const AUTO_STOP_MINUTES: u64 = 60;
/// The longest such time that is taken, in minutes: 30 days.
pub(super) const MAX_AUTO_STOP_MINUTES: u64 = 30 * 24 * 60;

/// The options of the provider.
#[derive(Debug, Clone)]
pub struct DaytonaOptions {
    /// The key of the vendor's API; `None`: every call is refused.
    pub api_key: Option<Secret>,
    /// The address of the API.
    pub api_url: String,
    /// The region that sandboxes are made in; `None`: the organization's default.
    pub target: Option<String>,
    /// The snapshot of sandboxes that name none; `None`: the vendor's default.
    pub snapshot: Option<String>,
    /// The time without activity after which Daytona stops a sandbox, in minutes; 0: never.
    pub auto_stop_minutes: u64,
    /// The owner in the labels of sandboxes. Those of other owners are not seen.
    pub owner: String,
    /// The folder with the notes about adopted sandboxes and about guests, which only this user may read.
    pub notes: PathBuf,
}

impl DaytonaOptions {
    /// Returns the default options, with what the vendor's own variables say: `DAYTONA_API_KEY`, `DAYTONA_API_URL` and
    /// `DAYTONA_TARGET`. Notes are in a folder `daytona` of the state folder.
    pub fn from_environment(state: &Path) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            api_key: variable("DAYTONA_API_KEY").map(Secret::new),
            api_url: variable("DAYTONA_API_URL").unwrap_or_else(|| API_URL.to_owned()),
            target: variable("DAYTONA_TARGET"),
            snapshot: None,
            auto_stop_minutes: AUTO_STOP_MINUTES,
            owner: OWNER.to_owned(),
            notes: state.join("daytona"),
        }
    }
}

/// Tells whether an address is of this machine.
pub(super) fn is_local(address: &Url) -> bool {
    matches!(address.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// Checks an address that the key is sent to, and returns it without a slash at its end.
///
/// # Errors
/// `invalid`: it is none, has a user, a query or a fragment, or would send the key over the network for all to read.
pub(super) fn checked(url: &str) -> Result<Url> {
    let wrong = |reason: &str| Error::invalid("api_url", reason);
    let mut address = Url::parse(url).map_err(|error| Error::invalid("api_url", error))?;
    match address.scheme() {
        "https" => {}
        "http" if is_local(&address) => {}
        _ => return Err(wrong("must be `https://…`: the key would go over the network for all to read")),
    }
    if !address.username().is_empty() || address.password().is_some() {
        return Err(wrong("must have no user: the key is DAYTONA_API_KEY"));
    }
    if address.query().is_some() || address.fragment().is_some() {
        return Err(wrong("must be an address without a query"));
    }
    let path = address.path().trim_end_matches('/').to_owned();
    address.set_path(&path);
    Ok(address)
}

/// Returns the address of a path below another one, whose parts are escaped.
pub(super) fn below(address: &Url, parts: &[&str]) -> Url {
    let mut whole = address.clone();
    // An address with a host, as every checked one, has a path.
    if let Ok(mut path) = whole.path_segments_mut() {
        path.pop_if_empty().extend(parts);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_would_show_the_key_or_is_none_is_refused() {
        for right in ["https://a.lab/api/", "http://127.0.0.1:80", "http://localhost/api", "http://[::1]:1"] {
            assert!(checked(right).is_ok(), "{right}");
        }
        for wrong in [
            "",
            "a.lab",
            "http://a.lab",
            "https://u:p@a.lab",
            "https://a.lab?x",
            "https://a.lab#x",
            "ftp://a",
        ] {
            assert_eq!(checked(wrong).unwrap_err().kind(), eyot::ErrorKind::Invalid, "{wrong}");
        }
    }

    #[test]
    fn a_part_of_a_path_leads_nowhere_else() {
        let api = checked("https://a.lab/api/").unwrap();
        assert_eq!(below(&api, &["sandbox", "x"]).as_str(), "https://a.lab/api/sandbox/x");
        assert_eq!(below(&api, &["sandbox", "a/b?c#d"]).as_str(), "https://a.lab/api/sandbox/a%2Fb%3Fc%23d");
    }
}
