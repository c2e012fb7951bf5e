//! Sandboxes of another Eyot server, over its HTTP API: the same contract from another machine.
//!
//! The rules of the handle hold on this side; the server's own hold as well. Commands and connections to ports go over
//! WebSockets, what is watched or followed over server-sent events, everything else over plain requests.

mod create;
mod driver;
mod exec;
mod http;
mod options;
mod parts;
mod port;
mod provider;
mod server;
mod server_events;
mod tls;
mod upload;

pub use options::{RemoteAddress, RemoteOptions};
pub use provider::RemoteProvider;
pub use server::RemoteServer;

/// The name that errors of this provider have where the server's own provider is not known.
pub const NAME: &str = "remote";
