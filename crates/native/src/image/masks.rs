//! The files below the host's program folders that are covered in sandboxes of an ordinary user.
//!
//! Inside, the caller's own uid and groups still count, because an ordinary user can't give up host
//! ids. So a file that belongs to the caller or one of the caller's groups, and is not
//! world-readable, would be readable inside. As root nothing is covered: no process inside has the
//! rights of a user or a group of the host.
//!
//! If a path can't be inspected, or its name can't be written in a plan, the directory around it is
//! covered.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, statat};
use rustix::io::Errno;

use super::nameable;

/// The version of the cover rules. Raise it whenever they change.
const FORM: u32 = 3;
/// The time for which the result of a walk is used while the upper directories look the same.
const BELIEVED: Duration = Duration::from_secs(600);

/// Returns the paths below `roots` to cover. The walk (0.1–0.5 s) is repeated after ten minutes,
/// and when one of the upper directories has changed. Its result is kept in `layers` for other
/// processes, and in memory for other state folders of this one.
pub(super) fn covered(layers: &Path, roots: &[String]) -> io::Result<Vec<String>> {
    let fingerprint = fingerprint(roots);
    let kept = layers.join(format!("masks-{fingerprint:016x}"));
    let age =
        fs::metadata(&kept).and_then(|found| found.modified()).ok().and_then(|time| time.elapsed().ok());
    if age.is_some_and(|age| age < BELIEVED) {
        return Ok(fs::read_to_string(&kept)?.split_terminator('\0').map(str::to_owned).collect());
    }
    let walked = HostWalk::last_or_new(fingerprint, roots)?;
    let aside = super::aside(&kept);
    let paths = walked.found.iter().flat_map(|path| [path.as_str(), "\0"]);
    fs::write(&aside, paths.collect::<String>())?;
    File::open(&aside)?.set_modified(walked.began)?;
    fs::rename(&aside, &kept)?;
    Ok(walked.found)
}

/// One walk, and what it found.
#[derive(Clone)]
struct HostWalk {
    fingerprint: u64,
    began: SystemTime,
    found: Vec<String>,
}

impl HostWalk {
    /// Returns this process's last walk, or walks if that was over other folders or long ago.
    /// Others wait meanwhile, instead of walking, too.
    fn last_or_new(fingerprint: u64, roots: &[String]) -> io::Result<Self> {
        static LAST: Mutex<Option<HostWalk>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let is_believed = |walk: &&Self| {
            walk.fingerprint == fingerprint && walk.began.elapsed().is_ok_and(|age| age < BELIEVED)
        };
        if let Some(walk) = last.as_ref().filter(is_believed) {
            return Ok(walk.clone());
        }
        let began = SystemTime::now();
        let found = walk(roots, &CallerIds::current()?);
        Ok(last.insert(Self { fingerprint, began, found }).clone())
    }
}

/// An ordinary user, whose rights on the host also hold inside.
struct CallerIds {
    uid: u32,
    groups: BTreeSet<u32>,
}

impl CallerIds {
    fn current() -> io::Result<Self> {
        let mut groups: BTreeSet<u32> =
            rustix::process::getgroups()?.iter().map(|gid| gid.as_raw()).collect();
        groups.insert(rustix::process::getegid().as_raw());
        Ok(Self { uid: rustix::process::geteuid().as_raw(), groups })
    }

    /// Tells whether the caller may be able to read a file or folder that not everybody can read.
    fn alone_reads(&self, path: impl Fn() -> PathBuf, found: &Stat) -> bool {
        let needed = if is_directory(found) { 0o005 } else { 0o004 };
        let by_others = found.st_mode & needed == needed;
        !by_others && (found.st_uid == self.uid || self.groups.contains(&found.st_gid) || has_acl(&path()))
    }
}

fn is_directory(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}

/// Tells whether a file has an access control list, which may name further readers. Assumes so if
/// that can't be found out.
fn has_acl(path: &Path) -> bool {
    let found = rustix::fs::lgetxattr(path, "system.posix_acl_access", &mut [0_u8; 1][..]);
    !matches!(found, Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOENT))
}

fn walk(roots: &[String], caller: &CallerIds) -> Vec<String> {
    let mut covered = BTreeSet::new();
    let mut pending: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
    while let Some(directory) = pending.pop() {
        let looked_at = look_into(&directory, caller);
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
struct DirectoryScan {
    covered: Vec<PathBuf>,
    /// The directories to look into next.
    directories: Vec<PathBuf>,
}

/// Looks at each entry by its name in the opened folder: there are some 100,000, and each whole path
/// would be looked up from the root.
fn look_into(directory: &Path, caller: &CallerIds) -> io::Result<DirectoryScan> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty())?;
    let mut all = DirectoryScan::default();
    for entry in Dir::read_from(&opened)? {
        let entry = entry?;
        let name = entry.file_name();
        // Everybody may read where a link leads.
        if [c".", c".."].contains(&name) || entry.file_type() == FileType::Symlink {
            continue;
        }
        let found = match statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            found => found?,
        };
        let path = || directory.join(OsStr::from_bytes(name.to_bytes()));
        if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
            continue;
        }
        if caller.alone_reads(path, &found) {
            all.covered.push(path());
        } else if is_directory(&found) {
            all.directories.push(path());
        }
    }
    Ok(all)
}

fn fingerprint(roots: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (FORM, roots, rustix::process::geteuid().as_raw()).hash(&mut hasher);
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
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::state::make_dir;

    /// Lists the covered paths below a folder, relative to it.
    fn covered_in(folder: &Path, caller: &CallerIds) -> Vec<String> {
        let root = folder.to_str().unwrap();
        walk(&[root.to_owned()], caller).iter().map(|path| path[root.len()..].to_owned()).collect()
    }

    fn write(path: PathBuf, mode: u32) {
        fs::write(&path, "x").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn files_that_only_the_caller_reads_are_covered() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path().join("mine"), 0o600);
        write(folder.path().join("public"), 0o644);
        assert_eq!(covered_in(folder.path(), &CallerIds::current().unwrap()), ["/mine"]);
    }

    #[test]
    fn what_has_no_name_in_utf_8_is_covered_with_its_directory_and_all_else_there() {
        let folder = tempfile::tempdir().unwrap();
        make_dir(&folder.path().join("d"), 0o755).unwrap();
        write(folder.path().join("d").join(OsStr::from_bytes(b"\xff")), 0o600);
        write(folder.path().join("d/other"), 0o600);
        assert_eq!(covered_in(folder.path(), &CallerIds::current().unwrap()), ["/d"]);
    }

    #[test]
    fn a_folder_that_cannot_be_listed_is_covered() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        // Not a directory: the one failure that root gets as well.
        let roots = [path.to_owned(), "/nonexistent".to_owned()];
        assert_eq!(walk(&roots, &CallerIds::current().unwrap()), [path]);
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
        let stranger = CallerIds { uid: u32::MAX - 1, groups: BTreeSet::new() };
        assert_eq!(covered_in(folder.path(), &stranger), ["/shared"]);
    }
}
