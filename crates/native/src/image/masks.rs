//! What of the host's programs' folders is covered inside, though they are bound read-only.
//!
//! - Sockets and FIFOs, whatever their permissions and whoever starts the sandbox: a read-only bind does not keep
//!   anybody from talking through them to a process of the host.
//! - What an ordinary user could read though not everybody can. Inside, the caller's own uid and groups still count
//!   (host ids can't be shed without privileges), so a file that is the caller's, or a group's of theirs, and not
//!   world-readable, would be readable inside too. As root, nothing inside has a host user's or group's rights.
//!
//! What can't be looked at, or can't be named, is covered with the directory that it lies in.

use std::collections::BTreeSet;
use std::fs::{self, FileType, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

/// Changes whenever what is covered does.
const FORM: u32 = 2;
/// How long the answer of a walk is believed while the upper directories look the same.
const BELIEVED: Duration = Duration::from_secs(600);

/// The paths below `roots` to cover. The walk (0.1–0.5 s) is done once per ten minutes and whenever one of the upper
/// directories has changed; its answer is kept in `layers`.
pub(super) fn covered(layers: &Path, roots: &[&str], as_root: bool) -> io::Result<Vec<String>> {
    let kept = layers.join(format!("masks-{:016x}", fingerprint(roots, as_root)));
    let age =
        fs::metadata(&kept).and_then(|found| found.modified()).ok().and_then(|time| time.elapsed().ok());
    if age.is_some_and(|age| age < BELIEVED) {
        return Ok(fs::read_to_string(&kept)?.split_terminator('\0').map(str::to_owned).collect());
    }
    let inside = if as_root { Inside::NobodyOfTheHost } else { Inside::caller()? };
    let found = walk(roots, &inside);
    let aside = super::aside(&kept);
    fs::write(&aside, found.iter().flat_map(|path| [path.as_str(), "\0"]).collect::<String>())?;
    fs::rename(&aside, &kept)?;
    Ok(found)
}

/// Whose rights on the host count inside.
enum Inside {
    /// A range of ids that own nothing on the host.
    NobodyOfTheHost,
    /// An ordinary user, with their groups.
    Caller { uid: u32, groups: BTreeSet<u32> },
}

impl Inside {
    fn caller() -> io::Result<Self> {
        let mut groups: BTreeSet<u32> =
            rustix::process::getgroups()?.iter().map(|gid| gid.as_raw()).collect();
        groups.insert(rustix::process::getegid().as_raw());
        Ok(Self::Caller { uid: rustix::process::geteuid().as_raw(), groups })
    }

    fn must_not_see(&self, path: &Path, found: &Metadata) -> bool {
        is_connectable(found.file_type()) || (!found.is_symlink() && self.alone_reads(path, found))
    }

    /// Whether this may be readable to who is inside though not to everybody.
    fn alone_reads(&self, path: &Path, found: &Metadata) -> bool {
        let Self::Caller { uid, groups } = self else {
            return false;
        };
        let needed = if found.is_dir() { 0o005 } else { 0o004 };
        let by_others = found.mode() & needed == needed;
        !by_others && (found.uid() == *uid || groups.contains(&found.gid()) || has_acl(path))
    }

    /// Whether who is inside could get to what this directory holds.
    fn may_enter(&self, directory: &Metadata) -> bool {
        matches!(self, Self::Caller { .. }) || directory.mode() & 0o001 != 0
    }
}

fn is_connectable(kind: FileType) -> bool {
    kind.is_socket() || kind.is_fifo()
}

/// Whether an access control list names further readers. Where that can't be found out, it may.
fn has_acl(path: &Path) -> bool {
    let found = rustix::fs::lgetxattr(path, "system.posix_acl_access", &mut [0_u8; 1][..]);
    !matches!(found, Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOENT))
}

