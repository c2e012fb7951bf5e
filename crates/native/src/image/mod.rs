//! What a sandbox is made of: the host's own programs over a generated skeleton, an image of the store, a directory, or
//! a rootfs tarball.

mod directory;
mod etc;
mod host;
mod lower;
mod masks;
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

use eyot::{Error, ErrorKind, Result};
use eyot_image::{ImageName, RunConfig, UseGuard};

use crate::plan::RebuiltFolder;
use crate::state::StateDir;

pub(crate) use lower::Lower;
pub(crate) use read::read_of_image;
pub use sources::ImageSources;
pub use uses::{image_store, image_uses};

/// An image as the set-up needs it.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    /// As the caller named it.
    pub name: String,
    /// The read-only layers on the host.
    pub lower: Lower,
    /// How it wants its commands to be run.
    pub run: RunConfig,
    /// Folders of the host's programs, which appear read-only at the same path inside. Those above come before those below.
    pub programs: Vec<String>,
    /// Folders of the host's programs that are made anew: see [`programs`].
    pub rebuilt: Vec<RebuiltFolder>,
    /// Paths inside that are covered.
    pub masks: Vec<String>,
    /// Where what sandboxes mount onto comes from.
    pub mount_points: MountPoints,
}

/// Where what sandboxes mount onto comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountPoints {
    /// The layer is a skeleton of ours and has all.
    Skeleton,
    /// A layer of ours above the image's: see [`points`].
    Above,
    /// Each sandbox has its own.
    Own,
}

impl Image {
    /// One that is whole: nothing of the host's is added to its layers.
    fn of_layers(name: &str, lower: Lower, run: RunConfig) -> Self {
        let (name, programs, masks) = (name.to_owned(), Vec::new(), Vec::new());
        let mount_points = if lower.layers.is_empty() { MountPoints::Own } else { MountPoints::Above };
        Self { name, lower, run, programs, rebuilt: Vec::new(), masks, mount_points }
    }

    /// Its layer is a skeleton of ours.
    pub(crate) fn is_skeleton(&self) -> bool {
        self.mount_points == MountPoints::Skeleton
    }

    /// Where it looks for programs, if it says so.
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

/// The image that is used when none is named.
pub(crate) const DEFAULT: &str = "host";

/// Unpacks a tarball, of [`eyot_image::unpack::UnpackLimits::SMALL`] at most, into the folder `layer`, which must not be there yet, and reads
/// `etc/passwd` in it as a create does.
///
/// # Errors
/// Whatever a create would say about the tarball, or about the file.
#[cfg(feature = "fuzzing")]
pub fn unpack_for_fuzzing(tarball: &Path, layer: &Path) -> std::io::Result<String> {
    use eyot_image::unpack::{Owners, UnpackLimits, unpack_file};
    unpack_file(tarball, layer, Owners::Folded, &UnpackLimits::SMALL)?;
    read_of_image(&Lower::one(&layer.to_string_lossy()), "etc/passwd")
}

/// The path itself, or else the nearest directory above it, that is UTF-8: a plan's paths are.
fn nameable(path: &Path) -> String {
    path.ancestors().find_map(Path::to_str).unwrap_or("/").to_owned()
}

/// Where a layer is built until it is complete. What is left there by a process that died is swept after an hour.
pub(crate) fn aside(layer: &Path) -> PathBuf {
    PathBuf::from(format!("{}{ASIDE}{}", layer.display(), eyot::SandboxId::generate()))
}

/// Tells whether a name is one that [`aside`] makes.
pub(crate) fn is_aside(name: &str) -> bool {
    name.contains(ASIDE)
}

const ASIDE: &str = ".building-";
const ABANDONED: Duration = Duration::from_secs(3600);

/// Removes half-built layers that nobody builds any more.
pub(crate) fn sweep(layers: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(layers)? {
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

/// Remembers the image `host` for a few seconds: looking whether the host has changed takes some sixty system calls. And
/// the last image of the store, for as long as the store's index is the same.
#[derive(Debug, Default)]
pub(crate) struct ImageCache {
    host: Mutex<Option<(Instant, Image)>>,
    stored: Mutex<Option<stored::Remembered>>,
}

/// How long the image `host` is believed to be what it was.
const BELIEVED: Duration = Duration::from_secs(5);

impl ImageCache {
    /// Finds an image by name: `host`, one of the store, or the path of a directory or a rootfs tarball (`.tar`, `.tar.gz`,
    /// `.tgz`), which begins with `/` or `.`.
    /// The layers of one of the store stay while the guard lives.
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

    /// Finds the image of a sandbox that is woken: the layer that it was made over, wherever its name leads now.
    pub(crate) fn resolve_again(
        &self,
        state: &StateDir,
        name: Option<&str>,
        lower: &Lower,
        as_root: bool,
    ) -> Result<Image> {
        let name = match name.unwrap_or(DEFAULT) {
            DEFAULT => return self.host(state, as_root),
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
        directory::image(name, folder)
    }

    /// The image `host` with what is mounted below its folders now: a mount that went unseen would show what it hides.
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

/// There is no image of a name that could be one's. It travels as the source of an [`Error`], for whoever can fetch it.
#[derive(Debug)]
struct ImageAbsent;

impl fmt::Display for ImageAbsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the store has no such image")
    }
}

impl StdError for ImageAbsent {}

/// Whether a create failed for want of its image.
pub(crate) fn is_absent(error: &Error) -> bool {
    error.source().is_some_and(|source| source.is::<ImageAbsent>())
}

/// What to do where there is no image of that name: one that could be a registry's can be pulled.
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

/// Tells if an image's name is a path of the host. Its form alone decides, so that a name which a tenant or a model has
/// chosen never reaches the file system.
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
        Error::new(kind, format!("create sandbox: open image `{name}`: {}", crate::sentence(&error)))
    };
    let path = path.canonicalize().map_err(failed)?;
    if std::fs::metadata(&path).map_err(failed)?.is_dir() {
        directory::refuse_state(state, &path)?;
        directory::image(name, &path)
    } else {
        tarball::image(state, name, &path)
    }
}
