//! OCI image layouts: the images in `index.json` that are for this machine.

use std::io;

use oci_spec::image::{Arch, Descriptor, ImageIndex, MediaType, Os};

use super::{FoundImage, ImageArchive};
use crate::ImageName;
use crate::config::{BlobRef, ImageParts};
use crate::digest::Digest;
use crate::failure::refused;
use crate::index::NAME;

/// The annotation in which containerd, and with it Docker, keeps the full name.
const FULL_NAME: &str = "io.containerd.image.name";
/// The deepest nesting of indexes.
const MAX_DEPTH: usize = 3;

pub(super) fn find(bundle: &ImageArchive) -> io::Result<Vec<FoundImage>> {
    let index = parse(&bundle.document("index.json")?)?;
    let mut found = Vec::new();
    for descriptor in index.manifests() {
        if let Some(image) = image_of(bundle, descriptor, name_of(descriptor), 0)? {
            let root = BlobRef::of(descriptor)?.digest;
            found.push(FoundImage { root, ..image });
        }
    }
    if found.is_empty() { Err(refused("it has no image for this machine")) } else { Ok(found) }
}

fn parse(bytes: &[u8]) -> io::Result<ImageIndex> {
    serde_json::from_slice(bytes).map_err(|error| refused(format!("its index can't be read: {error}")))
}

/// Returns the full name if there is one, otherwise the layout's name. That one may be a tag alone,
/// which is no name.
fn name_of(descriptor: &Descriptor) -> Option<ImageName> {
    let annotations = descriptor.annotations().as_ref()?;
    let full = annotations.get(FULL_NAME).and_then(|name| ImageName::parse(name).ok());
    let is_whole = |name: &&String| name.contains([':', '/']);
    full.or_else(|| annotations.get(NAME).filter(is_whole).and_then(|name| ImageName::parse(name).ok()))
}

fn image_of(
    bundle: &ImageArchive,
    descriptor: &Descriptor,
    name: Option<ImageName>,
    depth: usize,
) -> io::Result<Option<FoundImage>> {
    if !matches_platform(descriptor) {
        return Ok(None);
    }
    let bytes = blob(bundle, descriptor)?;
    if !is_index(descriptor) {
        let parts = ImageParts::of_manifest(&bytes)?;
        let files =
            std::iter::once(&parts.config).chain(&parts.layers).map(|blob| file_of(&blob.digest)).collect();
        let root = Digest::of(&bytes);
        return Ok(Some(FoundImage { name, root, parts, manifest: bytes, files }));
    }
    if depth == MAX_DEPTH {
        return Err(refused("its indexes lie too deep in each other"));
    }
    for inner in parse(&bytes)?.manifests() {
        if let Some(image) = image_of(bundle, inner, name.clone(), depth + 1)? {
            return Ok(Some(image));
        }
    }
    Ok(None)
}

fn is_index(descriptor: &Descriptor) -> bool {
    match descriptor.media_type() {
        MediaType::ImageIndex => true,
        MediaType::Other(kind) => kind == "application/vnd.docker.distribution.manifest.list.v2+json",
        _ => false,
    }
}

/// Returns the digest of the descriptor, if that may be an image for this machine.
#[cfg(feature = "pull")]
pub(crate) fn platform_digest(descriptor: &Descriptor) -> Option<Digest> {
    let is_image = matches_platform(descriptor) && !is_index(descriptor);
    BlobRef::of(descriptor).ok().filter(|_| is_image).map(|blob| blob.digest)
}

/// Tells whether this may be for this machine. A descriptor without a platform may be.
fn matches_platform(descriptor: &Descriptor) -> bool {
    let platform = descriptor.platform().as_ref();
    platform.is_none_or(|platform| *platform.os() == Os::Linux && *platform.architecture() == Arch::default())
}

fn file_of(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn blob(bundle: &ImageArchive, descriptor: &Descriptor) -> io::Result<Vec<u8>> {
    let wanted = BlobRef::of(descriptor)?;
    let bytes = bundle.document(&file_of(&wanted.digest))?;
    if Digest::of(&bytes) == wanted.digest {
        Ok(bytes)
    } else {
        Err(refused(format!("blob `{}` is not what its digest says", wanted.digest)))
    }
}
