//! The images there are.

use std::io;

use eyot::Result;
use serde::Serialize;

use crate::config::{self, Parts};
use crate::digest::Digest;
use crate::failure::failed;
use crate::reference::ImageName;
use crate::store::ImageStore;

/// An image of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageInfo {
    /// Its name, as short as it can be.
    pub name: String,
    /// Its manifest's digest.
    pub digest: String,
    /// How many layers it has.
    pub layers: usize,
    /// Its blobs together, as they are kept; layers that other images share are counted for each.
    pub size_bytes: u64,
    /// When it was made, as it says itself (RFC 3339).
    pub created: Option<String>,
    /// Nothing of it is missing.
    pub complete: bool,
}

impl ImageStore {
    /// Every image, by name.
    ///
    /// # Errors
    /// What keeps the index from being read.
    pub fn list(&self) -> Result<Vec<ImageInfo>> {
        let mut index = self.index().map_err(failed("list images"))?;
        index.sort();
        Ok(index.iter().map(|(name, manifest)| self.describe(name, manifest)).collect())
    }

    /// One that is named in the index.
    pub(crate) fn describe(&self, name: &ImageName, manifest: &Digest) -> ImageInfo {
        let (name, digest) = (name.short().to_owned(), manifest.to_string());
        self.describe_parts(manifest).map_or_else(
            |_| ImageInfo {
                name: name.clone(),
                digest: digest.clone(),
                layers: 0,
                size_bytes: 0,
                created: None,
                complete: false,
            },
            |info| ImageInfo { name: name.clone(), digest: digest.clone(), ..info },
        )
    }

    fn describe_parts(&self, manifest: &Digest) -> io::Result<ImageInfo> {
        let bytes = self.document(manifest)?;
        let parts = Parts::of_manifest(&bytes)?;
        let config = config::parse(&self.document(&parts.config.digest)?)?;
        let layers: u64 = parts.layers.iter().map(|layer| layer.bytes).sum();
        Ok(ImageInfo {
            name: String::new(),
            digest: String::new(),
            layers: parts.layers.len(),
            size_bytes: layers + parts.config.bytes + bytes.len() as u64,
            created: config.created().clone(),
            complete: self.layers_of(manifest)?.is_some(),
        })
    }
}
