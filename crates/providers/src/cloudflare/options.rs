//! The options of the provider.

use std::path::{Path, PathBuf};

use eyot::{Error, Result};

use crate::e2b::Secret;

/// The options of the provider.
#[derive(Debug, Clone)]
pub struct CloudflareOptions {
    /// The address of the bridge's Worker; `None`: every call is refused.
    pub url: Option<String>,
    /// The bridge's key; `None`: none is sent, which a bridge without one takes.
    pub api_key: Option<Secret>,
    /// The folder with the records of sandboxes, which only this user may read.
    pub records: PathBuf,
}

impl CloudflareOptions {
    /// Returns the default options, with what the variables of the vendor's examples say: `CLOUDFLARE_SANDBOX_WORKER_URL` and
    /// `CLOUDFLARE_SANDBOX_API_KEY`. Records are in a folder `cloudflare` of the state folder.
    pub fn from_environment(state: &Path) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            url: variable("CLOUDFLARE_SANDBOX_WORKER_URL"),
            api_key: variable("CLOUDFLARE_SANDBOX_API_KEY").map(Secret::new),
            records: state.join("cloudflare"),
        }
    }
}

/// Checks the address of a bridge, and returns it as it is compared: without a slash at its end.
///
/// # Errors
/// `invalid`: it is none, has a user, a query or a fragment, or would send the key to another machine for all to read.
pub(super) fn checked(url: &str) -> Result<String> {
    let wrong = |reason: &str| Error::invalid("url", reason);
    let address = reqwest::Url::parse(url).map_err(|error| Error::invalid("url", error))?;
    let is_local = matches!(address.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match address.scheme() {
        "https" => {}
        "http" if is_local => {}
        _ => return Err(wrong("must be `https://…`: the key would go to another machine for all to read")),
    }
    if !address.username().is_empty() || address.password().is_some() {
        return Err(wrong("must have no user: the key is CLOUDFLARE_SANDBOX_API_KEY"));
    }
    if address.query().is_some() || address.fragment().is_some() {
        return Err(wrong("must be the address of a Worker, without a query"));
    }
    Ok(address.as_str().trim_end_matches('/').to_owned())
}

/// Returns the folder for the records of the bridge at this address: another bridge has other sandboxes.
pub(super) fn folder(url: &str) -> String {
    let part = |byte: u8| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' => char::from(byte).to_string(),
        other => format!("_{other:02x}"),
    };
    url.bytes().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_would_show_the_key_or_is_none_is_refused() {
        for right in
            ["https://a.lab/", "https://a.lab/x", "http://127.0.0.1:80", "http://localhost", "http://[::1]:1"]
        {
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
        assert_eq!(checked("https://A.lab/").unwrap(), checked("https://a.lab").unwrap());
    }

    #[test]
    fn each_bridge_has_a_folder_of_its_own() {
        assert_eq!(folder("https://a.lab"), "https_3a_2f_2fa.lab");
        assert_ne!(folder("https://a.lab/_2f"), folder("https://a.lab//"));
        assert!(!folder("https://a.lab/../..").contains('/'));
    }
}
