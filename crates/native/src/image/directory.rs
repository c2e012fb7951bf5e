//! A directory of the host as the root file system. It is used in place and never written to.

use std::path::Path;

use eyot::{Error, ErrorKind, Result};
use eyot_image::RunConfig;

use super::{Image, Lower};
use crate::state::StateDir;

/// Refuses a directory that contains the state folder or lies in it, because the sandbox would see
/// the files and sockets of other sandboxes. `path` must be canonical.
pub(super) fn refuse_state(state: &StateDir, path: &Path) -> Result<()> {
    if state.overlaps(path) {
        Err(Error::invalid("image", "must not contain Eyot's state folder, nor lie inside it"))
    } else {
        Ok(())
    }
}

/// Opens the image in `path`, which must look like a root file system.
pub(super) fn image(name: &str, path: &Path) -> Result<Image> {
    let has_programs = ["bin", "usr/bin"].iter().any(|folder| path.join(folder).is_dir());
    let text = path.to_str().ok_or_else(|| Error::invalid("image", "must be a path in UTF-8"))?;
    if path == Path::new("/") {
        let message = "create sandbox: image `/` would show the whole host inside";
        return Err(Error::new(ErrorKind::Invalid, message).with_hint("use the image `host`"));
    }
    if !has_programs {
        let message = format!("create sandbox: image `{name}` has neither /bin nor /usr/bin");
        return Err(Error::new(ErrorKind::Invalid, message).with_hint("it must be a root file system"));
    }
    Ok(Image::of_layers(name, Lower::one(text), RunConfig::default()))
}
