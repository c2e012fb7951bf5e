//! Snapshots on the wire.

use serde::{Deserialize, Serialize};

use crate::snapshot::SnapshotInfo;

/// The snapshots of a pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SnapshotList {
    /// The snapshots, oldest first.
    pub snapshots: Vec<SnapshotInfo>,
}
