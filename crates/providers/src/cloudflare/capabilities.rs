//! The capabilities of Cloudflare's sandboxes.

use eyot::{Capabilities, Capability};
use eyot_guest::client::GUEST_CAPABILITIES;

/// Returns what every sandbox can do: what the guest can, but for deadlines. A container goes on when its guest has ended,
/// and the bridge has no call that says when it is to end.
pub fn capabilities() -> Capabilities {
    Capabilities::new(GUEST_CAPABILITIES.into_iter().filter(|one| *one != Capability::Deadlines))
}
