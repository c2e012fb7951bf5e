//! The folders of the host's programs that the image `host` shows, and the mounts below them.
//!
//! Each folder is shown through an overlay of the sandbox's own. A bind would share its inodes with
//! the host and with every other sandbox: sockets could be connected to, locks would block others,
//! and notifications would tell what others run. An overlay does not show mounts below its layer,
//! so each mount below gets an overlay of its own.
//!
//! An ordinary user may not lay an overlay over a folder with mounts below: the kernel locks the
//! mounts that a new user namespace sees, because showing such a folder alone would show what they
//! hide. Such a folder is rebuilt in memory, entry by entry, with an overlay for each folder in it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::nameable;
use crate::mount_line::MountLine;
use crate::plan::RebuiltFolder;

/// File systems that the kernel provides. They hold no programs and tell of the host, so their
/// mounts are covered.
const OF_THE_KERNEL: [&str; 20] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// The treatment of the mounts below the program folders.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MountedBelow {
    /// Folders that need an overlay of their own. Outer folders come before inner ones.
    pub folders: BTreeSet<String>,
    /// Folders that are rebuilt in memory. Outer folders come before inner ones.
    pub rebuilt: Vec<RebuiltFolder>,
    /// Paths to cover: an overlay can't show them, or would show what the mount hides.
    pub covered: BTreeSet<String>,
}

impl MountedBelow {
    /// Reads which mounts are below these folders now.
    pub(super) fn find(roots: &[String], as_root: bool) -> io::Result<Self> {
        Self::read(&fs::read("/proc/self/mountinfo")?, roots, as_root)
    }

    fn read(mountinfo: &[u8], roots: &[String], as_root: bool) -> io::Result<Self> {
        let mut below = Self::default();
        let mut above = BTreeSet::new();
        for mount in mountinfo.split(|byte| *byte == b'\n').filter_map(HostMount::parse) {
            let Some(root) = roots.iter().find(|root| mount.is_below(root)) else { continue };
            if as_root && !is_open_to_others(&mount.point, Path::new(root)) {
                continue;
            }
            let folders = mount.point.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
            above.extend(folders.map(Path::to_path_buf));
            below.add(&mount);
        }
        if !as_root {
            above.iter().try_for_each(|folder| below.rebuild(folder, &above))?;
        }
        Ok(below)
    }

    fn add(&mut self, mount: &HostMount) {
        match (fs::metadata(&mount.point), mount.point.to_str()) {
            // Another mount hides it.
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {}
            (Ok(found), Some(path)) if found.is_dir() && !mount.is_of_the_kernel => {
                self.folders.insert(path.to_owned());
            }
            _ => {
                self.covered.insert(nameable(&mount.point));
            }
        }
    }

    /// Adds a folder to those that are rebuilt. Entries whose name is not UTF-8 are left out, and
    /// so are those that are neither a folder, a file nor a link.
    fn rebuild(&mut self, folder: &Path, above: &BTreeSet<PathBuf>) -> io::Result<()> {
        let Some(path) = folder.to_str().filter(|path| !self.covered.contains(*path)) else { return Ok(()) };
        let mut rebuilt = RebuiltFolder { path: path.to_owned(), ..RebuiltFolder::default() };
        let entries = match fs::read_dir(folder) {
            // Hidden by another mount, or closed to the caller, and so to the sandbox.
            Err(error)
                if [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied].contains(&error.kind()) =>
            {
                None
            }
            entries => Some(entries?),
        };
        for entry in entries.into_iter().flatten() {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            let (Ok(name), Some(in_utf8)) = (entry.file_name().into_string(), path.to_str()) else {
                continue;
            };
            if kind.is_dir() {
                if !above.contains(&path) && !self.covered.contains(in_utf8) {
                    self.folders.insert(in_utf8.to_owned());
                }
                rebuilt.folders.push(name);
            } else if kind.is_file() {
                rebuilt.files.push(name);
            } else if let (true, Ok(Some(target))) =
                (kind.is_symlink(), fs::read_link(&path).map(|target| target.to_str().map(str::to_owned)))
            {
                rebuilt.links.push((name, target));
            }
        }
        self.folders.remove(path);
        self.rebuilt.push(rebuilt);
        Ok(())
    }
}

