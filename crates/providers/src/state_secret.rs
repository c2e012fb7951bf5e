//! The secret of a provider in its part of the state folder: random bytes for the owner alone, made
//! once.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use eyot::{Error, ErrorKind};
use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};

/// The size of a secret, in bytes.
pub(crate) const SECRET_BYTES: usize = 32;
/// The name of the file.
pub(crate) const SECRET: &str = "secret";
/// The permission bits of users other than the owner.
const OTHERS_MAY: u32 = 0o077;
const OTHERS_MAY_WRITE: u32 = 0o022;
/// The permission bits of users who are neither the owner nor of the group.
#[cfg(feature = "kubernetes")]
const EVERYBODY_MAY: u32 = 0o007;

/// Makes an error of a failure on this host. `what` is verb and object.
pub(crate) fn failed(what: &str, error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => ErrorKind::Permission,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Quota,
        _ => ErrorKind::Setup,
    };
    Error::new(kind, format!("{what}: {error}")).with_source(error)
}

/// Makes a folder that only this user can change. Refuses one that others may change.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let found = fs::symlink_metadata(folder)?;
    let is_ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    if is_ours && found.mode() & OTHERS_MAY_WRITE == 0 {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "the folder is not this user's alone"))
    }
}

/// Reads the secret, which is made once. If several processes make it at the same time, all get the
/// first.
pub(crate) fn secret(folder: &Path) -> io::Result<[u8; SECRET_BYTES]> {
    let path = folder.join(SECRET);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    let mut secret = [0; SECRET_BYTES];
    getrandom(&mut secret[..], GetRandomFlags::empty())?;
    // With mode 0600. It gets its name when it is whole, unless the name is taken.
    let mut file = tempfile::Builder::new().prefix("secret-").tempfile_in(folder)?;
    file.write_all(&secret)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(&path) {
        Ok(_) => File::open(folder)?.sync_all()?,
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.error),
    }
    read(&path)
}

/// Reads a secret that somebody else has put there, such as a file of a Secret that is mounted: its owner, its mode and the
/// links to it are theirs to choose, as long as not everybody may read it.
#[cfg(feature = "kubernetes")]
pub(crate) fn mounted_secret(path: &Path) -> io::Result<[u8; SECRET_BYTES]> {
    let mut file = File::open(path)?;
    let found = file.metadata()?;
    let refused =
        |reason: &str| io::Error::new(io::ErrorKind::InvalidData, format!("`{}` {reason}", path.display()));
    if !found.is_file() {
        return Err(refused("is no file"));
    }
    if found.mode() & EVERYBODY_MAY != 0 {
        return Err(refused(
            "can be read or written by everybody; take those rights away, as with mode 0440",
        ));
    }
    let mut secret = [0; SECRET_BYTES];
    if found.len() != SECRET_BYTES as u64 || file.read_exact(&mut secret).is_err() {
        return Err(refused("does not have 32 bytes; make some: head -c 32 /dev/urandom"));
    }
    Ok(secret)
}

fn read(path: &Path) -> io::Result<[u8; SECRET_BYTES]> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let flags = i32::try_from(flags).map_err(io::Error::other)?;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    let refused = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, format!("`{SECRET}` {reason}"));
    if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(refused("is not a file of this user"));
    }
    if found.mode() & OTHERS_MAY != 0 {
        return Err(refused("can be read by others, who can then use these sandboxes"));
    }
    let mut secret = [0; SECRET_BYTES];
    if found.len() != SECRET_BYTES as u64 || file.read_exact(&mut secret).is_err() {
        return Err(refused("is damaged"));
    }
    Ok(secret)
}
