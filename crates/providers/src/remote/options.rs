//! The address of a server, and the key for it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use eyot::Error;
use reqwest::Url;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteAddress {
    /// `http://host:port`, `https://host:port`.
    Http(Url),
    /// A unix socket: `unix:/path`.
    Unix(PathBuf),
}

impl FromStr for RemoteAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.starts_with('/') {
                Ok(Self::Unix(path.into()))
            } else {
                Err(Error::invalid("server", format!("must be unix:/PATH, not `{text}`")))
            };
        }
        let wrong = |reason: &dyn fmt::Display| {
            Error::invalid("server", format!("must look like http://127.0.0.1:7070, not `{text}`: {reason}"))
        };
        if !text.contains("://") {
            return Err(wrong(&"it begins with neither http:// nor https:// nor unix:/"));
        }
        let url = Url::parse(text).map_err(|error| wrong(&error))?;
        match (url.scheme(), url.host_str(), url.path(), url.query()) {
            ("http" | "https", Some(_), "/", None) => Ok(Self::Http(url)),
            _ => Err(wrong(&"scheme, host and port, nothing else")),
        }
    }
}

/// The options of a connection to a server.
#[derive(Clone)]
pub struct RemoteOptions {
    /// The address.
    pub address: RemoteAddress,
    /// A PEM file with the certificate authorities to trust for an `https` server, in place of the
    /// system's.
    pub ca_certificate: Option<PathBuf>,
    /// The API key; `None` for a server that needs none.
    pub key: Option<String>,
    /// The pool; `None`: the key's own.
    pub pool: Option<String>,
}

impl fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteOptions")
            .field("address", &self.address)
            .field("ca_certificate", &self.ca_certificate)
            .field("key", &self.key.as_ref().map(|_| "…"))
            .field("pool", &self.pool)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_or_a_socket() {
        assert!(matches!("http://localhost:7070".parse(), Ok(RemoteAddress::Http(_))));
        assert!(matches!("https://box.example".parse(), Ok(RemoteAddress::Http(_))));
        assert_eq!(
            "unix:/run/eyot.sock".parse::<RemoteAddress>().unwrap(),
            RemoteAddress::Unix("/run/eyot.sock".into())
        );
        for wrong in [
            "",
            "localhost:7070",
            "https://a/path",
            "http://a/path",
            "http://a/?x",
            "unix:relative",
            "ftp://a",
        ] {
            assert!(wrong.parse::<RemoteAddress>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_key_is_not_shown() {
        let options = RemoteOptions {
            address: "http://a".parse().unwrap(),
            ca_certificate: None,
            key: Some("eyot_secret".into()),
            pool: None,
        };
        assert!(!format!("{options:?}").contains("secret"));
    }
}
