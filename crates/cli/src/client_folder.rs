//! The folder that one of our clients (the SDKs) made for the socket of a server that it started. A
//! client that is killed removes nothing, so its server does, and the next server removes what
//! killed clients and servers have left.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The prefix of these folders' names.
const PREFIX: &str = "eyot-";
/// The names of the sockets that may be in one.
const SOCKETS: [&str; 2] = ["eyot.sock", "server.sock"];
const LOG: &str = "server.log";
/// The age below which a folder without a socket is kept: its client may be about to start a
/// server.
const ABOUT_TO_START: Duration = Duration::from_secs(3600);

/// The folder of this server's socket. Dropping it removes the folder.
pub struct ClientFolder(PathBuf);

impl ClientFolder {
    /// Returns the folder of `socket`, if a client made it for that. Removes those of clients and
    /// servers that were killed.
    pub fn of(socket: &Path) -> Option<Self> {
        let folder = socket.parent().filter(|folder| is_clients(folder))?;
        if let Some(beside) = folder.parent()
            && let Err(error) = sweep(beside, folder)
        {
            tracing::debug!(%error, "look for folders that killed clients have left");
        }
        Some(Self(folder.to_owned()))
    }
}

impl Drop for ClientFolder {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::debug!(%error, "the client's folder stays");
        }
    }
}

/// Tells whether a folder is a client's: it has such a name, and belongs to this user alone.
fn is_clients(folder: &Path) -> bool {
    let is_named = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    let found = fs::symlink_metadata(folder);
    is_named
        && found.is_ok_and(|found| {
            found.is_dir()
                && found.mode() & 0o777 == 0o700
                && found.uid() == rustix::process::geteuid().as_raw()
        })
}

fn sweep(beside: &Path, own: &Path) -> io::Result<()> {
    for entry in fs::read_dir(beside)? {
        let folder = entry?.path();
        if folder != own && is_clients(&folder) && is_left(&folder)? {
            remove(&folder)?;
        }
    }
    Ok(())
}

/// Tells whether the folder was left: its socket has no listener, and it contains only what servers
/// and clients put there.
fn is_left(folder: &Path) -> io::Result<bool> {
    let mut is_dead = None;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if SOCKETS.iter().any(|socket| name == *socket) {
            let tried = std::os::unix::net::UnixStream::connect(folder.join(&name));
            is_dead = Some(tried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused));
        } else if name != LOG {
            return Ok(false);
        }
    }
    let age = fs::metadata(folder)?.modified()?.elapsed().unwrap_or_default();
    Ok(is_dead.unwrap_or(age > ABOUT_TO_START))
}

fn remove(folder: &Path) -> io::Result<()> {
    for name in SOCKETS.into_iter().chain([LOG]) {
        match fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_dir(folder)
}
