//! Images that are made of an image of the store and one layer above it.

use std::io;
use std::time::SystemTime;

use eyot::{Error, ErrorKind, ImageInfo, Result};
use oci_spec::image::{Descriptor, ImageManifest, ImageManifestBuilder, MediaType};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::ImageName;
use crate::config::{self, ImageParts, MAX_LAYERS};
use crate::digest::Digest;
use crate::failure::{failed, refused};
use crate::pack::{LayerPacker, PackLimits, PackedLayer};
use crate::store::ImageStore;

/// An image that is to be made by packing a layer.
pub struct LayerAbove<'a> {
    /// The name of the image. One that has it loses it.
    pub name: &'a ImageName,
    /// The layers of the image below, the topmost first, as [`crate::ResolvedImage::layers`] has them.
    pub layers: &'a [String],
    /// The name that the image below had. Of several with these layers, the one that has it still is taken.
    pub base: Option<&'a ImageName>,
    /// The most bytes of the layer, uncompressed. `None`: as many as an import may unpack.
    pub max_bytes: Option<u64>,
    /// Tells whether nobody waits for the image any more.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
}

impl ImageStore {
    /// Refuses what [`Self::commit`] would refuse before it packs anything.
    ///
    /// # Errors
    /// `NotFound` if the store has no image of these layers. `Invalid` if it has as many as an image may have.
    pub fn check_commit(&self, name: &ImageName, layers: &[String], base: Option<&ImageName>) -> Result<()> {
        self.base_manifest(name, layers, base).map(drop)
    }

