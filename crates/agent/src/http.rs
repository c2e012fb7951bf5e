//! The rules that the HTTP clients of models and of MCP servers share.

use std::collections::BTreeMap;

use eyot::{Error, Result};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

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
