//! The archives that `docker save` wrote before OCI layouts: `manifest.json` names a configuration
//! and layers by file.

use std::io;

use serde::Deserialize;

use super::{FoundImage, ImageArchive, manifest_of};
use crate::ImageName;
use crate::config::{BlobRef, ImageParts};
use crate::digest::Digest;
use crate::failure::refused;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerManifest {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// Finds the images. An image with several names is found once for each.
pub(super) fn find(bundle: &ImageArchive) -> io::Result<Vec<FoundImage>> {
    let saved: Vec<DockerManifest> = serde_json::from_slice(&bundle.document("manifest.json")?)
        .map_err(|error| refused(format!("its manifest can't be read: {error}")))?;
    let mut found = Vec::new();
    for image in saved {
        let config = bundle.measure(&image.config)?;
        check_name(&image.config, &config)?;
        let layers: io::Result<Vec<_>> = image.layers.iter().map(|file| bundle.measure(file)).collect();
        let parts = ImageParts { config, layers: layers? };
        let manifest = manifest_of(&parts.config, &parts.layers)?;
        let root = parts.config.digest.clone();
        let files: Vec<String> = std::iter::once(image.config).chain(image.layers).collect();
        let mut names = image
            .repo_tags
            .unwrap_or_default()
            .iter()
            .filter_map(|name| ImageName::parse(name).ok())
            .map(Some)
            .collect::<Vec<_>>();
        if names.is_empty() {
            names.push(None);
        }
        for name in names {
            found.push(FoundImage {
                name,
                root: root.clone(),
                parts: parts.clone(),
                manifest: manifest.clone(),
                files: files.clone(),
            });
        }
    }
    if found.is_empty() { Err(refused("it has no image")) } else { Ok(found) }
}

/// Checks that a configuration is named after its digest: `<hex>.json`, `blobs/sha256/<hex>`. The
/// configuration itself lists the digests of its layers.
fn check_name(file: &str, config: &BlobRef) -> io::Result<()> {
    let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".json");
    match Digest::parse(&format!("sha256:{name}")) {
        Some(told) if told != config.digest => {
            Err(refused(format!("blob `{told}` is not what its digest says")))
        }
        _ => Ok(()),
    }
}
