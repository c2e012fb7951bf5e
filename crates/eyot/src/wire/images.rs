//! Images on the wire.

use serde::{Deserialize, Serialize};

use crate::images::ImageInfo;

/// Images of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImageList {
    /// The images, sorted by name.
    pub images: Vec<ImageInfo>,
}
