//! The root file system of a sandbox: the host's own programs over a generated skeleton, an image
//! of the store, a directory, or a rootfs tarball.

mod directory;
mod etc;
mod host;
mod lower;
mod managed;
mod masks;
mod overlay_layers;
pub(crate) mod points;
mod programs;
mod read;
mod sources;
mod stored;
mod tarball;
mod uses;

use std::error::Error as StdError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use eyot::internal::system_reason;
use eyot::{Error, ErrorKind, Result};
use eyot_image::{ImageName, RunConfig, UseGuard};
use rustix::io::Errno;

use crate::plan::RebuiltFolder;
use crate::state::StateDir;

pub(crate) use lower::{DirectoryFacts, Lower, SnapshotLayer};
pub(crate) use managed::NativeImages;
pub(crate) use overlay_layers::{fits_in_mount, image_point, overlay_layers};
pub(crate) use read::read_of_image;
pub use sources::ImageSources;
pub(crate) use sources::not_allowed_hint;
pub use uses::{image_store, image_uses};

/// An image, in the form that the set-up needs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Image {
    /// The name that the caller gave.
    pub name: String,
    /// The read-only layers on the host.
    pub lower: Lower,
    /// The image's wishes for running commands.
    pub run: RunConfig,
    /// Folders of the host's programs, shown read-only at the same path inside. Outer folders come
    /// before inner ones.
    pub programs: Vec<String>,
    /// Folders of the host's programs that are rebuilt in memory: see [`programs`].
    pub rebuilt: Vec<RebuiltFolder>,
    /// Paths inside that are covered.
    pub masks: Vec<String>,
    /// The origin of the mount points.
    pub mount_points: MountPoints,
}

/// The origin of the directories and files that a sandbox's mounts go onto.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountPoints {
    /// The image's layer is a skeleton of ours, which has them all.
    Skeleton,
    /// A layer of ours lies above the image's layers: see [`points`].
    Above,
    /// Each sandbox gets them in its own upper directory.
    Own,
}

impl Image {
    /// A complete image: nothing of the host is added to its layers.
    fn of_layers(name: &str, lower: Lower, run: RunConfig) -> Self {
        let (name, programs, masks) = (name.to_owned(), Vec::new(), Vec::new());
        let mount_points = if lower.layers.is_empty() { MountPoints::Own } else { MountPoints::Above };
        Self { name, lower, run, programs, rebuilt: Vec::new(), masks, mount_points }
    }

    /// Puts snapshots above the image's layers.
    fn below(mut self, snapshots: &[SnapshotLayer]) -> Self {
        self.lower.snapshots = snapshots.to_vec();
        self
    }

    /// Tells whether the image's layer is a skeleton of ours.
    pub(crate) fn is_skeleton(&self) -> bool {
        self.mount_points == MountPoints::Skeleton
    }

    /// Returns what is known of a directory of the image or of the mount points above it, by its path relative to the root.
    pub(crate) fn directory(&self, path: &Path) -> Result<Option<DirectoryFacts>, Errno> {
        let above = (self.mount_points == MountPoints::Above).then(|| points::NAME.to_owned());
        let layers = above.into_iter().chain(self.lower.layers.iter().cloned()).collect();
        Lower { layers, ..self.lower.clone() }.directory(path)
    }

    /// Returns the image's `PATH`, if it sets one.
    pub(crate) fn program_path(&self) -> Option<&str> {
        self.run.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str())
    }
}

/// The links that every sandbox has in `/dev`, beside its device nodes.
pub(crate) const DEVICE_LINKS: [(&str, &str); 5] = [
    ("dev/fd", "/proc/self/fd"),
    ("dev/stdin", "/proc/self/fd/0"),
    ("dev/stdout", "/proc/self/fd/1"),
    ("dev/stderr", "/proc/self/fd/2"),
    ("dev/ptmx", "pts/ptmx"),
];

