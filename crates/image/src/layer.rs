//! Unpacked layers, each once, by the digest of its uncompressed tar.
//!
//! A layer is filled under a random name; then the symbolic link `diffs/<hex>` publishes it. If two
//! processes fill the same layer, the second one's is removed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::PathBuf;

use eyot_archive::remove_tree;

use crate::digest::{Digest, DigestStream};
use crate::failure::refused;
use crate::store::ImageStore;
use crate::unpack::{Owners, decompressed, fill};

/// The number of letters in a layer's name. Names are short because the kernel takes all those of
/// an image in one page.
const NAME_LETTERS: usize = 10;

impl ImageStore {
    /// Returns the name of the layer with this diff-id, if it is complete.
    pub(crate) fn layer_of(&self, diff: &Digest) -> Option<String> {
        let name = fs::read_link(self.diff(diff)).ok()?.into_os_string().into_string().ok()?;
        (is_name(&name) && self.layers().join(&name).is_dir()).then_some(name)
    }

    /// Unpacks a blob of the store as the layer with this diff-id, unless the layer exists.
    pub(crate) fn add_layer(&self, blob: &Digest, diff: &Digest) -> io::Result<String> {
        if let Some(name) = self.layer_of(diff) {
            return Ok(name);
        }
        let filling = PendingLayer::new(self)?;
        let mut tar = DigestStream::new(decompressed(File::open(self.blob(blob))?)?);
        fill(&mut tar, &filling.path, Owners::of_caller(), &self.limits)
            .map_err(|error| as_corrupt(error, blob))?;
        io::copy(&mut tar, &mut io::sink())?;
        if tar.finish().0 != *diff {
            return Err(refused(format!("layer `{blob}` does not hold what the image says (`{diff}`)")));
        }
        self.name_layer(filling, diff)
    }

    /// Unpacks a blob whose diff-id is not known. Returns the diff-id.
    pub(crate) fn add_unknown_layer(&self, blob: &Digest) -> io::Result<Digest> {
        let filling = PendingLayer::new(self)?;
        let mut tar = DigestStream::new(decompressed(File::open(self.blob(blob))?)?);
        fill(&mut tar, &filling.path, Owners::of_caller(), &self.limits)
            .map_err(|error| as_corrupt(error, blob))?;
        let (diff, _) = tar.finish();
        self.name_layer(filling, &diff)?;
        Ok(diff)
    }

    fn name_layer(&self, filling: PendingLayer, diff: &Digest) -> io::Result<String> {
        match symlink(&filling.name, self.diff(diff)) {
            Ok(()) => Ok(filling.keep()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match self.layer_of(diff) {
                Some(name) => Ok(name),
                // The link's target is gone: a process was killed while it removed the layer.
                None => {
                    fs::remove_file(self.diff(diff))?;
                    symlink(&filling.name, self.diff(diff))?;
                    Ok(filling.keep())
                }
            },
            Err(error) => Err(error),
        }
    }
}

/// Blames the blob for a stream that breaks off or can't be decompressed.
fn as_corrupt(error: io::Error, blob: &Digest) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
            refused(format!("layer `{blob}` can't be decompressed: {error}"))
        }
        io::ErrorKind::InvalidData => refused(format!("layer `{blob}`: {error}")),
        _ => error,
    }
}

/// Tells whether this has the form of a layer's name, and is no path.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() == NAME_LETTERS && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// A layer that is being filled. Dropping it before it is complete removes it.
struct PendingLayer {
    name: String,
    path: PathBuf,
    kept: bool,
}

impl PendingLayer {
    fn new(store: &ImageStore) -> io::Result<Self> {
        let name = new_name()?;
        let path = store.layers().join(&name);
        DirBuilder::new().mode(0o755).create(&path)?;
        Ok(Self { name, path, kept: false })
    }

    fn keep(mut self) -> String {
        self.kept = true;
        std::mem::take(&mut self.name)
    }
}

impl Drop for PendingLayer {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = remove_tree(&self.path)
        {
            tracing::warn!(%error, "remove a half-unpacked layer; `eyot image prune` will");
        }
    }
}

/// Returns random letters and digits.
fn new_name() -> io::Result<String> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut random = [0_u8; NAME_LETTERS];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}
