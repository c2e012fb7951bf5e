//! Requests of the page at `/` that other clients seldom make: a session of a browser, terminals
//! that outlive a connection.

use serde::{Deserialize, Serialize};

use crate::exec::PtySize;
use crate::spec::SandboxName;

/// The header by which the page shows that it is the page: a session's `proof`; any value where no key is needed.
pub const PAGE_PROOF: &str = "eyot-page";

/// A sign-in.
#[derive(Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SessionBody {
    /// An API key.
    pub key: String,
}

/// The session of a request.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionAnswer {
    /// The server needs a key.
    pub needs_key: bool,
    /// The request is let in.
    pub signed_in: bool,
    /// The key's name; `null`: not signed in, or no key is needed.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub name: Option<SandboxName>,
    /// The pools that may be used; empty where the request is not signed in.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<String>))]
    pub pools: Vec<SandboxName>,
    /// The proof that the page sends in the header `Eyot-Page` from now on; told once, in the
    /// answer to a sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// A terminal to open.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TerminalBody {
    /// A shell line; by default bash, or sh where there is none.
    #[serde(default)]
    pub command: Option<String>,
    /// The working directory; by default the sandbox's.
    #[serde(default)]
    pub cwd: Option<String>,
    /// The size of the terminal.
    pub size: PtySize,
}

/// A terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TerminalAnswer {
    /// The id.
    pub id: String,
    /// The command that runs in it; `null`: a shell.
    pub command: Option<String>,
    /// The time at which it was opened, in milliseconds since 1970 (UTC).
    pub started_ms: i64,
    /// Somebody is connected to it.
    pub attached: bool,
}

/// The terminals of a sandbox that can be connected to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TerminalList {
    /// The oldest first.
    pub terminals: Vec<TerminalAnswer>,
}