/// The image of a spec that names none.
pub(crate) const DEFAULT: &str = "host";

/// Variables of the image `host`. Python writes lines as it prints them, and `pip install` works
/// although the distribution marks its Python as its own.
pub(crate) const HOST_VARIABLES: [(&str, &str); 2] =
    [("PIP_BREAK_SYSTEM_PACKAGES", "1"), ("PYTHONUNBUFFERED", "1")];

/// Tells whether the image of a spec is `host`.
pub(crate) fn is_host(image: Option<&str>) -> bool {
    image.unwrap_or(DEFAULT) == DEFAULT
}

/// Unpacks a tarball (within [`eyot_image::unpack::UnpackLimits::SMALL`]) into the folder `layer`,
/// which must not exist yet, and reads its `etc/passwd` as a create does.
///
/// # Errors
/// The errors that a create would return for the tarball or for the file.
#[cfg(feature = "fuzzing")]
pub fn unpack_for_fuzzing(tarball: &Path, layer: &Path) -> std::io::Result<String> {
    use eyot_image::unpack::{Owners, UnpackLimits, unpack_file};
    unpack_file(tarball, layer, Owners::Folded, &UnpackLimits::SMALL)?;
    read_of_image(&Lower::one(&layer.to_string_lossy()), "etc/passwd")
}

/// Returns the path or, if it is not UTF-8, the nearest directory above it that is. A plan can hold
/// only UTF-8 paths.
fn nameable(path: &Path) -> String {
    path.ancestors().find_map(Path::to_str).unwrap_or("/").to_owned()
}

/// Returns the path at which a layer is built until it is complete. A layer that a killed process
/// has left there is swept after an hour.
pub(crate) fn aside(layer: &Path) -> PathBuf {
    PathBuf::from(format!("{}{ASIDE}{}", layer.display(), eyot::SandboxId::generate()))
}

/// Tells whether [`aside`] made this name.
pub(crate) fn is_aside(name: &str) -> bool {
    name.contains(ASIDE)
}

const ASIDE: &str = ".building-";
const ABANDONED: Duration = Duration::from_secs(3600);

/// Removes half-built layers that no process builds any more.
pub(crate) fn sweep(layers: &Path) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(layers) {
        // Nothing was built yet.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let half_built = entry.file_name().to_string_lossy().contains(ASIDE);
        let age =
            entry.metadata().and_then(|found| found.modified()).ok().and_then(|time| time.elapsed().ok());
        if half_built && age.is_some_and(|age| age > ABANDONED) {
            eyot_image::remove_tree(&entry.path())?;
        }
    }
    Ok(())
}

/// Remembers the image `host` for a few seconds, because a look at the host takes about sixty
/// system calls. Also remembers the last image of the store while the store's index is unchanged.
#[derive(Debug, Default)]
pub(crate) struct ImageCache {
    host: Mutex<Option<(Instant, Image)>>,
    stored: Mutex<Option<stored::Remembered>>,
}

/// The time for which the image `host` is taken as unchanged.
const BELIEVED: Duration = Duration::from_secs(5);

impl ImageCache {
    /// Finds an image by name: `host`, a name in the store, or the path of a directory or a rootfs
    /// tarball (`.tar`, `.tar.gz`, `.tgz`), which begins with `/` or `.`. The guard keeps the
    /// layers of an image of the store.
    pub(crate) fn resolve(
        &self,
        state: &StateDir,
        name: Option<&str>,
        as_root: bool,
    ) -> Result<(Image, Option<UseGuard>)> {
        let name = match name.unwrap_or(DEFAULT) {
            DEFAULT => return Ok((self.host(state, as_root)?, None)),
            name => name,
        };
        let mut last = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        match stored::image(state, name, &mut last)? {
            Some((image, held)) => Ok((image, Some(held))),
            None => Ok((from_path(state, name)?, None)),
        }
    }

