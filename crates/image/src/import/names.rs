//! Names of an archive's files: their number, their links, and the error of a missing one.

use std::io;

use crate::failure::refused;

/// A limit above the number of files in any archive of images. A tarball of a root file system has
/// many more.
pub(super) const MAX_FILES: usize = 10_000;

/// Resolves a link in an archive: beside the link itself, and never outside of the archive.
pub(super) fn resolve_link(name: &str, target: &str) -> String {
    let mut parts: Vec<&str> = name.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "" | "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the refusal of an archive without this file.
pub(super) fn missing(file: &str) -> io::Error {
    refused(format!("it lacks `{file}`"))
}
