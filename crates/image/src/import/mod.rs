//! Import of images from a file, a folder or a stream: an OCI layout, a `docker save` archive of
//! any age, or (not as a stream) a tarball of a root file system. The content decides which of them
//! it is, not the name.

mod archive;
mod docker;
mod names;
mod oci;
mod received_archive;
mod rootfs;

use std::io::{self, Read};
use std::path::Path;

use eyot::{Error, ImageInfo, Result};
use oci_spec::image::{Descriptor, ImageManifestBuilder, MediaType};
use tempfile::NamedTempFile;

use crate::ImageName;
use crate::config::{self, BlobRef, ImageParts};
use crate::digest::Digest;
use crate::failure::{CORRUPT, failed, refused};
use crate::progress::Progress;
use crate::store::ImageStore;
use crate::unpack::decompressed;
use archive::ImageArchive;
#[cfg(feature = "pull")]
pub(crate) use oci::platform_digest;
use received_archive::ReceivedArchive;

/// Options of an import.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The image's name. The default is the name in the archive; a tarball of a root file system
    /// has none.
    pub name: Option<ImageName>,
    /// The digest that the image must have: that of its configuration, or the one that the
    /// archive's index names.
    pub digest: Option<Digest>,
}

/// An image of an archive, before any of it is kept.
struct FoundImage {
    name: Option<ImageName>,
    /// The digest that the archive's index names: of a manifest, or of an index for several
    /// machines. For an archive without an index, the digest of the configuration.
    root: Digest,
    parts: ImageParts,
    /// The manifest as it will be kept.
    manifest: Vec<u8>,
    /// The names of the blobs' files in the archive, the configuration's first.
    files: Vec<String>,
}

impl ImageStore {
    /// Imports every image of a file or a folder.
    ///
    /// # Errors
    /// `Invalid` for input that is no image, is damaged, hostile or beyond the limits, or has no
    /// name. `NotFound`. `Quota` if the disk is full. After an error only whole layers are kept,
    /// until the next prune; while another process adds an image, whole blobs are, too.
    pub fn import(
        &self,
        source: &Path,
        options: &ImportOptions,
        progress: &dyn Progress,
    ) -> Result<Vec<ImageInfo>> {
        let what = format!("import `{}`", source.display());
        self.importing(&what, || self.import_source(source, options, &what, progress))
    }

    /// Imports every image of an archive of any form, which is first written to a file of the
    /// store's folder. Errors call it "the archive".
    ///
    /// # Errors
    /// Errors of [`Self::import`], and of `input`.
    pub fn import_upload(
        &self,
        mut input: impl Read,
        options: &ImportOptions,
        progress: &dyn Progress,
    ) -> Result<Vec<ImageInfo>> {
        let what = "import the archive";
        let failed = failed(what);
        self.importing(what, || {
            let mut file = NamedTempFile::new_in(self.incoming()).map_err(&failed)?;
            io::copy(&mut input, &mut file).map_err(&failed)?;
            self.import_source(file.path(), options, what, progress)
        })
    }

    /// Runs an import. One that fails leaves no blob, unless another process adds an image.
    pub(crate) fn importing<T>(&self, what: &str, import: impl FnOnce() -> Result<T>) -> Result<T> {
        let failed = failed(what);
        let guard = self.begin_import().map_err(&failed)?;
        let before = self.blob_names().map_err(&failed)?;
        let imported = import();
        drop(guard);
        if imported.is_err()
            && let Err(error) = self.remove_new_blobs(&before)
        {
            tracing::debug!(%error, "the blobs of a failed import wait for the next prune");
        }
        imported
    }

    /// Imports a file or a folder. The caller has begun the import.
    fn import_source(
        &self,
        source: &Path,
        options: &ImportOptions,
        what: &str,
        progress: &dyn Progress,
    ) -> Result<Vec<ImageInfo>> {
        let failed = failed(what);
        let bundle =
            ImageArchive::open(source, &self.incoming(), self.limits.max_unpacked_bytes).map_err(&failed)?;
        let Some(bundle) = bundle else {
            let name = match &options.name {
                Some(name) => name,
                None if source.is_file()
                    && !archive::is_tarball(source, &self.incoming(), self.limits.max_unpacked_bytes) =>
                {
                    return Err(failed(refused("the file is damaged or no tar archive")));
                }
                None => return Err(missing_name_error(what)),
            };
            return Ok(vec![self.import_rootfs(source, name, progress).map_err(&failed)?]);
        };
        self.import_bundle(&bundle, options, what, progress)
    }

