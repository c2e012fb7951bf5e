//! The HTTP layer that the API, MCP and previews share: connections, limits, TLS, and the check of
//! `Host` and `Origin`.

pub(crate) mod cors;
pub(crate) mod guard;
pub(crate) mod holding;
pub(crate) mod idle;
pub(crate) mod limits;
mod linger;
pub(crate) mod listen;
pub(crate) mod own_cookie;
pub(crate) mod own_page;
mod peer;
mod place;
mod tls;
pub(crate) mod token;
pub(crate) mod watched;

pub use guard::{AllowedHost, AllowedOrigin};
pub(crate) use peer::Peer;
pub use tls::Certificate;
