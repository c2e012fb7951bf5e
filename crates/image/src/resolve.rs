//! Look-up of the layers and the configuration of an image by name.

use std::io;
use std::path::PathBuf;

use eyot::{Error, ErrorKind, Result};
use rustix::io::Errno;

use crate::ImageName;
use crate::config::{self, ImageParts, RunConfig};
use crate::digest::Digest;
use crate::failure::{failed, refused};
use crate::reference::digest_of;
use crate::store::ImageStore;

/// An image of the store, unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedImage {
    /// The image's name.
    pub name: ImageName,
    /// The manifest's digest.
    pub manifest: Digest,
    /// The folder of the layers.
    pub folder: PathBuf,
    /// The names of the layers in the folder, the topmost first: ten letters and digits each, 127
    /// at most.
    pub layers: Vec<String>,
    /// The way in which the image wants its commands to be run.
    pub run: RunConfig,
}

impl ImageStore {
    /// Returns the image of that name; `None` if the store has none. Other processes may remove its
    /// layers unless [`Self::hold`] is held.
    ///
    /// # Errors
    /// Errors of reading the store, and an image with a missing part.
    pub fn resolve(&self, name: &ImageName) -> Result<Option<ResolvedImage>> {
        let what = format!("open image `{}`", name.short());
        let Some(manifest) = self.manifest_of(name).map_err(failed(what.as_str()))? else { return Ok(None) };
        match self.put_together(name, &manifest) {
            Ok(image) => Ok(Some(image)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("{what}: a part of it is missing from the store");
                let hint = format!("remove it and get it anew: eyot image rm --force {}", name.short());
                Err(Error::new(ErrorKind::Invalid, message).with_hint(hint).with_source(error))
            }
            Err(error) => Err(failed(what)(error)),
        }
    }

    /// Finds a manifest by the image's name; or, if that has a digest, by repository and digest,
    /// whatever the tag.
    pub(crate) fn manifest_of(&self, name: &ImageName) -> io::Result<Option<Digest>> {
        let wanted = digest_of(name);
        let fits = |(known, manifest): &(ImageName, Digest)| {
            known == name || (wanted.as_ref() == Some(manifest) && known.repository() == name.repository())
        };
        Ok(self.index()?.into_iter().find(fits).map(|(_, manifest)| manifest))
    }

    fn put_together(&self, name: &ImageName, manifest: &Digest) -> io::Result<ResolvedImage> {
        let parts = ImageParts::of_manifest(&self.document(manifest)?)?;
        let config = config::parse(&self.document(&parts.config.digest)?)?;
        let mut layers = Vec::new();
        // A layer whose root hides everything below it ends the list, because overlays always merge
        // roots.
        for diff in config::diff_ids(&config, parts.layers.len())?.iter().rev() {
            let layer = self.layer_of(diff).ok_or(io::ErrorKind::NotFound)?;
            let hides = is_opaque(&self.layers().join(&layer))?;
            layers.push(layer);
            if hides {
                break;
            }
        }
        let run = RunConfig::of(&config)?;
        let (name, manifest) = (name.clone(), manifest.clone());
        Ok(ResolvedImage { name, manifest, folder: self.layers(), layers, run })
    }

    /// Returns the layers of an image, for comparison with those in use; `None` if a part of it is
    /// missing.
    pub(crate) fn layers_of(&self, manifest: &Digest) -> io::Result<Option<Vec<String>>> {
        let name = ImageName::parse("any").map_err(|_| refused("no name"))?;
        match self.put_together(&name, manifest) {
            Ok(image) => Ok(Some(image.layers)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn is_opaque(layer: &std::path::Path) -> io::Result<bool> {
    match rustix::fs::lgetxattr(layer, "user.overlay.opaque", &mut [0_u8; 1][..]) {
        Ok(_) => Ok(true),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
