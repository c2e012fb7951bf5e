//! The options of a connection to an MCP server.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use eyot::{Error, Result};
use reqwest::Url;
use serde::Deserialize;

use crate::http::shown_url;

/// The default time for connecting and listing the tools, in milliseconds.
const CONNECT_TIMEOUT_MS: u64 = 30_000;
/// The default time for a call, in milliseconds.
const CALL_TIMEOUT_MS: u64 = 60_000;

/// Options of [`connect_mcp_server()`](crate::connect_mcp_server).
///
/// The options can be read from front matter: a missing field gets its default, and an unknown field is an error. `Debug`
/// shows the names of the headers without their values, and the url without its query.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpServerOptions {
    /// The address of the server's endpoint, `http` or `https`, without user and password. Its query is a secret.
    pub url: String,
    /// The transport that the server speaks.
    pub transport: McpTransport,
    /// Headers of every request, such as `authorization`. Their values are secrets. Headers that the protocol sets itself
    /// are refused.
    pub headers: BTreeMap<String, String>,
    /// The client's name, as sent to the server. The default is `eyot`.
    pub client_name: String,
    /// The client's version, as sent to the server. The default is Eyot's version.
    pub client_version: String,
    /// The time limit for connecting and listing the tools, in milliseconds. The default is 30,000.
    pub connect_timeout_ms: u64,
    /// The time limit for a call, in milliseconds. The default is 60,000.
    pub timeout_ms: u64,
    /// The tools to offer, by the server's own names. `None`: all of them.
    pub tools: Option<Vec<String>>,
}

/// The transport of an MCP server that is reached by HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum McpTransport {
    /// Streamable HTTP: one address for everything, usually `/mcp`. Written as `streamable-http` or `http`.
    #[default]
    #[serde(alias = "http")]
    StreamableHttp,
    /// The older transport: a stream of events, usually at `/sse`, that names the address for messages.
    Sse,
}

impl Default for McpServerOptions {
    fn default() -> Self {
        Self {
            url: String::new(),
            transport: McpTransport::default(),
            headers: BTreeMap::new(),
            client_name: "eyot".to_owned(),
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
            connect_timeout_ms: CONNECT_TIMEOUT_MS,
            timeout_ms: CALL_TIMEOUT_MS,
            tools: None,
        }
    }
}

impl McpServerOptions {
    /// Returns the default options for a server at this address.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), ..Self::default() }
    }

    /// Adds a header to every request, or replaces the header with the same name.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Checks the address and returns it.
    pub(super) fn address(&self) -> Result<Url> {
        let invalid =
            |reason: &str| Error::invalid("url", reason).with_hint("such as `http://localhost:3001/mcp`");
        let url = Url::parse(self.url.trim()).map_err(|_| invalid("of an MCP server is not a url"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(invalid("of an MCP server must begin with `http://` or `https://`"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let error = Error::invalid("url", "of an MCP server must not hold a user or a password");
            return Err(error.with_hint("set the header `authorization` instead"));
        }
        Ok(url)
    }

    /// Returns the time limit for connecting.
    pub(super) fn connect_timeout(&self) -> Result<Duration> {
        positive("connect_timeout_ms", self.connect_timeout_ms)
    }

    /// Returns the time limit for a call.
    pub(super) fn call_timeout(&self) -> Result<Duration> {
        positive("timeout_ms", self.timeout_ms)
    }
}

fn positive(field: &str, milliseconds: u64) -> Result<Duration> {
    if milliseconds == 0 {
        return Err(Error::invalid(field, "must be at least 1"));
    }
    Ok(Duration::from_millis(milliseconds))
}

impl fmt::Debug for McpServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.address().map_or_else(|_| "(not a url)".to_owned(), |url| shown_url(&url));
        f.debug_struct("McpServerOptions")
            .field("url", &url)
            .field("transport", &self.transport)
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("client_name", &self.client_name)
            .field("client_version", &self.client_version)
            .field("connect_timeout_ms", &self.connect_timeout_ms)
            .field("timeout_ms", &self.timeout_ms)
            .field("tools", &self.tools)
            .finish()
    }
}
