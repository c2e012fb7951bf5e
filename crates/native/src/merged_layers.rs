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
/// For a directory on the way.
const PASSED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The most bytes of a path that are opened at once.
const MOST_AT_ONCE: usize = 3_800;
/// The most names that are taken of a directory, over all layers. Whoever fills a sandbox decides how many there are.
pub(crate) const MAX_NAMES: usize = 1_000_000;
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

impl ShownName {
    /// Returns what is known of it; `None` if there is nothing.
    pub(crate) fn stat(&self) -> Option<&Stat> {
        match self {
            Self::Nothing => None,
            Self::Leaf { stat, .. } | Self::Directory { stat, .. } => Some(stat),
        }
    }
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

    /// Looks a path up. No directory on the way may be a link.
    pub(crate) fn find(&self, path: &Path) -> io::Result<ShownName> {
        let (mut places, mut above) = (self.places(), PathBuf::new());
        let mut names = path.iter().peekable();
        while let Some(name) = names.next() {
            let shown = self.directory(&above, &places)?.look(&CString::new(name.as_bytes())?)?;
            match shown {
                shown if names.peek().is_none() => return Ok(shown),
                ShownName::Directory { places: below, .. } => places = below,
                ShownName::Nothing | ShownName::Leaf { .. } => return Ok(ShownName::Nothing),
            }
            above.push(name);
        }
        Ok(ShownName::Nothing)
    }

    /// Opens a path of any length: the kernel takes 4,095 bytes at once.
    fn open_in(&self, place: usize, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut at: Option<OwnedFd> = None;
        let mut part = PathBuf::new();
        for name in path {
            if part.as_os_str().len() + name.len() >= MOST_AT_ONCE {
                let from = at.as_ref().unwrap_or(&self.roots[place]);
                at = Some(rustix::fs::openat2(from, &part, PASSED, Mode::empty(), INSIDE)?);
                part.clear();
            }
            part.push(name);
        }
        let part = if part.as_os_str().is_empty() { Path::new(".") } else { &part };
        rustix::fs::openat2(at.as_ref().unwrap_or(&self.roots[place]), part, flags, Mode::empty(), INSIDE)
    }

    /// Opens the directory of one layer.
    pub(crate) fn opened(&self, place: usize, path: &Path) -> io::Result<OwnedFd> {
        Ok(self.open_in(place, path, DIRECTORY)?)
    }

    /// Opens a regular file; `None` if there is none any more, or if it is closed to an ordinary user.
    pub(crate) fn file(&self, place: usize, path: &Path) -> io::Result<Option<File>> {
        let file = match self.open_in(place, path, FILE) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::ACCESS) => return Ok(None),
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
    /// Adds the names in the layers at places below `end`, those of removed files too. `false`: there are more than `most`.
    pub(crate) fn add_names(&self, end: usize, names: &mut Vec<CString>, most: usize) -> io::Result<bool> {
        for (_, directory) in self.0.iter().filter(|(place, _)| *place < end) {
            for entry in Dir::read_from(directory)? {
                let name = entry?.file_name().to_owned();
                if matches!(name.as_bytes(), b"." | b"..") {
                    continue;
                }
                if names.len() >= most {
                    return Ok(false);
                }
                names.push(name);
            }
        }
        Ok(true)
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
                    // Below a leaf, or where the name was removed, no directory shows.
                    Some((places, stat, _)) => shown((places.clone(), stat, places.last().copied())),
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
        // One that is closed to an ordinary user is not looked into either.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => return Ok(false),
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
