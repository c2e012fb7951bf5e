//! The capabilities of sandboxes that are Pods.

use eyot::Capabilities;
use eyot_guest::client::GUEST_CAPABILITIES;

/// Returns the capabilities of this provider's sandboxes.
pub fn capabilities() -> Capabilities {
    Capabilities::new(GUEST_CAPABILITIES)
}
