//! The folder that images are kept in.
//!
//! ```text
//! oci-layout, index.json, blobs/sha256/   an OCI image layout; the index has each image's full name
//! layers/<name>/                          an unpacked layer; names with a dash belong to the code
//!                                         that mounts layers
//! diffs/<hex>                             a symbolic link whose text is the name of the layer with
//!                                         that diff-id: the link makes the layer complete
//! incoming/                               incomplete files and folders
//! importing, using, turn, changing        locks
//! ```

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use eyot::Result;

use crate::digest::Digest;
use crate::failure::failed;
use crate::locks::UseGuard;
use crate::unpack::UnpackLimits;

/// A store of images. Cheap to copy; several processes may work on one folder.
#[derive(Debug, Clone)]
pub struct ImageStore {
    root: PathBuf,
    pub(crate) limits: UnpackLimits,
}

const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;

impl ImageStore {
    /// Returns the store in this folder. The folder need not exist: reading makes nothing.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), limits: UnpackLimits::default() }
    }

    /// Sets other limits for unpacking.
    #[must_use]
    pub fn with_limits(self, limits: UnpackLimits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the store's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of the unpacked layers.
    pub fn layers(&self) -> PathBuf {
        self.root.join("layers")
    }

    /// Keeps every present layer while the guard lives. Take it before [`Self::resolve`], and hold
    /// it until removers can see that the image is in use.
    ///
    /// # Errors
    /// Errors of making or locking a file of the store.
    pub fn hold(&self) -> Result<UseGuard> {
        let lock = || {
            self.make()?;
            UseGuard::shared(&self.root)
        };
        lock().map_err(failed("lock the images"))
    }

    pub(crate) fn blob(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs/sha256").join(digest.hex())
    }

    pub(crate) fn diff(&self, diff: &Digest) -> PathBuf {
        self.root.join("diffs").join(diff.hex())
    }

    pub(crate) fn incoming(&self) -> PathBuf {
        self.root.join("incoming")
    }

    pub(crate) fn index_file(&self) -> PathBuf {
        self.root.join("index.json")
    }

    /// Makes the missing parts of the folder.
    pub(crate) fn make(&self) -> io::Result<()> {
        let layout = self.root.join("oci-layout");
        if layout.exists() {
            return Ok(());
        }
        for name in ["blobs/sha256", "layers", "diffs", "incoming"] {
            DirBuilder::new().recursive(true).mode(0o700).create(self.root.join(name))?;
        }
        // This file comes last: once it exists, everything does. It is not made in `incoming`:
        // nothing is locked yet, and a faster process would clear it.
        let made = tempfile::Builder::new().prefix(".oci-layout-").tempfile_in(&self.root)?;
        fs::write(made.path(), LAYOUT)?;
        made.persist(&layout).map(drop).map_err(|error| error.error)
    }
}
