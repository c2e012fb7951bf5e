//! The launcher: a small single-threaded process, started once per provider, that makes every sandbox.
//!
//! A server must never fork itself (28 ms from a large parent, against 0.5 from here), and nothing of a server's memory
//! may be near a sandbox. [`program`] is what runs in the launcher, [`child`] what its child does between the clone
//! and the guest's exec; `client` is the provider's side.

pub(crate) mod child;
#[cfg(feature = "provider")]
pub(crate) mod client;
pub(crate) mod egress_sockets;
pub(crate) mod program;
mod source;

/// How large a plan may be, in bytes: what one message on a socket carries everywhere.
pub(crate) const MAX_PLAN_BYTES: usize = 128 * 1024;

/// The first message, which brings the guest's program.
#[cfg(feature = "provider")]
pub(crate) const GUEST: &[u8] = b"guest";
/// The same from somebody who wants to know that the launcher runs.
pub(crate) const GUEST_AND_ANSWER: &[u8] = b"guest?";
