//! The images that a provider makes sandboxes from, for those who manage them: the command line, and
//! a server for its clients.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::driver::ByteStream;
use crate::error::Result;
use crate::spec::SandboxId;

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ImageInfo {
    /// The image's name, as short as it can be.
    #[cfg_attr(feature = "openapi", schema(example = "node:22"))]
    pub name: String,
    /// The manifest's digest.
    pub digest: String,
    /// The number of layers.
    pub layers: usize,
    /// The size of the blobs together, in bytes, as they are kept. Layers that images share count
    /// for each image.
    pub size_bytes: u64,
    /// The time at which it was made, as the image says (RFC 3339).
    pub created: Option<String>,
    /// Tells whether every part is there.
    pub complete: bool,
}

/// The progress of a pull.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PullProgress {
    /// The bytes that have come in.
    pub received_bytes: u64,
    /// The size of the blobs that were begun, in bytes. It grows until the last one is.
    pub total_bytes: u64,
    /// The number of blobs that were begun: the configuration and the layers.
    pub blobs: u64,
    /// The number of blobs that are in the store.
    pub blobs_done: u64,
}

/// The removed items.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PruneReport {
    /// Names of images.
    pub images: Vec<String>,
    /// The number of unpacked layers.
    pub layers: usize,
    /// The number of blobs.
    pub blobs: usize,
    /// The blobs' bytes.
    pub blob_bytes: u64,
}

/// A function that receives the progress of a pull, many times a second and from any thread.
pub type PullObserver = Arc<dyn Fn(PullProgress) + Send + Sync>;

/// A function that returns the name by which users know a sandbox, for errors; `None`: the
/// provider's own name for it.
pub type SandboxNamer = Arc<dyn Fn(&SandboxId) -> Option<String> + Send + Sync>;

/// The images of a provider.
#[async_trait]
pub trait SandboxImages: Send + Sync + 'static {
    /// Lists every image, sorted by name.
    async fn list(&self) -> Result<Vec<ImageInfo>>;

    /// Pulls an image from its registry, or what is missing of it. Dropping the future ends the
    /// pull. A later pull continues where it broke off.
    ///
    /// # Errors
    /// `permission` if the image may not be fetched for clients, or if the registry asks for
    /// (other) credentials. `not_found` if the registry has none of that name.
    async fn pull(&self, name: &str, observer: PullObserver) -> Result<ImageInfo>;

    /// Imports the images of an archive: an OCI layout, what `docker save` writes, or a tarball of a
    /// root file system, plain or compressed. `name` is the image's name. By default it has the name
    /// in the archive. A tarball of a root file system has none.
    ///
    /// # Errors
    /// The errors of `archive`. `invalid` for an archive that is none of these, or is damaged.
    async fn import(&self, archive: ByteStream, name: Option<&str>) -> Result<Vec<ImageInfo>>;

    /// Removes an image by name, and what no other image and no sandbox needs of it. With `force`
    /// an image that sandboxes are made over loses its name, and they keep their layers.
    ///
    /// # Errors
    /// `not_found`. `conflict` naming the sandboxes that are made over it.
    async fn remove(&self, name: &str, force: bool) -> Result<PruneReport>;
}
