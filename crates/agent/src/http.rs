//! The rules that the HTTP clients of models and of MCP servers share.

use std::collections::BTreeMap;
use std::error::Error as StdError;

use eyot::internal::system_reason;
use eyot::{Error, Result};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// The longest part of a path that is shown, in bytes: longer ones may be keys.
const MAX_SHOWN_PART_BYTES: usize = 24;

/// Checks headers. Their values are marked as sensitive, so that no `Debug` shows them.
pub(crate) fn header_map(headers: &BTreeMap<String, String>) -> Result<HeaderMap> {
    let mut checked = HeaderMap::new();
    for (name, value) in headers {
        let header = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| {
            Error::invalid("headers", format!("has a name that no header can have: `{name}`"))
        })?;
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| {
            let hint = "a value is one line of text; was a line break read with it?";
            Error::invalid("headers", format!("has a value for `{header}` that no header can have"))
                .with_hint(hint)
        })?;
        value.set_sensitive(true);
        checked.insert(header, value);
    }
    Ok(checked)
}

/// Returns the url as it may be shown: without user, query and fragment, and without long parts of its path.
pub(crate) fn shown_url(url: &Url) -> String {
    let part =
        |part: &str| if part.len() > MAX_SHOWN_PART_BYTES { "…".to_owned() } else { part.to_owned() };
    let path: Vec<String> = url.path().split('/').map(part).collect();
    format!("{}{}", url.origin().ascii_serialization(), path.join("/"))
}

/// Returns the innermost reason of an error: the outer ones name the url.
pub(crate) fn reason(error: &reqwest::Error) -> String {
    let mut innermost: Option<&(dyn StdError + 'static)> = None;
    let mut next = error.source();
    while let Some(error) = next {
        innermost = Some(error);
        next = error.source();
    }
    match innermost {
        Some(error) => match error.downcast_ref::<std::io::Error>() {
            Some(error) => system_reason(error),
            None => error.to_string(),
        },
        None => "the request failed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_user_query_and_long_parts() {
        let url = Url::parse("https://a:b@host:8443/api/s/0123456789012345678901234567/mcp?k=v#f").unwrap();
        assert_eq!(shown_url(&url), "https://host:8443/api/s/…/mcp");
    }
}
