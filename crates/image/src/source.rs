//! Where images come from that a store does not have.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use eyot::Result;

use crate::listing::ImageInfo;
use crate::progress::Progress;
use crate::reference::ImageName;
use crate::store::ImageStore;

/// Something that has images by name, such as a registry or a Docker Engine.
#[async_trait]
pub trait ImageSource: fmt::Debug + Send + Sync {
    /// Brings the image of that name into the store, under that name, whatever the store has by it; `None` if there is no
    /// such image here. Given up, it leaves nothing but what a later one goes on with.
    ///
    /// # Errors
    /// What keeps the source from being asked, and what is wrong with the image that it has.
    async fn bring(
        &self,
        store: &ImageStore,
        name: &ImageName,
        progress: Arc<dyn Progress>,
    ) -> Result<Option<ImageInfo>>;
}
