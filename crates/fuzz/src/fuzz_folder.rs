//! A folder to unpack into, beside a canary that nothing may touch.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use tempfile::TempDir;

/// In memory where there is such a place: a fuzzer makes thousands of these a second.
const IN_MEMORY: &str = "/dev/shm";
const CANARY: &str = "alive";
/// A link in the folder that leads out of it, and was there before anything was unpacked.
pub const TRAP: &str = "there";

/// The folder, the canary beside it, and a link from the one to the other.
pub struct FuzzFolder {
    outer: TempDir,
}

/// A rule about links that lead out of the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Links may lead anywhere. No link is followed.
    Anywhere,
    /// They stay inside, all but the one that was there before.
    Inside,
}

impl FuzzFolder {
    /// A new one. Its folder is empty but for the trap, or not made yet.
    pub fn new(make_folder: bool) -> Self {
        let mut builder = tempfile::Builder::new();
        builder.prefix("eyot-fuzz-");
        let outer =
            if Path::new(IN_MEMORY).is_dir() { builder.tempdir_in(IN_MEMORY) } else { builder.tempdir() };
        let place = Self { outer: outer.expect("a temporary folder") };
        fs::write(place.canary(), CANARY).expect("a canary");
        fs::set_permissions(place.canary(), fs::Permissions::from_mode(0o600)).expect("its permissions");
        if make_folder {
            fs::create_dir(place.folder()).expect("a folder");
            symlink("..", place.folder().join(TRAP)).expect("a link");
        }
        place
    }

    /// Returns the folder to unpack into.
    pub fn folder(&self) -> PathBuf {
        self.outer.path().join("folder")
    }

    /// A file beside it, for the input.
    pub fn input(&self) -> PathBuf {
        self.outer.path().join("input")
    }

    fn canary(&self) -> PathBuf {
        self.outer.path().join("canary")
    }

    /// The canary is as it was, and nothing else has appeared beside the folder.
    pub fn assert_untouched(&self) {
        assert_eq!(fs::read_to_string(self.canary()).expect("the canary"), CANARY, "the canary was changed");
        let mode = fs::metadata(self.canary()).expect("the canary").permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "the canary's permissions were changed");
        for entry in fs::read_dir(self.outer.path()).expect("the outer folder") {
            let name = entry.expect("an entry").file_name();
            let known = ["folder", "input", "canary"].iter().any(|known| name == **known);
            assert!(known, "{name:?} was made outside of the folder");
        }
    }

    /// Everything in the folder is a regular file, a directory or a link that may be there, and no
    /// file has a set-id bit.
    pub fn assert_harmless(&self, links: Links) {
        let root = self.open_root();
        if let Ok(root) = root {
            let mut pending = vec![(root.try_clone().expect("a descriptor"), true)];
            while let Some((directory, is_root)) = pending.pop() {
                check_directory(&root, &directory, is_root, links, &mut pending);
            }
        }
    }

    fn open_root(&self) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        rustix::fs::openat(CWD, self.folder(), flags, Mode::empty())
    }
}

fn check_directory(
    root: &OwnedFd,
    directory: &OwnedFd,
    is_root: bool,
    links: Links,
    pending: &mut Vec<(OwnedFd, bool)>,
) {
    for entry in Dir::read_from(directory).expect("a directory") {
        let entry = entry.expect("an entry");
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") || (is_root && name.to_bytes() == TRAP.as_bytes()) {
            continue;
        }
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).expect("a stat");
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                assert_eq!(stat.st_mode & 0o6000, 0, "{name:?} has a set-id bit");
            }
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
                // An ordinary user can't look into what the archive closed.
                match rustix::fs::openat(directory, name, flags, Mode::empty()) {
                    Err(Errno::ACCESS) => {}
                    opened => pending.push((opened.expect("a directory"), false)),
                }
            }
            FileType::Symlink if links == Links::Anywhere => {}
            // How a layer says that a name is removed; it leads to no device.
            FileType::CharacterDevice if links == Links::Anywhere && stat.st_rdev == 0 => {}
            FileType::Symlink => assert_stays_inside(root, directory, name),
            other => panic!("{name:?} is a {other:?}"),
        }
    }
}

/// The kernel finds no way out of the root by this link. It is asked from the link's own directory,
/// so a link that climbs within the root looks as if it left; then it must not climb higher than
/// the root.
fn assert_stays_inside(root: &OwnedFd, directory: &OwnedFd, name: &std::ffi::CStr) {
    let path = path_below(root, directory).join(std::ffi::OsStr::new(&*name.to_string_lossy()));
    let found = rustix::fs::openat2(root, &path, OFlags::PATH, Mode::empty(), ResolveFlags::BENEATH);
    assert_ne!(found.err(), Some(Errno::XDEV), "the link {path:?} leads out of the folder");
}

fn path_below(root: &OwnedFd, directory: &OwnedFd) -> PathBuf {
    let path_of = |fd: &OwnedFd| {
        use std::os::fd::AsRawFd;
        fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).expect("a path")
    };
    path_of(directory).strip_prefix(path_of(root)).expect("a path below the root").to_owned()
}

impl Drop for FuzzFolder {
    fn drop(&mut self) {
        // Directories that the archive closed are opened for their removal; root needs none of
        // this.
        let Ok(root) = self.open_root() else { return };
        if rustix::process::geteuid().is_root() {
            return;
        }
        open_all(root);
    }
}

fn open_all(root: OwnedFd) {
    let mut pending = vec![root];
    while let Some(directory) = pending.pop() {
        rustix::fs::fchmod(&directory, Mode::RWXU).expect("permissions");
        for entry in Dir::read_from(&directory).expect("a directory") {
            let entry = entry.expect("an entry");
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") || entry.file_type() != FileType::Directory {
                continue;
            }
            rustix::fs::chmodat(&directory, name, Mode::RWXU, AtFlags::empty()).expect("permissions");
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
            pending.push(
                rustix::fs::openat(&directory, name, flags, Mode::empty()).expect("a directory of our own"),
            );
        }
    }
}
