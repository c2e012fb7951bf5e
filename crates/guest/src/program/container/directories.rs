//! Mount points that a container's engine made as root's, given to the user whom they are for. Only
//! the mount point itself is changed: what is in it may be another sandbox's, and a mount can't be
//! replaced from inside.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::identity::open_directory;
use super::sys;
use crate::protocol::Identity;
use crate::protocol::container::PreparedDirectory;

/// Prepares them all.
pub fn prepare(directories: &[PreparedDirectory], user: &Identity) -> io::Result<()> {
    for directory in directories {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("prepare `{}`: {error}", directory.path));
        prepare_one(directory, user).map_err(named)?;
    }
    Ok(())
}

/// Makes the user's home directory where the image has none. For a sandbox's first guest only:
/// later, whatever is there is the user's own. `has_home`: it is a mount point.
pub fn make_home(user: &Identity, has_home: bool) -> io::Result<()> {
    if has_home || Path::new(&user.home).exists() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).create(&user.home)?;
    sys::change_owner(&open_directory(&user.home)?, user.uid, user.gid)
}

fn prepare_one(directory: &PreparedDirectory, user: &Identity) -> io::Result<()> {
    let opened = open_directory(&directory.path)?;
    let known = opened.metadata()?;
    if let Some(mode) = directory.mode.filter(|mode| known.mode() & 0o7777 != *mode) {
        opened.set_permissions(Permissions::from_mode(mode))?;
    }
    if directory.of_user && (known.uid(), known.gid()) != (user.uid, user.gid) {
        sys::change_owner(&opened, user.uid, user.gid)?;
    }
    Ok(())
}
