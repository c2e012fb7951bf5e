//! Previews on the wire: a port of a sandbox as a web page.

use serde::{Deserialize, Serialize};

/// The header by which a program shows a preview's token.
pub const PREVIEW_TOKEN: &str = "eyot-preview-token";

/// A preview to open: for whom, and for how long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PreviewBody {
    /// Anybody who knows the address may see it; by default only who has a token.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub public: bool,
    /// For how long, in milliseconds, 1,000 to 604,800,000 (a week); by default 43,200,000 (12 hours).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// The addresses of a preview of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PreviewAnswer {
    /// The sandbox's id.
    pub sandbox: String,
    /// The port inside.
    pub port: u16,
    /// The address to open: the preview's own host, if the server has such names where it was asked, else as `path_url`. It has a
    /// token that works once, within an hour, and becomes a cookie then; a public one has none.
    pub url: String,
    /// The address below the server's own host, with another such token. All previews there are one origin to a browser.
    pub path_url: String,
    /// The token that a program sends in the header, until `expires_at`; `null`: it is public.
    pub token: Option<String>,
    /// The header's name.
    pub header: String,
    /// Anybody who knows the address may see it.
    pub public: bool,
    /// Until when (RFC 3339). It ends before that with the sandbox, with the server, and when it is revoked.
    pub expires_at: String,
}
