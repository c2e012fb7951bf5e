//! The files that an overlay shows, read from its layers on the host. The layers are hostile: no link in them is followed, and
//! nothing but a regular file is opened.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
const INSIDE: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// The layers of one side, topmost first.
pub(crate) struct MergedLayers {
    roots: Vec<OwnedFd>,
    paths: Vec<PathBuf>,
}

/// An opened directory of a side: that of each layer which shows something of it, with the layer's place.
pub(crate) struct MergedDirectory(Vec<(usize, OwnedFd)>);

/// A name as a side shows it.
pub(crate) enum ShownName {
    Nothing,
    /// A file, a link or another leaf, in the directory of this layer.
    Leaf {
        place: usize,
        stat: Stat,
    },
    /// A directory, and the places of the layers that show something of it.
    Directory {
        places: Vec<usize>,
        stat: Stat,
        /// The layer that hides the directory of those below.
        hidden_by: Option<usize>,
    },
}

impl MergedLayers {
    pub(crate) fn open(layers: Vec<PathBuf>) -> io::Result<Self> {
        let open = |path: &PathBuf| rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty());
        let roots = layers.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { roots, paths: layers })
    }

    /// Returns the places of all layers.
    pub(crate) fn places(&self) -> Vec<usize> {
        (0..self.roots.len()).collect()
    }

    /// Returns the number of its topmost layers that the other side does not have.
    pub(crate) fn own_layers(&self, other: &Self) -> usize {
        let shared =
            self.paths.iter().rev().zip(other.paths.iter().rev()).take_while(|(a, b)| a == b).count();
        self.paths.len() - shared
    }

    /// Opens a directory in the layers at these places. One that has gone meanwhile shows nothing.
    pub(crate) fn directory(&self, path: &Path, places: &[usize]) -> io::Result<MergedDirectory> {
        let mut open = Vec::new();
        for place in places {
            match self.open_in(*place, path, DIRECTORY) {
                Ok(directory) => open.push((*place, directory)),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(MergedDirectory(open))
    }

    fn open_in(&self, place: usize, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        rustix::fs::openat2(&self.roots[place], path, flags, Mode::empty(), INSIDE)
    }

    /// Opens a regular file; `None` if there is none any more.
    pub(crate) fn file(&self, place: usize, path: &Path) -> io::Result<Option<File>> {
        let file = match self.open_in(place, path, FILE) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => return Ok(None),
            file => file?,
        };
        let is_regular = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::RegularFile;
        Ok(is_regular.then(|| File::from(file)))
    }

    /// Returns the target of a link; `None` if there is none any more.
    pub(crate) fn target(&self, place: usize, path: &Path) -> io::Result<Option<CString>> {
        let link = self.open_in(place, path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC);
        match link.and_then(|link| rustix::fs::readlinkat(&link, "", Vec::new())) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::INVAL) => Ok(None),
            target => Ok(Some(target?)),
        }
    }
}

impl MergedDirectory {
    /// Lists the names in the layers at places below `end`, those of removed files too.
    pub(crate) fn names(&self, end: usize) -> io::Result<Vec<CString>> {
        let mut names = Vec::new();
        for (_, directory) in self.0.iter().filter(|(place, _)| *place < end) {
            for entry in Dir::read_from(directory)? {
                let name = entry?.file_name().to_owned();
                if !matches!(name.as_bytes(), b"." | b"..") {
                    names.push(name);
                }
            }
        }
        Ok(names)
    }

    /// Looks a name up as the overlay does: the topmost layer that has it counts, and directories are merged until one hides
    /// those below.
    pub(crate) fn look(&self, name: &CStr) -> io::Result<ShownName> {
        let mut merged: Option<(Vec<usize>, Stat, Option<usize>)> = None;
        for (place, directory) in &self.0 {
            let stat = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => continue,
                stat => stat?,
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            let is_removal = kind == FileType::CharacterDevice && stat.st_rdev == 0;
            if is_removal || kind != FileType::Directory {
                return Ok(match merged {
                    Some(directory) => shown(directory),
                    None if is_removal => ShownName::Nothing,
                    None => ShownName::Leaf { place: *place, stat },
                });
            }
            let (places, _, hidden_by) = merged.get_or_insert((Vec::new(), stat, None));
            places.push(*place);
            if is_opaque(directory, name)? {
                *hidden_by = Some(*place);
                break;
            }
        }
        Ok(merged.map_or(ShownName::Nothing, shown))
    }
}

fn shown((places, stat, hidden_by): (Vec<usize>, Stat, Option<usize>)) -> ShownName {
    ShownName::Directory { places, stat, hidden_by }
}

fn is_opaque(parent: impl AsFd, name: &CStr) -> io::Result<bool> {
    let directory = match rustix::fs::openat(parent, name, DIRECTORY, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(false),
        directory => directory?,
    };
    match rustix::fs::fgetxattr(&directory, "user.overlay.opaque", &mut [0_u8; 1][..]) {
        Ok(_) => Ok(true),
        Err(Errno::NODATA | Errno::NOTSUP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Joins a path and a name.
pub(crate) fn joined(path: &Path, name: &CStr) -> PathBuf {
    path.join(OsStr::from_bytes(name.to_bytes()))
}