    /// Finds the image of a sandbox that is woken: the layers that it was made over, even if its
    /// name means another image now.
    pub(crate) fn resolve_again(
        &self,
        state: &StateDir,
        name: Option<&str>,
        lower: &Lower,
        as_root: bool,
    ) -> Result<Image> {
        let name = match name.unwrap_or(DEFAULT) {
            DEFAULT => {
                let image = self.host(state, as_root)?;
                return Ok(image.below(&lower.snapshots));
            }
            name => name,
        };
        if !lower.is_there() {
            let message =
                format!("create sandbox: image `{name}`, which it was made over, is not there any more");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let folder = Path::new(&lower.folder);
        if !lower.layers.is_empty() {
            stored::make_mount_points(state, folder)?;
            return Ok(Image::of_layers(name, lower.clone(), RunConfig::default()));
        }
        if !folder.starts_with(state.layers()) {
            directory::refuse_state(state, folder)?;
        }
        Ok(directory::image(name, folder)?.below(&lower.snapshots))
    }

    /// Returns the image `host` with the current mounts below its folders: a mount that was missed
    /// would show what it hides.
    fn host(&self, state: &StateDir, as_root: bool) -> Result<Image> {
        let mut image = self.remembered_host(state, as_root)?;
        host::add_mounts(&mut image, as_root)?;
        Ok(image)
    }

    fn remembered_host(&self, state: &StateDir, as_root: bool) -> Result<Image> {
        let mut cached = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, image)) = &*cached
            && since.elapsed() < BELIEVED
        {
            return Ok(image.clone());
        }
        let image = host::image(state, as_root)?;
        *cached = Some((Instant::now(), image.clone()));
        Ok(image)
    }
}

/// The store has no image of this name, and the name could be one of an image. It is the source of
/// an [`Error`], for callers that can fetch the image.
#[derive(Debug)]
struct ImageAbsent;

impl fmt::Display for ImageAbsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store has no such image")
    }
}

impl StdError for ImageAbsent {}

/// Tells whether a create failed because its image is missing.
pub(crate) fn is_absent(error: &Error) -> bool {
    error.source().is_some_and(|source| source.is::<ImageAbsent>())
}

/// Makes the error for a missing image. The hint says how to get it; an image that a registry may
/// have can be pulled.
fn absent(name: &str) -> Error {
    let hint = match ImageName::parse(name) {
        Ok(parsed) => {
            let name = parsed.short();
            format!(
                "get it: eyot image pull {name}, or eyot image import FILE --name {name}; or use `host`; the path of a \
                 root file system begins with `/` or `./`"
            )
        }
        Err(_) => "use `host`, an image of `eyot image ls`, the path of a directory with a root file system, or of a \
                   rootfs tarball (.tar, .tar.gz, .tgz)"
            .to_owned(),
    };
    Error::new(ErrorKind::NotFound, format!("create sandbox: there is no image `{name}`"))
        .with_hint(hint)
        .with_source(ImageAbsent)
}

/// Tells whether an image's name is a path on the host. Only its form decides, so that a name that
/// a tenant or a model has chosen never reaches the file system.
fn is_path(name: &str) -> bool {
    name.starts_with(['/', '.'])
}

fn from_path(state: &StateDir, name: &str) -> Result<Image> {
    if !is_path(name) {
        return Err(absent(name));
    }
    let path = Path::new(name);
    let failed = |error: std::io::Error| {
        let kind = if error.kind() == std::io::ErrorKind::NotFound {
            ErrorKind::NotFound
        } else {
            ErrorKind::Permission
        };
        Error::new(kind, format!("create sandbox: open image `{name}`: {}", system_reason(&error)))
    };
    let path = path.canonicalize().map_err(failed)?;
    if std::fs::metadata(&path).map_err(failed)?.is_dir() {
        directory::refuse_state(state, &path)?;
        directory::image(name, &path)
    } else {
        tarball::image(state, name, &path)
    }
}
