//! The bridge with the records of its sandboxes.

use super::bridge::BridgeClient;
use super::records::BridgeRecords;

/// The bridge, and the records of its sandboxes.
#[derive(Debug)]
pub(super) struct BridgeHost {
    pub client: BridgeClient,
    pub records: BridgeRecords,
}
