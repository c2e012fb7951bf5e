//! The values of a connection's headers and url, which nothing may show.

use std::collections::BTreeMap;
use std::fmt;

use eyot::{Error, Result};
use reqwest::Url;
use reqwest::header::HeaderMap;

use crate::http::header_map;

/// The text that stands where a secret stood.
const REDACTED: &str = "[redacted]";
/// The shortest value that is looked for, in bytes: shorter ones stand in ordinary words.
const MIN_SECRET_BYTES: usize = 8;
/// The longest part of a path that is shown, in bytes: longer ones may be keys.
const MAX_SHOWN_PART_BYTES: usize = 24;

/// Headers that belong to the transport.
const RESERVED: [&str; 8] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// Parts of the names of headers and of parts of a query whose values are credentials.
const CREDENTIAL_NAMES: [&str; 6] = ["auth", "cookie", "key", "token", "secret", "password"];

/// The values to hide.
#[derive(Clone, Default)]
pub(super) struct ConnectionSecrets {
    /// Every value of a header and of the url's query, the longest first.
    all: Vec<String>,
    /// Those that give access, the longest first.
    credentials: Vec<String>,
}

impl ConnectionSecrets {
    /// The secrets of this url and these headers.
    pub(super) fn of(url: &Url, headers: &BTreeMap<String, String>) -> Self {
        let mut secrets = Self::default();
        for (name, value) in headers {
            let is_credential = names_credential(name);
            secrets.add(value.trim(), is_credential);
            // `Bearer KEY`: the key alone as well.
            if let Some((_, key)) = value.trim().split_once(' ') {
                secrets.add(key.trim(), is_credential);
            }
        }
        for (name, value) in url.query_pairs() {
            secrets.add(&value, names_credential(&name));
        }
        // The same as they stand in the url, where some letters are written as `%20`.
        for pair in url.query().unwrap_or_default().split('&') {
            let (name, value) = pair.split_once('=').unwrap_or(("", pair));
            secrets.add(value, names_credential(name));
        }
        secrets.all.sort_by_key(|value| std::cmp::Reverse(value.len()));
        secrets.credentials.sort_by_key(|value| std::cmp::Reverse(value.len()));
        secrets
    }

    fn add(&mut self, value: &str, is_credential: bool) {
        if value.len() < MIN_SECRET_BYTES {
            return;
        }
        self.all.push(value.to_owned());
        if is_credential {
            self.credentials.push(value.to_owned());
            // As it stands in a message.
            self.credentials
                .extend(serde_json::to_string(value).map(|json| json[1..json.len() - 1].to_owned()));
        }
    }

    /// Hides every value: for errors and logs.
    pub(super) fn hide(&self, text: &str) -> String {
        hidden(text.to_owned(), &self.all)
    }

    /// Hides the values that give access: for the server's messages, in which other words must stay what they are.
    pub(super) fn hide_credentials(&self, text: String) -> String {
        hidden(text, &self.credentials)
    }
}

impl fmt::Debug for ConnectionSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSecrets").field("values", &self.all.len()).finish()
    }
}

fn names_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    CREDENTIAL_NAMES.iter().any(|part| name.contains(part))
}

fn hidden(text: String, secrets: &[String]) -> String {
    secrets.iter().fold(text, |text, secret| {
        if text.contains(secret.as_str()) { text.replace(secret.as_str(), REDACTED) } else { text }
    })
}

/// Checks headers: those that the protocol sets are refused.
pub(super) fn checked_headers(headers: &BTreeMap<String, String>) -> Result<HeaderMap> {
    let checked = header_map(headers)?;
    match RESERVED.iter().find(|name| checked.contains_key(**name)) {
        Some(name) => {
            Err(Error::invalid("headers", format!("must not set `{name}`, which the protocol sets")))
        }
        None => Ok(checked),
    }
}

/// Returns the url as it may be shown: without user, query and fragment, and without long parts of its path.
pub(super) fn shown_url(url: &Url) -> String {
    let part =
        |part: &str| if part.len() > MAX_SHOWN_PART_BYTES { "…".to_owned() } else { part.to_owned() };
    let path: Vec<String> = url.path().split('/').map(part).collect();
    format!("{}{}", url.origin().ascii_serialization(), path.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn values_are_hidden_with_and_without_their_scheme() {
        let url = Url::parse("https://host/mcp?api_key=k%20123456&x=1&mode=streaming").unwrap();
        let headers = headers(&[("Authorization", "Bearer canary-1"), ("x-team", "purple-1")]);
        let secrets = ConnectionSecrets::of(&url, &headers);
        let said = "Bearer canary-1, canary-1, k 123456, k%20123456, purple-1, streaming, 1";
        let credentials = "[redacted], [redacted], [redacted], [redacted], ";
        assert_eq!(secrets.hide(said), format!("{credentials}[redacted], [redacted], 1"));
        assert_eq!(secrets.hide_credentials(said.to_owned()), format!("{credentials}purple-1, streaming, 1"));
        assert!(!format!("{secrets:?}").contains("canary"));
    }

    #[test]
    fn a_url_is_shown_without_user_query_and_long_parts() {
        let url = Url::parse("https://a:b@host:8443/api/s/0123456789012345678901234567/mcp?k=v#f").unwrap();
        assert_eq!(shown_url(&url), "https://host:8443/api/s/…/mcp");
    }

    #[test]
    fn a_header_that_cannot_be_is_refused_without_its_value() {
        for (name, value) in
            [("a b", "canary"), ("x", "can\nary"), ("Mcp-Session-Id", "canary"), ("Host", "canary")]
        {
            let error = checked_headers(&headers(&[(name, value)])).unwrap_err();
            assert!(!error.to_string().contains("ary"), "{error}");
        }
    }
}
