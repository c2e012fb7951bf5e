//! The disk limit. A sandbox with a limit has a file system of that size in an image file, and
//! everything that it writes goes there. The kernel refuses a write that would exceed it. The image
//! lies in the sandbox's directory and is removed with it. The loop device frees itself with the
//! last mount. The mount never appears in the host's mount table.

mod attach;
mod check;
mod sys;
mod template;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use eyot::{Error, Limits, Result};
use rustix::fs::{FlockOperation, flock};

use crate::sparse_copy::copy_sparse;
use crate::state::StateDir;

use attach::{DiskAccess, DiskUse};

/// The step that makes a sandbox's disk. Errors and tests use this name.
pub(crate) const STEP: &str = "make its disk";

/// The smallest disk, in MiB. The file system takes some of it, and each image's own files take
/// more.
const LEAST_MIB: u64 = 8;
/// The largest disk, in MiB: half of what ext4 can have with blocks of 4 KiB and 32-bit block
/// numbers.
const MOST_MIB: u64 = 8 << 20;

/// The host's tools for disks. They are looked for when the first disk is wanted.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    found: OnceLock<Tools>,
}

/// The programs that make disks.
#[derive(Debug, Clone)]
struct Tools {
    mkfs: PathBuf,
}

/// The size of the disk that a sandbox is to have, on a host that can make one.
#[derive(Debug, Clone)]
pub(crate) struct DiskRequest {
    mib: u64,
    tools: Tools,
}

/// A sandbox's disk: mounted, but not attached anywhere yet. Unless it is attached, it is gone with
/// the last descriptor.
#[derive(Debug)]
pub(crate) struct Disk {
    mount: OwnedFd,
}

impl Disks {
    /// Checks that this host can enforce a disk limit; the error says why not. Asks the kernel
    /// once.
    pub(crate) fn check(&self) -> std::result::Result<(), String> {
        self.tools().map(drop)
    }

    /// Returns the disk that these limits ask for; `None` without a disk limit, or on a host that
    /// can't enforce one.
    ///
    /// # Errors
    /// `Invalid` if no disk can be that small or that large.
    pub(crate) fn wanted(&self, limits: &Limits) -> Result<Option<DiskRequest>> {
        let Some(mib) = limits.disk_mib else { return Ok(None) };
        let tools = match self.tools() {
            Ok(tools) => tools.clone(),
            Err(reason) => {
                tracing::debug!(%reason, "the disk limit is not held");
                return Ok(None);
            }
        };
        match mib {
            ..LEAST_MIB => Err(Error::invalid("limits.disk_mib", format!("must be at least {LEAST_MIB}"))),
            LEAST_MIB..=MOST_MIB => Ok(Some(DiskRequest { mib, tools })),
            _ => Err(Error::invalid("limits.disk_mib", format!("must be at most {MOST_MIB}"))),
        }
    }

    /// Finds the tools. A success is remembered; a failure is looked into again the next time.
    fn tools(&self) -> std::result::Result<&Tools, String> {
        match self.found.get() {
            Some(tools) => Ok(tools),
            None => Tools::find().map(|tools| self.found.get_or_init(|| tools)),
        }
    }
}

impl Tools {
    fn find() -> std::result::Result<Self, String> {
        let mut missing = Vec::new();
        if !attach::may_mount() {
            missing.push("root");
        }
        if let Err(error) = attach::find_loop_device() {
            tracing::debug!(%error, "find a loop device");
            missing.push(match error.kind() {
                io::ErrorKind::PermissionDenied => "the right to open loop devices",
                _ => "loop devices",
            });
        }
        let mkfs = template::find_mkfs();
        if mkfs.is_none() {
            missing.push("mkfs.ext4");
        }
        match mkfs.filter(|_| missing.is_empty()) {
            Some(mkfs) => Ok(Self { mkfs }),
            None => {
                let missing = missing.join(", ");
                Err(format!("a disk quota needs root, loop devices and mkfs.ext4; missing: {missing}"))
            }
        }
    }
}

impl DiskRequest {
    /// Makes the disk of the sandbox in this directory.
    pub(crate) fn make(&self, state: &StateDir, directory: &Path) -> io::Result<Disk> {
        self.make_at(state, &directory.join(IMAGE))
    }

    /// Makes the disk that is to take the place of the one of the sandbox in this directory.
    pub(crate) fn make_next(&self, state: &StateDir, directory: &Path) -> io::Result<Disk> {
        self.make_at(state, &directory.join(NEXT_IMAGE))
    }

    fn make_at(&self, state: &StateDir, path: &Path) -> io::Result<Disk> {
        let template = template::of_size(&state.layers(), self.mib, &self.tools.mkfs)?;
        let image = File::options().read(true).write(true).create_new(true).open(path)?;
        copy_sparse(&template, &image)?;
        Ok(Disk { mount: attach::mount(&image, DiskAccess::Write)? })
    }