    /// Makes an image of another one and a layer that `pack` writes. The configuration is that of the image below.
    ///
    /// # Errors
    /// Errors of [`Self::check_commit`] and of `pack`. `TooLarge`, `Quota` if the disk is full. After an error only whole layers
    /// are kept, as after an import.
    pub fn commit(
        &self,
        above: &LayerAbove<'_>,
        pack: impl FnOnce(&mut LayerPacker<'_>) -> io::Result<()>,
    ) -> Result<ImageInfo> {
        let what = commit_of(above.name);
        let failed = failed(what.as_str());
        self.importing(&what, || {
            let base = self.base_manifest(above.name, above.layers, above.base)?;
            let packed = self.pack(above, pack).map_err(&failed)?;
            self.name_above(above, &base, packed).map_err(&failed)
        })
    }

    /// Finds the image of these layers.
    fn base_manifest(&self, name: &ImageName, layers: &[String], base: Option<&ImageName>) -> Result<Digest> {
        let what = commit_of(name);
        let failed = failed(what.as_str());
        let mut found = None;
        for (known, manifest) in self.index().map_err(&failed)? {
            let has_name = base == Some(&known);
            if (found.is_none() || has_name)
                && self.layers_of(&manifest).map_err(&failed)?.as_deref() == Some(layers)
            {
                found = Some(manifest);
                if has_name {
                    break;
                }
            }
        }
        let Some(manifest) = found else {
            let named = base.map_or_else(String::new, |base| format!(" `{}`", base.short()));
            let message = format!(
                "{what}: the image{named} that it was made over is not in the store any more, or is another one by now"
            );
            return Err(Error::new(ErrorKind::NotFound, message).with_hint(
                "import or pull that image again; or make a sandbox from one of `eyot image ls` and repeat the work there",
            ));
        };
        let parts =
            self.document(&manifest).and_then(|bytes| ImageParts::of_manifest(&bytes)).map_err(&failed)?;
        if parts.layers.len() >= MAX_LAYERS {
            let reason = format!("the image below has {MAX_LAYERS} layers, and no image may have more");
            return Err(failed(refused(reason)));
        }
        Ok(manifest)
    }

    fn pack(
        &self,
        above: &LayerAbove<'_>,
        pack: impl FnOnce(&mut LayerPacker<'_>) -> io::Result<()>,
    ) -> io::Result<PackedLayer> {
        let limits = PackLimits {
            max_bytes: above.max_bytes.unwrap_or(u64::MAX).min(self.limits.max_unpacked_bytes),
            max_entries: self.limits.max_entries,
            is_stopped: above.is_stopped,
        };
        let mut packer = LayerPacker::new(NamedTempFile::new_in(self.incoming())?, limits)?;
        pack(&mut packer)?;
        packer.finish()
    }

    /// Keeps a packed layer and names the image of it and the one below.
    fn name_above(
        &self,
        above: &LayerAbove<'_>,
        base: &Digest,
        packed: PackedLayer,
    ) -> io::Result<ImageInfo> {
        let manifest: ImageManifest = serde_json::from_slice(&self.document(base)?)
            .map_err(|error| refused(format!("its manifest can't be read: {error}")))?;
        let config = ImageParts::of_manifest(&self.document(base)?)?.config;
        let config = config_above(&self.document(&config.digest)?, &packed.diff)?;
        self.name_blob(packed.file, &packed.blob)?;
        self.add_layer(&packed.blob, &packed.diff)?;
        let config_digest = self.put_document(&config)?;
        let layer = descriptor(MediaType::ImageLayerZstd, &packed.blob, packed.blob_bytes)?;
        let layers = manifest.layers().iter().map(as_oci).chain([layer]).collect::<Vec<_>>();
        let manifest = ImageManifestBuilder::default()
            .schema_version(2_u32)
            .media_type(MediaType::ImageManifest)
            .config(descriptor(MediaType::ImageConfig, &config_digest, config.len() as u64)?)
            .layers(layers)
            .build()
            .map_err(io::Error::other)?;
        if (above.is_stopped)() {
            return Err(io::Error::other("nobody waits for it any more"));
        }
        self.name_image(above.name, &serde_json::to_vec(&manifest)?)
    }
}

fn commit_of(name: &ImageName) -> String {
    format!("commit `{}`", name.short())
}

/// Returns a configuration with one layer more. Everything else in it stays, known here or not.
fn config_above(base: &[u8], diff: &Digest) -> io::Result<Vec<u8>> {
    let layers = config::parse(base)?.rootfs().diff_ids().len();
    let mut config: Value = serde_json::from_slice(base)?;
    let created = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    if let Some(diffs) = config.pointer_mut("/rootfs/diff_ids").and_then(Value::as_array_mut) {
        diffs.push(json!(diff.to_string()));
    }
    if let Some(history) = config.get_mut("history").and_then(Value::as_array_mut) {
        history.push(json!({ "created": created, "created_by": "eyot commit" }));
    }
    config["created"] = json!(created);
    let bytes = serde_json::to_vec(&config)?;
    config::diff_ids(&config::parse(&bytes)?, layers + 1)?;
    Ok(bytes)
}

fn descriptor(kind: MediaType, digest: &Digest, bytes: u64) -> io::Result<Descriptor> {
    let digest = digest.to_string().parse::<oci_spec::image::Digest>().map_err(io::Error::other)?;
    Ok(Descriptor::new(kind, bytes, digest))
}

/// Describes a layer of Docker's manifest as one of OCI's, since a manifest has either.
fn as_oci(layer: &Descriptor) -> Descriptor {
    let kind = match layer.media_type().to_string().as_str() {
        "application/vnd.docker.image.rootfs.diff.tar.gzip" => MediaType::ImageLayerGzip,
        "application/vnd.docker.image.rootfs.diff.tar.zstd" => MediaType::ImageLayerZstd,
        "application/vnd.docker.image.rootfs.diff.tar" => MediaType::ImageLayer,
        _ => layer.media_type().clone(),
    };
    Descriptor::new(kind, layer.size(), layer.digest().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_keeps_what_it_has_and_names_one_layer_more() {
        let arch = oci_spec::image::Arch::default().to_string();
        let base = json!({
            "os": "linux", "architecture": arch, "unknown": 1, "created": "2026-01-02T03:04:05Z",
            "config": { "Env": ["A=1"], "Entrypoint": ["/init"], "Healthcheck": { "Test": ["CMD", "x"] } },
            "rootfs": { "type": "layers", "diff_ids": [Digest::of(b"base").to_string()] },
            "history": [{ "created_by": "base" }],
        });
        let diff = Digest::of(b"layer");
        let made: Value =
            serde_json::from_slice(&config_above(base.to_string().as_bytes(), &diff).unwrap()).unwrap();
        assert_eq!((&made["config"], &made["unknown"]), (&base["config"], &json!(1)));
        assert_eq!(made["rootfs"]["diff_ids"][1], json!(diff.to_string()));
        assert_eq!(made["history"][1]["created_by"], "eyot commit");
        assert_ne!(made["created"], base["created"]);
    }
}
