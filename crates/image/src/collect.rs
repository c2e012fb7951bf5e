//! Removal of images and of everything that no image needs any more. Layers of sandboxes stay,
//! whether a sandbox runs or sleeps. The caller passes a function that lists the sandboxes; it is
//! called while no process can begin to use a layer.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use eyot::{Error, ErrorKind, PruneReport, Result};
use eyot_archive::remove_tree;

use crate::ImageName;
use crate::config::{self, ImageParts};
use crate::digest::Digest;
use crate::failure::failed;
use crate::layer;
use crate::locks::{ImportGuard, UseGuard};
use crate::store::ImageStore;

/// A sandbox that is made over an image of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageUse {
    /// The sandbox's name.
    pub sandbox: String,
    /// The names of its layers, the topmost first.
    pub layers: Vec<String>,
}

/// The diffs and blobs that must stay.
#[derive(Default)]
struct LiveObjects {
    blobs: BTreeSet<String>,
    diffs: BTreeSet<String>,
    layers: BTreeSet<String>,
}

impl ImageStore {
    /// Removes an image by name, and everything that no other image and no sandbox needs of it.
    /// With `force` it also removes an image that sandboxes are made over: the image loses its
    /// name, and the layers they need stay until the sandboxes are gone and a prune runs. While
    /// another process adds an image, only the name is removed.
    ///
    /// # Errors
    /// `NotFound`. `Conflict` naming the sandboxes that are made over it. Errors of `uses`. Errors
    /// of the kernel.
    pub fn remove(
        &self,
        name: &ImageName,
        force: bool,
        uses: impl FnOnce() -> Result<Vec<ImageUse>>,
    ) -> Result<PruneReport> {
        let what = format!("remove image `{}`", name.short());
        let failed = failed(what.as_str());
        self.make().map_err(&failed)?;
        let importing = match ImportGuard::alone(self.root()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            other => Some(other.map_err(&failed)?),
        };
        let _alone = UseGuard::alone(self.root()).map_err(&failed)?;
        let index = self.index().map_err(&failed)?;
        let Some((name, manifest)) = index.iter().find(|(known, _)| known == name) else {
            return Err(Error::new(ErrorKind::NotFound, format!("{what}: there is none of that name"))
                .with_hint("`eyot image ls` shows those that are there"));
        };
        let uses = uses()?;
        if !force {
            self.refuse_used(&what, name, manifest, &index, &uses)?;
        }
        self.forget_name(name).map_err(&failed)?;
        let swept = match importing {
            Some(_) => self.sweep(&uses).map_err(&failed)?,
            None => PruneReport::default(),
        };
        Ok(PruneReport { images: vec![name.short().to_owned()], ..swept })
    }

    /// Removes everything that no image and no sandbox needs. With `all` also images that no
    /// sandbox is made over.
    ///
    /// # Errors
    /// `Conflict` while another process adds an image. Errors of `uses`. Errors of the kernel.
    pub fn prune(&self, all: bool, uses: impl FnOnce() -> Result<Vec<ImageUse>>) -> Result<PruneReport> {
        let failed = failed("prune images");
        self.make().map_err(&failed)?;
        let _importing = ImportGuard::alone(self.root()).map_err(&failed)?;
        let _alone = UseGuard::alone(self.root()).map_err(&failed)?;
        let uses = uses()?;
        let mut images = Vec::new();
        for (name, manifest) in self.index().map_err(&failed)?.iter().filter(|_| all) {
            let layers = self.layers_of(manifest).map_err(&failed)?;
            if layers.is_none_or(|layers| !uses.iter().any(|used| used.layers == layers)) {
                self.forget_name(name).map_err(&failed)?;
                images.push(name.short().to_owned());
            }
        }
        let swept = self.sweep(&uses).map_err(&failed)?;
        // This includes the partial blobs with which a broken pull would continue.
        self.clear_incoming(|_| true).map_err(&failed)?;
        Ok(PruneReport { images, ..swept })
    }

    /// Refuses the removal of an image that sandboxes use. An image that has another name may lose
    /// this one.
    fn refuse_used(
        &self,
        what: &str,
        name: &ImageName,
        manifest: &Digest,
        index: &[(ImageName, Digest)],
        uses: &[ImageUse],
    ) -> Result<()> {
        if index.iter().any(|(other, known)| other != name && known == manifest) {
            return Ok(());
        }
        let Some(layers) = self.layers_of(manifest).map_err(failed(what))? else { return Ok(()) };
        let users: Vec<&str> =
            uses.iter().filter(|used| used.layers == layers).map(|used| used.sandbox.as_str()).collect();
        if users.is_empty() {
            return Ok(());
        }
        let message = format!("{what}: sandboxes are made over it: {}", users.join(", "));
        Err(Error::new(ErrorKind::Conflict, message)
            .with_hint("remove them first (eyot rm), or take only its name away: --force"))
    }