    /// Imports an archive that comes as a stream: an OCI layout or a `docker save` archive. Errors
    /// call it `from`. Progress counts received blobs, not the bytes of the stream.
    ///
    /// # Errors
    /// Errors of [`Self::import`]. `Unavailable` if the stream can't be read.
    pub fn import_stream(
        &self,
        input: impl Read + Send,
        from: &str,
        options: &ImportOptions,
        progress: &dyn Progress,
    ) -> Result<Vec<ImageInfo>> {
        let what = format!("import `{from}`");
        let failed = failed(what.as_str());
        self.importing(&what, || {
            let tar = decompressed(input).map_err(&failed)?;
            let received = ReceivedArchive::read(tar, &self.incoming(), &self.limits);
            let bundle = ImageArchive::Received(received.map_err(&failed)?);
            if bundle.is_of_images() {
                return self.import_bundle(&bundle, options, &what, progress);
            }
            Err(failed(refused("it is neither an OCI layout nor what `docker save` writes"))
                .with_hint("a tarball of a root file system is imported from a file"))
        })
    }

    fn import_bundle(
        &self,
        bundle: &ImageArchive,
        options: &ImportOptions,
        what: &str,
        progress: &dyn Progress,
    ) -> Result<Vec<ImageInfo>> {
        let failed = failed(what);
        let found = if bundle.has("index.json") { oci::find(bundle) } else { docker::find(bundle) };
        let found = named(found.map_err(&failed)?, options, what)?;
        let keep = |(name, found): &(ImageName, FoundImage)| {
            check_digest(found, options)?;
            self.keep(bundle, name, found, progress)
        };
        let kept: io::Result<Vec<ImageInfo>> = found.iter().map(keep).collect();
        kept.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => failed(error).with_hint(CORRUPT),
            _ => failed(error),
        })
    }

    fn keep(
        &self,
        bundle: &ImageArchive,
        name: &ImageName,
        found: &FoundImage,
        progress: &dyn Progress,
    ) -> io::Result<ImageInfo> {
        let parts = &found.parts;
        let blobs: Vec<&BlobRef> = std::iter::once(&parts.config).chain(&parts.layers).collect();
        let mut diffs = Vec::new();
        for (index, (blob, file)) in blobs.iter().zip(&found.files).enumerate() {
            progress.begin(&blob.digest, blob.bytes);
            if !self.has_blob(&blob.digest, blob.bytes) {
                bundle.put(file, blob, self, progress)?;
            }
            match index.checked_sub(1) {
                None => {
                    let config = config::parse(&self.document(&blob.digest)?)?;
                    config::RunConfig::of(&config)?;
                    diffs = config::diff_ids(&config, parts.layers.len())?;
                }
                Some(layer) => drop(self.add_layer(&blob.digest, &diffs[layer])?),
            }
            progress.finish(&blob.digest);
        }
        self.name_image(name, &found.manifest)
    }

    /// Names an image. Every blob and every layer of it must be there.
    pub(crate) fn name_image(&self, name: &ImageName, manifest: &[u8]) -> io::Result<ImageInfo> {
        let digest = self.put_document(manifest)?;
        self.name_manifest(name, &digest, manifest.len() as u64)?;
        Ok(self.describe(name, &digest))
    }
}

fn check_digest(found: &FoundImage, options: &ImportOptions) -> io::Result<()> {
    match &options.digest {
        Some(wanted) if ![&found.root, &found.parts.config.digest].contains(&wanted) => {
            Err(refused(format!("it holds another image than `{wanted}`")))
        }
        _ => Ok(()),
    }
}

fn missing_name_error(what: &str) -> Error {
    Error::invalid("name", "is not in the archive")
        .context(what)
        .with_hint("say what it is to be called: --name my-image:1")
}

/// Pairs each image with the name that it will have.
fn named(
    mut found: Vec<FoundImage>,
    options: &ImportOptions,
    what: &str,
) -> Result<Vec<(ImageName, FoundImage)>> {
    if let Some(name) = &options.name {
        return match (found.pop(), found.is_empty()) {
            (Some(only), true) => Ok(vec![(name.clone(), only)]),
            _ => Err(Error::invalid("name", "can't be given: the archive has several images").context(what)),
        };
    }
    let with_name = |found: FoundImage| match found.name.clone() {
        Some(name) => Ok((name, found)),
        None => Err(missing_name_error(what)),
    };
    found.into_iter().map(with_name).collect()
}

/// Builds a manifest of these blobs, for archives that have none.
fn manifest_of(config: &BlobRef, layers: &[BlobRef]) -> io::Result<Vec<u8>> {
    let describe = |kind: MediaType, blob: &BlobRef| -> io::Result<Descriptor> {
        let digest = blob.digest.to_string().parse::<oci_spec::image::Digest>().map_err(io::Error::other)?;
        Ok(Descriptor::new(kind, blob.bytes, digest))
    };
    let layers: io::Result<Vec<Descriptor>> =
        layers.iter().map(|layer| describe(MediaType::ImageLayer, layer)).collect();
    let manifest = ImageManifestBuilder::default()
        .schema_version(2_u32)
        .media_type(MediaType::ImageManifest)
        .config(describe(MediaType::ImageConfig, config)?)
        .layers(layers?)
        .build()
        .map_err(io::Error::other)?;
    Ok(serde_json::to_vec(&manifest)?)
}
