//! Mounts with a copy on write: a folder of the host is the lowest layer of an overlay of its own. What the sandbox writes lies in its
//! directory, and belongs to its snapshots as its other files do.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use eyot::{SandboxPath, SandboxSpec};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The folder with what a sandbox wrote to such mounts, one directory each; in a sandbox's directory, on its disk, or in a
/// snapshot's folder.
pub(crate) const COW: &str = "cow";
/// The folder with the kernel's own directories for these overlays.
pub(crate) const COW_WORK: &str = "cow-work";
/// The folder with the facts about the host's files as they were when the sandbox was made, one file for each mount. They are in
/// the sandbox's directory or in a snapshot's folder.
pub(crate) const COW_BASE: &str = "cow-base";

/// A mount with a copy on write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CowMount {
    /// The name of its directories. It is the same in every sandbox.
    pub key: String,
    /// The folder of the host, without links.
    pub source: String,
    pub target: SandboxPath,
}

impl CowMount {
    fn new(source: &str, target: &SandboxPath) -> Self {
        let digest =
            Sha256::new().chain_update(source).chain_update([0]).chain_update(target.as_str()).finalize();
        let mut key = String::new();
        for byte in &digest[..8] {
            // Writing to a string does not fail.
            write!(key, "{byte:02x}").unwrap_or_default();
        }
        Self { key, source: source.to_owned(), target: target.clone() }
    }

    /// Lists those of a spec whose mounts have these sources, in the order of the spec.
    pub(crate) fn all(spec: &SandboxSpec, sources: &[String]) -> Vec<Self> {
        let mounts = spec.mounts.iter().zip(sources).filter(|(mount, _)| mount.cow);
        mounts.map(|(mount, source)| Self::new(source, &mount.target)).collect()
    }

    /// Returns its part of a folder of a sandbox or of a snapshot.
    pub(crate) fn in_folder(&self, folder: &Path) -> PathBuf {
        folder.join(COW).join(&self.key)
    }

    /// Returns the file with the facts about the host's files.
    pub(crate) fn base(&self, folder: &Path) -> PathBuf {
        folder.join(COW_BASE).join(&self.key)
    }
}

/// Returns a mount point below a folder, if there is one. `table` is the kernel's list of mounts.
pub(crate) fn mount_below(table: &str, folder: &Path) -> Option<PathBuf> {
    let points = table.lines().filter_map(|line| line.split(' ').nth(4)).map(unescaped);
    points.into_iter().find(|point| point != folder && point.starts_with(folder))
}

/// Returns a path of the list, which has an octal number for each blank and backslash.
fn unescaped(text: &str) -> PathBuf {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    PathBuf::from(escapes.iter().fold(text.to_owned(), |text, (escape, sign)| text.replace(escape, sign)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_below_a_folder_is_found_and_the_folders_own_and_neighbours_are_not() {
        let table = "22 1 254:0 / / rw - ext4 /dev/vda rw\n23 22 0:5 / /srv/a\\040b rw - tmpfs x rw\n\
                     24 23 0:6 / /srv/a\\040b/c rw - tmpfs x rw\n25 22 0:7 / /srv/a\\040bc rw - tmpfs x rw\n";
        assert_eq!(mount_below(table, Path::new("/srv/a b")), Some("/srv/a b/c".into()));
        assert_eq!(mount_below(table, Path::new("/srv/a b/c")), None);
        assert_eq!(mount_below(table, Path::new("/srv/a")), None);
    }

    #[test]
    fn a_mount_has_one_key_wherever_it_is_and_another_source_or_target_has_another() {
        let path = |path| SandboxPath::parse(path).unwrap();
        let key = |source, target| CowMount::new(source, &path(target)).key;
        assert_eq!(key("/a", "/b"), key("/a", "/b"));
        assert!(key("/a", "/b") != key("/a", "/c") && key("/a", "/b") != key("/c", "/b"));
        assert_eq!(key("/a", "/b").len(), 16);
    }
}
