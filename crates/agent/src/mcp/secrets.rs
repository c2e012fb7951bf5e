//! Secrets of a connection: the values in its headers and its url, which must never be shown.

use std::collections::BTreeMap;
use std::fmt;

use eyot::{Error, Result};
use reqwest::Url;
use reqwest::header::HeaderMap;

use crate::credentials::{hidden, names_credential, secret_forms, url_secrets};
use crate::http::header_map;

/// The headers that the transport sets itself.
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

/// The values to hide.
#[derive(Clone, Default)]
pub(super) struct ConnectionSecrets {
    /// All values of headers and of the url's query, longest first.
    all: Vec<String>,
    /// The values that are credentials, longest first.
    credentials: Vec<String>,
}

impl ConnectionSecrets {
    /// Collects the secrets of a url and of headers.
    pub(super) fn of(url: &Url, headers: &BTreeMap<String, String>) -> Self {
        let mut secrets = Self::default();
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        for (name, value) in headers.chain(url_secrets(url)) {
            let forms = secret_forms(&value);
            if names_credential(&name) {
                secrets.credentials.extend_from_slice(&forms);
            }
            secrets.all.extend(forms);
        }
        secrets.all.sort_by_key(|value| std::cmp::Reverse(value.len()));
        secrets.credentials.sort_by_key(|value| std::cmp::Reverse(value.len()));
        secrets
    }

    /// Hides all values, for errors and logs.
    pub(super) fn hide(&self, text: &str) -> String {
        hidden(text.to_owned(), &self.all)
    }

    /// Hides only credentials, for the server's messages: other words in them must stay unchanged.
    pub(super) fn hide_credentials(&self, text: String) -> String {
        hidden(text, &self.credentials)
    }
}

impl fmt::Debug for ConnectionSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSecrets").field("values", &self.all.len()).finish()
    }
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
        let credentials = "<redacted>, <redacted>, <redacted>, <redacted>, ";
        assert_eq!(secrets.hide(said), format!("{credentials}<redacted>, <redacted>, 1"));
        assert_eq!(secrets.hide_credentials(said.to_owned()), format!("{credentials}purple-1, streaming, 1"));
        assert!(!format!("{secrets:?}").contains("canary"));
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
