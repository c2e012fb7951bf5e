//! The images that were committed of sandboxes in memory. They live as long as their provider.

use std::collections::BTreeMap;
use std::sync::Arc;

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, ImageInfo, ImageName, NewImage, Result};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::counted_files::{CountedFiles, sizes};
use super::frozen::FrozenFiles;
use super::node::{FileNode, NodeContent, NodeId};

/// The bytes that all images may hold together, each content counted once: 1 GiB.
const MAX_IMAGES_BYTES: u64 = 1 << 30;

/// Files that sandboxes begin with.
#[derive(Debug)]
pub(super) struct MemoryImage {
    pub files: FrozenFiles,
    /// The digest of all names, modes and contents; a hole is another content than zeros.
    pub digest: String,
    /// The number of commits that lie above one another.
    layers: usize,
    created_ms: i64,
}

impl MemoryImage {
    /// Makes an image of the files of a snapshot. Takes longer the more bytes they have, since all are looked at.
    ///
    /// # Errors
    /// `too_large`: it would add more to the image below it than it may.
    pub(super) fn of(files: &FrozenFiles, below: Option<&Self>, new: &NewImage) -> Result<Self> {
        let (own, _) = sizes(files, below.map(|image| &image.files));
        new.check_own_bytes(own)?;
        Ok(Self {
            digest: digest_of(files),
            files: files.clone(),
            layers: below.map_or(0, |image| image.layers) + 1,
            created_ms: now_ms(),
        })
    }

    fn info(&self, name: &ImageName) -> ImageInfo {
        let (bytes, _) = sizes(&self.files, None);
        ImageInfo {
            name: name.short().to_owned(),
            digest: self.digest.clone(),
            layers: self.layers,
            size_bytes: bytes,
            created: Timestamp::from_millisecond(self.created_ms).ok().map(|time| time.to_string()),
            complete: true,
        }
    }
}

/// All images.
#[derive(Debug, Default)]
pub(super) struct ImageTable {
    named: BTreeMap<ImageName, Arc<MemoryImage>>,
    held: CountedFiles,
}

impl ImageTable {
    /// Finds an image.
    pub(super) fn find(&self, name: &ImageName) -> Option<Arc<MemoryImage>> {
        self.named.get(name).cloned()
    }

    /// Lists all, by name.
    pub(super) fn list(&self) -> Vec<ImageInfo> {
        let mut all: Vec<ImageInfo> = self.named.iter().map(|(name, image)| image.info(name)).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// Names an image. One that has the name loses it.
    ///
    /// # Errors
    /// `quota`: all together would hold too much.
    pub(super) fn put(&mut self, name: ImageName, image: Arc<MemoryImage>) -> Result<ImageInfo> {
        let before = self.named.get(&name).cloned();
        before.iter().for_each(|before| self.held.remove(&before.files));
        self.held.add(&image.files);
        if self.held.bytes() > MAX_IMAGES_BYTES {
            self.held.remove(&image.files);
            before.iter().for_each(|before| self.held.add(&before.files));
            let message = format!("images may hold {} MiB of memory together", MAX_IMAGES_BYTES >> 20);
            return Err(Error::new(ErrorKind::Quota, message).with_hint("remove one that is not needed"));
        }
        let info = image.info(&name);
        self.named.insert(name, image);
        Ok(info)
    }

    /// Removes an image, unless its name means another one by now. Sandboxes above it keep its files.
    pub(super) fn remove(&mut self, name: &ImageName, image: &Arc<MemoryImage>) -> bool {
        let is_it = self.named.get(name).is_some_and(|named| Arc::ptr_eq(named, image));
        if is_it {
            self.named.remove(name);
            self.held.remove(&image.files);
        }
        is_it
    }
}

/// Returns the digest of all names, modes and contents.
fn digest_of(files: &FrozenFiles) -> String {
    let mut digest = Sha256::new();
    // Names with their depths, in the order of a walk, say the same as paths, which may be too long.
    let mut left: Vec<(u64, &[u8], NodeId)> = vec![(0, b"", files.root())];
    while let Some((depth, name, id)) = left.pop() {
        let Some(node) = files.node(id) else { continue };
        digest.update(depth.to_le_bytes());
        add(&mut digest, name);
        add_node(&mut digest, node);
        left.extend(files.entries(id).map(|(name, id)| (depth + 1, name.as_slice(), id)));
    }
    format!("sha256:{}", hex::encode(digest.finalize()))
}

fn add_node(digest: &mut Sha256, node: &FileNode) {
    digest.update(node.mode.to_le_bytes());
    digest.update([node.kind() as u8]);
    match &node.content {
        NodeContent::File(content) => {
            let (parts, hole) = content.stored_parts();
            parts.into_iter().for_each(|part| add(digest, part));
            digest.update(hole.to_le_bytes());
        }
        NodeContent::Link(bytes) | NodeContent::Fifo(bytes) => add(digest, bytes),
        NodeContent::Device(device) => digest.update([*device as u8]),
        NodeContent::Directory(_) => {}
    }
}

/// Adds bytes whose end is told by their number.
fn add(digest: &mut Sha256, bytes: &[u8]) {
    digest.update((bytes.len() as u64).to_le_bytes());
    digest.update(bytes);
}
