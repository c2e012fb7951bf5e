//! The launcher: a small single-threaded process, started once per provider, that makes every sandbox.
//!
//! A server must not fork itself: that takes 28 ms from a large process, against 0.5 ms from the
//! launcher, and nothing of a server's memory may be near a sandbox. [`program`] runs in the
//! launcher, [`make`] makes one sandbox, [`child`] is its child between the clone and the guest's
//! exec, [`new_root`] has the last steps of a child that replaces the root of a living sandbox, and
//! `client` is the provider's side. A program that makes one sandbox and ends has the
//! launcher as a thread, because starting a process would take as long as the sandbox.

mod account;
mod child;
#[cfg(feature = "provider")]
pub(crate) mod client;
#[cfg(feature = "provider")]
pub(crate) mod current;
mod devices;
pub(crate) mod egress_sockets;
#[cfg(feature = "provider")]
pub(crate) mod guest_file;
mod make;
mod new_root;
pub(crate) mod program;
#[cfg(feature = "provider")]
pub(crate) mod program_file;
mod source;

/// The largest plan, in bytes. One message on a socket can be that large on every host.
pub(crate) const MAX_PLAN_BYTES: usize = 128 * 1024;