    /// Removes unneeded names, layers and blobs. The caller holds the locks: no process adds an
    /// image or begins to use one.
    fn sweep(&self, uses: &[ImageUse]) -> io::Result<PruneReport> {
        let needed = self.needed(uses)?;
        let mut done = PruneReport::default();
        // Names first: a layer without a name is found by the next sweep, but a name without a
        // layer would pass for a complete layer.
        for_each_name(&self.root().join("diffs"), |name, path| {
            let layer = fs::read_link(path)?;
            let is_used = layer.to_str().is_some_and(|layer| needed.layers.contains(layer));
            if needed.diffs.contains(name) || is_used { Ok(()) } else { fs::remove_file(path) }
        })?;
        done.layers = self.remove_nameless_layers()?;
        for_each_name(&self.blobs(), |name, path| {
            if !needed.blobs.contains(name) {
                done.blob_bytes += fs::symlink_metadata(path)?.len();
                fs::remove_file(path)?;
                done.blobs += 1;
            }
            Ok(())
        })?;
        Ok(done)
    }

    /// Removes the blobs that no image needs and that were not there before, unless another process
    /// adds an image.
    pub(crate) fn remove_new_blobs(&self, before: &BTreeSet<String>) -> io::Result<()> {
        let _alone = match ImportGuard::alone(self.root()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            alone => alone?,
        };
        let needed = self.needed(&[])?.blobs;
        for_each_name(&self.blobs(), |name, path| {
            if before.contains(name) || needed.contains(name) { Ok(()) } else { fs::remove_file(path) }
        })
    }

    pub(crate) fn blob_names(&self) -> io::Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for_each_name(&self.blobs(), |name, _| {
            names.insert(name.to_owned());
            Ok(())
        })?;
        Ok(names)
    }

    fn blobs(&self) -> PathBuf {
        self.root().join("blobs/sha256")
    }

    fn needed(&self, uses: &[ImageUse]) -> io::Result<LiveObjects> {
        let mut needed = LiveObjects::default();
        needed.layers.extend(uses.iter().flat_map(|used| used.layers.clone()));
        for (_, manifest) in self.index()? {
            needed.blobs.insert(manifest.hex().to_owned());
            // An image that can't be read can't need anything.
            let Ok(parts) = self.document(&manifest).and_then(|bytes| ImageParts::of_manifest(&bytes)) else {
                continue;
            };
            needed.blobs.insert(parts.config.digest.hex().to_owned());
            needed.blobs.extend(parts.layers.iter().map(|layer| layer.digest.hex().to_owned()));
            let config = self.document(&parts.config.digest).and_then(|bytes| config::parse(&bytes));
            let Ok(config) = config else { continue };
            let diffs = config.rootfs().diff_ids().iter().filter_map(|diff| Digest::parse(diff));
            needed.diffs.extend(diffs.map(|diff| diff.hex().to_owned()));
        }
        Ok(needed)
    }

    /// Makes removers of unnamed items wait until an import is done. If no other process imports,
    /// it removes what killed processes left.
    pub(crate) fn begin_import(&self) -> io::Result<ImportGuard> {
        self.make()?;
        match ImportGuard::alone(self.root()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => ImportGuard::shared(self.root()),
            alone => {
                let alone = alone?;
                self.remove_nameless_layers()?;
                self.clear_incoming(|name| !name.ends_with(PART))?;
                alone.share()
            }
        }
    }

    /// Removes layers without a name. A layer that is in use has a name, whatever becomes of its
    /// image.
    fn remove_nameless_layers(&self) -> io::Result<usize> {
        let named = self.named_layers()?;
        let mut removed = 0;
        for_each_name(&self.layers(), |name, path| {
            // An entry without the form of a layer's name belongs to another user of the folder.
            if layer::is_name(name) && !named.contains(name) {
                remove_tree(path)?;
                removed += 1;
            }
            Ok(())
        })?;
        Ok(removed)
    }

    fn clear_incoming(&self, goes: impl Fn(&str) -> bool) -> io::Result<()> {
        for_each_name(&self.incoming(), |name, path| {
            if !goes(name) {
                Ok(())
            } else if path.is_dir() {
                remove_tree(path)
            } else {
                fs::remove_file(path)
            }
        })
    }

    fn named_layers(&self) -> io::Result<BTreeSet<String>> {
        let mut named = BTreeSet::new();
        for_each_name(&self.root().join("diffs"), |_, path| {
            named.extend(fs::read_link(path)?.into_os_string().into_string());
            Ok(())
        })?;
        Ok(named)
    }
}

/// The ending of a blob's file name while it is incomplete.
pub(crate) const PART: &str = ".part";

fn for_each_name(folder: &Path, mut visit: impl FnMut(&str, &Path) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        visit(&entry.file_name().to_string_lossy(), &entry.path())?;
    }
    Ok(())
}
