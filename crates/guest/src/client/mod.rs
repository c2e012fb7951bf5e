//! The host's side of the guest protocol: a [`Connection`] over any byte stream, and a
//! [`GuestDriver`] that makes an `eyot::SandboxDriver` of it.
//!
//! The guest is untrusted. Whatever it sends is bounded before it is kept, and the first thing that
//! the protocol does not allow ends the connection: every call that is under way settles with an
//! error, and nothing waits for ever because of it. How a guest is made, and whether a sandbox
//! whose stream ended is gone for good, is its maker's business.

mod answer;
mod assembly;
mod call;
mod capabilities;
mod connection;
mod connection_state;
mod convert;
mod dial;
mod driver;
mod exec;
mod fault;
mod feed;
mod file_check;
mod frames;
mod handshake;
mod hold;
mod kept;
mod lanes;
mod listing;
mod local_stream;
mod logs;
mod passed_files;
mod passed_read;
mod passed_write;
mod pieces;
mod reader;
mod send_queue;
mod shape;
mod slot;
mod stream;
mod table;
mod watch;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use capabilities::GUEST_CAPABILITIES;
pub use connection::Connection;
pub use driver::{Destroyer, EgressControl, GuestDriver, GuestDriverParts, LifecycleKeeper, Meter};
pub use fault::{Inquiry, Verdict};
pub use file_check::FileGate;
pub use hold::{AskedHold, CallHold};

/// Locks; a panic elsewhere left nothing half done here, since each locked section only moves plain
/// values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
