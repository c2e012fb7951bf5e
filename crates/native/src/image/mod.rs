//! What a sandbox is made of: the host's own programs over a generated skeleton, a directory, or a rootfs tarball.

mod directory;
mod etc;
mod host;
mod masks;
mod read;
mod stream;
mod tarball;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use eyot::{Error, ErrorKind, Result};

use crate::state::StateDir;

pub(crate) use read::read_of_image;

/// An image as the set-up needs it.
#[derive(Debug, Clone)]
pub(crate) struct Image {
    /// As the caller named it.
    pub name: String,
    /// The read-only layer on the host.
    pub lower: String,
    /// Host paths that appear, read-only, at a path inside.
    pub binds: Vec<(String, String)>,
    /// Paths inside that are covered.
    pub masks: Vec<String>,
    /// The layer is a skeleton of ours and has every mount point.
    pub is_skeleton: bool,
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

/// Unpacks a tarball, of 1 MiB and 200 entries at most, into the folder `layer`, which must not be there yet, and reads
/// `etc/passwd` in it as a create does.
///
/// # Errors
/// Whatever a create would say about the tarball, or about the file.
#[cfg(feature = "fuzzing")]
pub fn unpack_for_fuzzing(tarball: &Path, layer: &Path) -> std::io::Result<String> {
    tarball::unpack_a_little(tarball, layer)?;
    read_of_image(layer, "etc/passwd")
}

/// Where a layer is built until it is complete. What is left there by a process that died is swept after an hour.
pub(crate) fn aside(layer: &Path) -> PathBuf {
    PathBuf::from(format!("{}{ASIDE}{}", layer.display(), eyot::SandboxId::generate()))
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
            crate::remove::remove_tree(&entry.path())?;
        }
    }
    Ok(())
}

/// Remembers the image `host` for a few seconds: looking whether the host has changed takes some sixty system calls.
#[derive(Debug, Default)]
pub(crate) struct ImageCache {
    host: Mutex<Option<(Instant, Image)>>,
}

/// How long the image `host` is believed to be what it was.
const BELIEVED: Duration = Duration::from_secs(5);

impl ImageCache {
    /// Finds an image by name: `host`, a directory, or a rootfs tarball (`.tar`, `.tar.gz`, `.tgz`).
    pub(crate) fn resolve(&self, state: &StateDir, name: Option<&str>, as_root: bool) -> Result<Image> {
        match name.unwrap_or(DEFAULT) {
            DEFAULT => self.host(state, as_root),
            name => from_path(state, name, as_root),
        }
    }

    /// Finds the image of a sandbox that is woken: the layer that it was made over, wherever its name leads now.
    pub(crate) fn resolve_again(
        &self,
        state: &StateDir,
        name: Option<&str>,
        lower: &Path,
        as_root: bool,
    ) -> Result<Image> {
        let name = match name.unwrap_or(DEFAULT) {
            DEFAULT => return self.host(state, as_root),
            name => name,
        };
        if !lower.is_dir() {
            let message =
                format!("create sandbox: image `{name}`, which it was made over, is not there any more");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        if !lower.starts_with(state.layers()) {
            directory::refuse_state(state, lower)?;
        }
        directory::image(name, lower)
    }

    fn host(&self, state: &StateDir, as_root: bool) -> Result<Image> {
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

fn from_path(state: &StateDir, name: &str, as_root: bool) -> Result<Image> {
    let path = Path::new(name);
    if !name.contains('/') && !path.exists() {
        return Err(Error::new(ErrorKind::NotFound, format!("create sandbox: there is no image `{name}`")).with_hint(
            "use `host`, the path of a directory with a root file system, or of a rootfs tarball (.tar, .tar.gz, .tgz)",
        ));
    }
    let failed = |error: std::io::Error| {
        let kind = if error.kind() == std::io::ErrorKind::NotFound {
            ErrorKind::NotFound
        } else {
            ErrorKind::Permission
        };
        Error::new(kind, format!("create sandbox: open image `{name}`: {}", crate::sentence(&error)))
    };
    let path = path.canonicalize().map_err(failed)?;
    match std::fs::metadata(&path).map_err(failed)?.is_dir() {
        true => {
            directory::refuse_state(state, &path)?;
            directory::image(name, &path)
        }
        false => tarball::image(state, name, &path, as_root),
    }
}
