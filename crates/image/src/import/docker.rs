//! What `docker save` wrote before it wrote OCI layouts: `manifest.json`, which names a configuration and layers by file.

use std::io;

use serde::Deserialize;

use super::{Bundle, Found, manifest_of, measure, missing};
use crate::config::Parts;
use crate::failure::refused;
use crate::reference::ImageName;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// An image with several names is found once for each.
pub(super) fn find(bundle: &Bundle) -> io::Result<Vec<Found>> {
    let saved: Vec<Saved> = serde_json::from_slice(&bundle.document("manifest.json")?)
        .map_err(|error| refused(format!("its manifest can't be read: {error}")))?;
    let mut found = Vec::new();
    for image in saved {
        let measured = |file: &String| measure(bundle.open_file(file)?.ok_or_else(|| missing(file))?);
        let config = measured(&image.config)?;
        let layers: io::Result<Vec<_>> = image.layers.iter().map(measured).collect();
        let parts = Parts { config, layers: layers? };
        let manifest = manifest_of(&parts.config, &parts.layers)?;
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
            found.push(Found {
                name,
                parts: parts.clone(),
                manifest: manifest.clone(),
                files: files.clone(),
            });
        }
    }
    match found.is_empty() {
        true => Err(refused("it has no image")),
        false => Ok(found),
    }
}
