//! Sources of images that a store does not have.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use eyot::{ImageInfo, Result};

use crate::ImageName;
use crate::progress::Progress;
use crate::store::ImageStore;

/// A source of images by name, such as a registry or a Docker Engine.
#[async_trait]
pub trait ImageSource: fmt::Debug + Send + Sync {
    /// Brings the image of that name into the store, under that name, whatever image had it before.
    /// Returns `None` if the source has no such image. Dropping the future leaves only partial
    /// blobs with which a later call continues.
    ///
    /// # Errors
    /// Errors of reaching the source, and faults of its image.
    async fn bring(
        &self,
        store: &ImageStore,
        name: &ImageName,
        progress: Arc<dyn Progress>,
    ) -> Result<Option<ImageInfo>>;
}
