//! Sandboxes of another Eyot server, over its HTTP API: the same contract from another machine.
//!
//! The handle on this side applies its rules, and the server applies its own as well. Commands and
//! connections to ports use WebSockets. Watches and followed logs use server-sent events.
//! Everything else is a plain request.

mod branch_calls;
mod create;
mod driver;
mod exec;
mod http;
mod images;
mod named_certificates;
mod options;
mod parts;
mod port;
mod provider;
mod server;
mod server_events;
mod snapshots;
mod tls;
mod upload;

pub use options::{RemoteAddress, RemoteOptions};
pub use provider::RemoteProvider;
pub use server::RemoteServer;

/// The provider's name in errors, where the name of the server's own provider is not known.
pub const NAME: &str = "remote";