/// Tells whether users other than the owner may pass through all folders from `root` down to
/// `path`. If not, no user inside can reach the path. A folder that can't be inspected counts as
/// open.
fn is_open_to_others(path: &Path, root: &Path) -> bool {
    let mut above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    above.all(|folder| fs::metadata(folder).map_or(true, |found| found.permissions().mode() & 0o001 != 0))
}

/// A mount of the host.
struct HostMount {
    point: PathBuf,
    is_of_the_kernel: bool,
}

impl HostMount {
    fn parse(line: &[u8]) -> Option<Self> {
        let mount = MountLine::parse(line)?;
        let is_of_the_kernel = OF_THE_KERNEL.iter().any(|name| name.as_bytes() == mount.kind);
        Some(Self { point: mount.point(), is_of_the_kernel })
    }

    fn is_below(&self, root: &str) -> bool {
        self.point.starts_with(root) && self.point != Path::new(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mountinfo(folder: &Path, mounts: &[(&str, &str)]) -> Vec<u8> {
        let line = |(point, file_system): &(&str, &str)| {
            format!("36 35 98:0 / {}/{point} rw,noatime shared:1 - {file_system} x rw\n", folder.display())
        };
        mounts.iter().map(line).collect::<String>().into_bytes()
    }

    #[test]
    fn for_root_a_folder_that_is_mounted_below_has_an_overlay_and_all_else_is_covered() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_str().unwrap().to_owned();
        for name in ["", "local", "local/a b", "proc"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
            fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(folder.path().join("file"), "").unwrap();
        let mounts = [
            ("local/a\\040b", "ext4"),
            ("local", "tmpfs"),
            ("local", "tmpfs"),
            ("file", "ext4"),
            ("proc", "proc"),
            ("hidden", "ext4"),
        ];
        let roots = std::slice::from_ref(&root);
        let below = MountedBelow::read(&mountinfo(folder.path(), &mounts), roots, true).unwrap();
        let paths =
            |names: &[&str]| names.iter().map(|name| format!("{root}/{name}")).collect::<BTreeSet<_>>();
        assert_eq!(below.folders, paths(&["local", "local/a b"]));
        assert_eq!(below.covered, paths(&["file", "proc"]));
        let elsewhere = MountedBelow::read(&mountinfo(folder.path(), &mounts), &["/usr".to_owned()], false);
        assert_eq!(elsewhere.unwrap(), MountedBelow::default());
    }

    #[test]
    fn for_an_ordinary_user_a_folder_with_mounts_below_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_str().unwrap().to_owned();
        for name in ["bin", "local/share/data", "local/lib"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("local/file"), "").unwrap();
        std::os::unix::fs::symlink("lib", folder.path().join("local/lib64")).unwrap();
        let mounts = mountinfo(folder.path(), &[("local/share/data", "ext4"), ("local/share/data", "ext4")]);
        let below = MountedBelow::read(&mounts, std::slice::from_ref(&root), false).unwrap();
        let paths = ["bin", "local/lib", "local/share/data"].map(|name| format!("{root}/{name}"));
        assert_eq!(below.folders, paths.into());
        let names: Vec<&str> = below.rebuilt.iter().map(|folder| &folder.path[root.len()..]).collect();
        assert_eq!(names, ["", "/local", "/local/share"]);
        let local = &below.rebuilt[1];
        assert_eq!(local.links, [("lib64".to_owned(), "lib".to_owned())]);
        assert_eq!((local.files.as_slice(), local.folders.len()), (&["file".to_owned()][..], 2));
    }

    #[test]
    fn what_lies_behind_a_closed_folder_is_left_out_for_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_str().unwrap().to_owned();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(folder.path().join("closed/inner")).unwrap();
        fs::set_permissions(folder.path().join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
        let read = |as_root| {
            let mounts = mountinfo(folder.path(), &[("closed/inner", "ext4")]);
            MountedBelow::read(&mounts, std::slice::from_ref(&root), as_root).unwrap().folders.len()
        };
        assert_eq!((read(true), read(false)), (0, 1));
    }
}
