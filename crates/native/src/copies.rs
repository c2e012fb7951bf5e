//! The directories of a sandbox for its copies on write, and the facts about the host's files that an apply compares with.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::cow_layers::share;
use crate::cow_mount::{COW, COW_BASE, COW_WORK, CowMount};
use crate::directory::Layout;
use crate::host_files::HostFiles;
use crate::image::Lower;
use crate::plan::COW_POINTS;
use crate::setup::CowOverlay;
use crate::state::make_child;

impl Layout<'_> {
    /// Returns the overlays of the copies.
    pub(crate) fn cow_overlays(&self) -> io::Result<Vec<CowOverlay>> {
        let overlays = self.cow.iter().map(|mount| {
            let found = fs::metadata(&mount.source)?;
            let layers = self.image.lower.snapshots.iter();
            // A snapshot from before the mount has nothing of it.
            let there = layers.map(|layer| (mount.in_folder(layer.snapshot_folder()), layer.ids));
            let snapshots = there.filter(|(folder, _)| folder.is_dir()).map(|(folder, ids)| {
                let folder = folder.into_os_string().into_string();
                folder.map(|folder| (folder, ids)).map_err(|_| io::ErrorKind::InvalidFilename)
            });
            let snapshots = snapshots.collect::<Result<_, _>>()?;
            Ok(CowOverlay { key: mount.key.clone(), owner: (found.uid(), found.gid()), snapshots })
        });
        overlays.collect()
    }

    /// Makes the directories of a new sandbox's copies, and notes what the folders have.
    pub(crate) fn make_copies(&self) -> io::Result<()> {
        if self.cow.is_empty() {
            return Ok(());
        }
        [COW, COW_WORK, COW_POINTS].into_iter().try_for_each(|name| self.make_folder(name))?;
        make_child(&self.directory.join(COW_BASE), 0o700)?;
        let above = self.image.lower.snapshots.first().map(|layer| layer.snapshot_folder());
        let (uid, gid) = self.users.ids();
        for mount in self.cow {
            let of_snapshot = above.map(|folder| mount.in_folder(folder)).filter(|folder| folder.is_dir());
            let shown = of_snapshot.as_deref().unwrap_or(mount.source.as_ref());
            let mode = fs::metadata(shown)?.permissions().mode() & 0o777;
            let upper = mount.in_folder(self.files);
            make_child(&upper, 0o700)?;
            self.give_to(&upper, uid, gid)?;
            fs::set_permissions(&upper, fs::Permissions::from_mode(mode))?;
            self.make_work(&mount.key)?;
            let base = mount.base(self.directory);
            match above.filter(|_| of_snapshot.is_some()) {
                Some(folder) => share(&mount.base(folder), &base)?,
                None => HostFiles::of(mount.source.as_ref())?.write(&base)?,
            }
        }
        Ok(())
    }

    /// Makes the kernel's own directories of the copies anew.
    pub(crate) fn renew_copies(&self) -> io::Result<()> {
        if !self.cow.is_empty() {
            self.make_folder(COW_WORK)?;
        }
        for mount in self.cow {
            eyot_image::remove_tree(&self.files.join(COW_WORK).join(&mount.key))?;
            self.make_work(&mount.key)?;
        }
        Ok(())
    }

    /// Makes a folder that a range's inner root is able to enter.
    fn make_folder(&self, name: &str) -> io::Result<()> {
        let folder = self.files.join(name);
        make_child(&folder, 0o711)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o711))
    }

    fn make_work(&self, key: &str) -> io::Result<()> {
        let work = self.files.join(COW_WORK).join(key);
        make_child(&work, 0o755)?;
        self.give(&work, 0)
    }
}

/// Lists the layers of a copy on write, topmost first: what the sandbox in `top` has written, what snapshots have, and the folder of
/// the host.
pub(crate) fn copied_layers(mount: &CowMount, top: Option<&Path>, lower: &Lower) -> Vec<PathBuf> {
    let snapshots = lower.snapshots.iter().map(|layer| layer.snapshot_folder());
    let written = top.into_iter().chain(snapshots).map(|folder| mount.in_folder(folder));
    // A snapshot from before the mount has nothing of it.
    written.filter(|folder| folder.is_dir()).chain([PathBuf::from(&mount.source)]).collect()
}