fn walk(roots: &[&str], inside: &Inside) -> Vec<String> {
    let mut covered = BTreeSet::new();
    let mut pending: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
    while let Some(directory) = pending.pop() {
        let looked_at = look_into(&directory, inside);
        match looked_at {
            Ok(found) => {
                covered.extend(found.covered.iter().map(|path| nameable(path)));
                pending.extend(found.directories);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => {
                covered.insert(nameable(&directory));
            }
        }
    }
    let is_topmost =
        |path: &&String| !Path::new(path).ancestors().skip(1).any(|upper| holds(&covered, upper));
    covered.iter().filter(is_topmost).cloned().collect()
}

fn holds(covered: &BTreeSet<String>, path: &Path) -> bool {
    path.to_str().is_some_and(|path| covered.contains(path))
}

#[derive(Default)]
struct Found {
    covered: Vec<PathBuf>,
    /// To be looked into.
    directories: Vec<PathBuf>,
}

fn look_into(directory: &Path, inside: &Inside) -> io::Result<Found> {
    let mut all = Found::default();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let found = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            found => found?,
        };
        if inside.must_not_see(&path, &found) {
            all.covered.push(path);
        } else if found.is_dir() && inside.may_enter(&found) {
            all.directories.push(path);
        }
    }
    Ok(all)
}

/// The path itself, or else the nearest directory above it, that is UTF-8: a plan's paths are.
fn nameable(path: &Path) -> String {
    path.ancestors().find_map(Path::to_str).unwrap_or("/").to_owned()
}

fn fingerprint(roots: &[&str], as_root: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    (FORM, roots, as_root, rustix::process::geteuid().as_raw()).hash(&mut hasher);
    for root in roots {
        let children = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut paths: Vec<PathBuf> = children.chain([PathBuf::from(root)]).collect();
        paths.sort();
        for path in paths {
            if let Ok(found) = fs::symlink_metadata(&path) {
                (path, found.mtime(), found.mtime_nsec()).hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::state::make_dir;

    /// What is covered below the folder, without the folder's own path.
    fn covered_in(folder: &Path, inside: &Inside) -> Vec<String> {
        let root = folder.to_str().unwrap();
        walk(&[root], inside).iter().map(|path| path[root.len()..].to_owned()).collect()
    }

    fn write(path: PathBuf, mode: u32) {
        fs::write(&path, "x").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn sockets_and_fifos_are_covered_whatever_their_mode_and_whoever_starts_it() {
        let folder = tempfile::tempdir().unwrap();
        let _socket = UnixListener::bind(folder.path().join("socket")).unwrap();
        fs::set_permissions(folder.path().join("socket"), fs::Permissions::from_mode(0o777)).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        write(folder.path().join("mine"), 0o600);
        write(folder.path().join("public"), 0o644);
        assert_eq!(covered_in(folder.path(), &Inside::NobodyOfTheHost), ["/fifo", "/socket"]);
        assert_eq!(covered_in(folder.path(), &Inside::caller().unwrap()), ["/fifo", "/mine", "/socket"]);
    }

    #[test]
    fn what_has_no_name_in_utf_8_is_covered_with_its_directory_and_all_else_there() {
        let folder = tempfile::tempdir().unwrap();
        make_dir(&folder.path().join("d"), 0o755).unwrap();
        write(folder.path().join("d").join(OsStr::from_bytes(b"\xff")), 0o600);
        write(folder.path().join("d/other"), 0o600);
        assert_eq!(covered_in(folder.path(), &Inside::caller().unwrap()), ["/d"]);
    }

    #[test]
    fn a_folder_that_cannot_be_listed_is_covered() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        // Not a directory: the one failure that root gets as well.
        assert_eq!(walk(&[path, "/nonexistent"], &Inside::NobodyOfTheHost), [path]);
    }

    #[test]
    fn an_access_control_list_counts_as_one_that_lets_the_caller_in() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path().join("shared"), 0o640);
        write(folder.path().join("closed"), 0o640);
        // Version 2; rw for the owner, r for user 12345, for the group and as the mask, nothing for others.
        let entries: [(u16, u16, u32); 5] =
            [(1, 6, u32::MAX), (2, 4, 12345), (4, 4, u32::MAX), (16, 4, u32::MAX), (32, 0, u32::MAX)];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, rights, id) in entries {
            list.extend([&tag.to_le_bytes()[..], &rights.to_le_bytes()[..], &id.to_le_bytes()[..]].concat());
        }
        let shared = folder.path().join("shared");
        let flags = rustix::fs::XattrFlags::empty();
        match rustix::fs::lsetxattr(&shared, "system.posix_acl_access", &list, flags) {
            // This file system has none.
            Err(Errno::OPNOTSUPP) => return,
            set => set.unwrap(),
        }
        let stranger = Inside::Caller { uid: u32::MAX - 1, groups: BTreeSet::new() };
        assert_eq!(covered_in(folder.path(), &stranger), ["/shared"]);
    }
}
