//! The launcher: a small single-threaded process, started once per provider, that makes every sandbox.
//!
//! A server must never fork itself (28 ms from a large parent, against 0.5 from here), and nothing of a server's memory
//! may be near a sandbox. [`program`] is what runs in the launcher, [`make`] how one sandbox is made, [`child`] what its
//! child does between the clone and the guest's exec; `client` is the provider's side. A program that makes one sandbox
//! and ends has its launcher as a thread: starting a process would cost it as much as the sandbox.

mod account;
mod child;
#[cfg(feature = "provider")]
pub(crate) mod client;
#[cfg(feature = "provider")]
pub(crate) mod current;
mod devices;
pub(crate) mod egress_sockets;
mod make;
pub(crate) mod program;
#[cfg(feature = "provider")]
pub(crate) mod program_file;
mod source;

/// The largest plan, in bytes. One message on a socket can be that large on every host.
pub(crate) const MAX_PLAN_BYTES: usize = 128 * 1024;