    /// Attaches the existing disk of the sandbox in this directory, after its last mount is gone. If somebody compares its files, it
    /// is mounted once more. The caller holds the sandbox's lock.
    pub(crate) fn attach(&self, directory: &Path) -> io::Result<Disk> {
        attach(directory, &self.tools, is_compared(directory), DiskAccess::Write)
    }
}

/// Tells whether somebody compares the files of a sandbox's disk.
fn is_compared(directory: &Path) -> bool {
    let mark = File::open(directory.join(COMPARED));
    mark.is_ok_and(|mark| flock(&mark, FlockOperation::NonBlockingLockExclusive).is_err())
}

fn attach(directory: &Path, tools: &Tools, is_kept: bool, access: DiskAccess) -> io::Result<Disk> {
    let path = directory.join(IMAGE);
    let image = File::options().read(true).write(true).open(&path)?;
    let mount = match attach::take(&image, is_kept, access)? {
        DiskUse::Shared(mount) => mount,
        DiskUse::Free => {
            check::mend_if_unclean(&image, &path, &tools.mkfs)?;
            attach::mount(&image, access)?
        }
    };
    Ok(Disk { mount })
}

/// Tells whether the sandbox in this directory has a disk of its own.
pub(crate) fn has_disk(directory: &Path) -> bool {
    directory.join(IMAGE).exists()
}

/// The name of the image file in the sandbox's directory.
pub(crate) const IMAGE: &str = "disk";
/// The name of the image file that is to take its place.
pub(crate) const NEXT_IMAGE: &str = "disk.next";
/// The file that is locked while somebody compares the files of a disk.
const COMPARED: &str = "disk.compared";

/// A sandbox's disk that is looked at, whether the sandbox is awake or not.
#[derive(Debug)]
pub(crate) struct ComparedDisk {
    disk: Disk,
    /// The image file: the number of its file system, and its own.
    file: (u64, u64),
    /// Locked as long as the disk is looked at: whoever wakes the sandbox meanwhile shares the mount.
    _mark: File,
}

impl ComparedDisk {
    /// Opens the disk of the sandbox in this directory. The caller holds the sandbox's lock.
    pub(crate) fn open(disks: &Disks, directory: &Path) -> io::Result<Self> {
        let mut options = File::options();
        let mark =
            options.read(true).write(true).create(true).truncate(false).open(directory.join(COMPARED))?;
        flock(&mark, FlockOperation::LockShared)?;
        let tools = disks.tools().map_err(io::Error::other)?;
        let file = image_file(directory)?;
        let disk = attach(directory, tools, true, DiskAccess::Read)?;
        Ok(Self { disk, file, _mark: mark })
    }

    /// Returns a path to the top directory of the disk, as [`Disk::path`] does.
    pub(crate) fn path(&self) -> PathBuf {
        self.disk.path()
    }

    /// Tells whether the sandbox in this directory still has this disk.
    pub(crate) fn is_of(&self, directory: &Path) -> bool {
        image_file(directory).is_ok_and(|file| file == self.file)
    }
}

fn image_file(directory: &Path) -> io::Result<(u64, u64)> {
    let found = std::fs::metadata(directory.join(IMAGE))?;
    Ok((found.dev(), found.ino()))
}

/// Locks the disk of a sandbox that sleeps, so that it stays as it is; `None` if somebody has it mounted for long.
pub(crate) fn lock_image(directory: &Path) -> io::Result<Option<File>> {
    if is_compared(directory) {
        return Ok(None);
    }
    let image = File::open(directory.join(IMAGE))?;
    match attach::wait_until_let_go(&image) {
        Ok(()) => Ok(Some(image)),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(None),
        Err(error) => Err(error),
    }
}

impl Disk {
    /// Returns a path to the top directory of the disk. It is valid in this process while the disk
    /// is not dropped.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.mount.as_raw_fd()).into()
    }

    /// Gives up the mount, for the launcher to attach.
    pub(crate) fn into_mount(self) -> OwnedFd {
        self.mount
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(mib: Option<u64>) -> Result<Option<DiskRequest>> {
        let disks = Disks::default();
        disks.found.set(Tools { mkfs: "/mkfs".into() }).unwrap();
        disks.wanted(&Limits { disk_mib: mib, ..Limits::default() })
    }

    #[test]
    fn a_disk_that_no_file_system_fits_on_is_invalid_and_one_at_the_edge_is_not() {
        for mib in [1, LEAST_MIB - 1, MOST_MIB + 1, u64::MAX] {
            let error = wanted(Some(mib)).unwrap_err();
            assert_eq!(error.kind(), eyot::ErrorKind::Invalid, "{mib}: {error}");
            assert!(error.to_string().contains("disk_mib"), "{error}");
        }
        assert!([LEAST_MIB, MOST_MIB].iter().all(|mib| wanted(Some(*mib)).unwrap().is_some()));
    }

    #[test]
    fn without_a_limit_nothing_is_looked_for() {
        let disks = Disks::default();
        assert!(disks.wanted(&Limits::default()).unwrap().is_none());
        assert!(disks.found.get().is_none());
    }
}
