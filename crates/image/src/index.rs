//! The index of the store: image names and their manifests. It is replaced as a whole, under a
//! lock.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;

use oci_spec::image::{Descriptor, ImageIndex, ImageIndexBuilder, MediaType};
use tempfile::NamedTempFile;

use crate::ImageName;
use crate::digest::Digest;
use crate::failure::refused;
use crate::locks::index_lock;
use crate::store::ImageStore;

/// The annotation in which an OCI layout keeps a manifest's name.
pub(crate) const NAME: &str = "org.opencontainers.image.ref.name";
/// The longest index. An index grows with each image. This is enough for some hundred thousand.
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// A version of the index. It changes with every change of the index; nothing else is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation(u64, i64, i64, u64);

impl ImageStore {
    /// Returns the version of the index; `None` if there is no image yet.
    pub fn generation(&self) -> Option<Generation> {
        let found = fs::metadata(self.index_file()).ok()?;
        Some(Generation(found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
    }

    /// Returns every name and its manifest.
    pub(crate) fn index(&self) -> io::Result<Vec<(ImageName, Digest)>> {
        let entry = |descriptor: &Descriptor| {
            let name = descriptor.annotations().as_ref()?.get(NAME)?;
            Some((ImageName::parse(name).ok()?, Digest::parse(descriptor.digest().as_ref())?))
        };
        Ok(self.read_index()?.manifests().iter().filter_map(entry).collect())
    }

    fn read_index(&self) -> io::Result<ImageIndex> {
        let mut bytes = Vec::new();
        match File::open(self.index_file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return empty(),
            file => file?.take(MAX_INDEX_BYTES).read_to_end(&mut bytes)?,
        };
        serde_json::from_slice(&bytes).map_err(|error| refused(format!("its index can't be read: {error}")))
    }

    /// Gives a name to a manifest of that length, and takes it from any other.
    pub(crate) fn name_manifest(&self, name: &ImageName, manifest: &Digest, bytes: u64) -> io::Result<()> {
        let digest = manifest.to_string().parse::<oci_spec::image::Digest>().map_err(io::Error::other)?;
        let mut descriptor = Descriptor::new(MediaType::ImageManifest, bytes, digest);
        descriptor.set_annotations(Some(HashMap::from([(NAME.to_owned(), name.to_string())])));
        self.change_index(|manifests| {
            manifests.retain(|known| !is_called(known, name));
            manifests.push(descriptor);
        })
    }

    /// Removes a name.
    pub(crate) fn forget_name(&self, name: &ImageName) -> io::Result<()> {
        self.change_index(|manifests| manifests.retain(|known| !is_called(known, name)))
    }

    fn change_index(&self, change: impl FnOnce(&mut Vec<Descriptor>)) -> io::Result<()> {
        let _alone = index_lock(self.root())?;
        let mut index = self.read_index()?;
        let mut manifests = index.manifests().clone();
        change(&mut manifests);
        index.set_manifests(manifests);
        let mut made = NamedTempFile::new_in(self.incoming())?;
        made.write_all(&serde_json::to_vec(&index)?)?;
        made.persist(self.index_file()).map(drop).map_err(|error| error.error)
    }
}

fn is_called(descriptor: &Descriptor, name: &ImageName) -> bool {
    let called = descriptor.annotations().as_ref().and_then(|annotations| annotations.get(NAME));
    called.is_some_and(|called| called == name.as_str())
}

fn empty() -> io::Result<ImageIndex> {
    let index = ImageIndexBuilder::default().schema_version(2_u32).media_type(MediaType::ImageIndex);
    index.manifests(Vec::new()).build().map_err(io::Error::other)
}
