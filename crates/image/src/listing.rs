//! The list of images.

use std::io;

use eyot::{ImageInfo, Result};

use crate::ImageName;
use crate::config::{self, ImageParts};
use crate::digest::Digest;
use crate::failure::failed;
use crate::store::ImageStore;

impl ImageStore {
    /// Lists every image, sorted by name.
    ///
    /// # Errors
    /// Errors of reading the index.
    pub fn list(&self) -> Result<Vec<ImageInfo>> {
        let mut index = self.index().map_err(failed("list images"))?;
        index.sort();
        Ok(index.iter().map(|(name, manifest)| self.describe(name, manifest)).collect())
    }

    /// Describes one image of the index.
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
        let parts = ImageParts::of_manifest(&bytes)?;
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
