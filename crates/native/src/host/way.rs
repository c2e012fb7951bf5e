//! The path to the state folder, with all folders and links on it. Another user who made one of the
//! links, or who can replace one of the folders, could lead the path elsewhere.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The number of links that the kernel follows.
const MAX_LINKS: usize = 40;
/// The permission bit by which everybody may write to a folder.
const OPEN: u32 = 0o002;
/// The permission bit by which, in a folder that everybody may write to, users may replace only
/// their own files.
const STICKY: u32 = 0o1000;

/// Finds the first part of the path that another user controls, as the end of a sentence. Parts
/// that do not exist yet are safe. `uid` is the caller. Root is trusted, and so is the owner of
/// `/`, which is what an unmapped root appears as.
pub(super) fn controlled_by_others(path: &Path, uid: u32) -> Option<String> {
    let root = fs::metadata("/").ok()?.uid();
    let is_trusted = |owner: u32| [uid, 0, root].contains(&owner);
    let mut to_go: VecDeque<OsString> = names(&std::path::absolute(path).ok()?).collect();
    let (mut reached, mut links) = (PathBuf::from("/"), 0);
    while let Some(name) = to_go.pop_front() {
        if name == ".." {
            reached.pop();
            continue;
        }
        let next = reached.join(&name);
        let found = fs::symlink_metadata(&next).ok()?;
        if found.is_symlink() {
            links += 1;
            if !is_trusted(found.uid()) {
                return Some(format!(
                    "goes through `{}`, a link that uid {} made",
                    next.display(),
                    found.uid()
                ));
            }
            let target = fs::read_link(&next).ok().filter(|_| links <= MAX_LINKS)?;
            if target.is_absolute() {
                reached = PathBuf::from("/");
            }
            names(&target).rev().for_each(|name| to_go.push_front(name));
            continue;
        }
        // The last one is the state folder itself, which has rules of its own.
        if !to_go.is_empty() && found.mode() & OPEN != 0 && found.mode() & STICKY == 0 {
            return Some(format!("goes through `{}`, which everybody may write to", next.display()));
        }
        reached = next;
    }
    None
}

/// Lists the names and `..` in a path, in order.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use super::*;

    fn of(path: &Path) -> Option<String> {
        controlled_by_others(path, rustix::process::geteuid().as_raw())
    }

    #[test]
    fn ones_own_links_and_what_is_not_there_are_fine() {
        let folder = tempfile::tempdir().unwrap();
        symlink("real/state", folder.path().join("link")).unwrap();
        assert_eq!(of(&folder.path().join("link")), None);
        fs::create_dir_all(folder.path().join("real/state")).unwrap();
        assert_eq!(of(&folder.path().join("link")), None);
        symlink("loop", folder.path().join("loop")).unwrap();
        assert_eq!(of(&folder.path().join("loop/x")), None);
    }

    #[test]
    fn a_link_of_another_user_is_found_wherever_it_is_on_the_way() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (theirs, ours) = (folder.path().join("theirs"), folder.path().join("ours"));
        fs::create_dir(folder.path().join("real")).unwrap();
        symlink("real", &theirs).unwrap();
        lchown(&theirs, Some(4321), Some(4321)).unwrap();
        symlink("theirs/state", &ours).unwrap();
        for path in [theirs.clone(), theirs.join("state"), ours] {
            let said = of(&path).unwrap();
            assert!(said.contains("theirs`, a link that uid 4321 made"), "{said}");
        }
    }

    #[test]
    fn a_folder_that_everybody_may_write_to_is_found_unless_it_is_sticky() {
        let folder = tempfile::tempdir().unwrap();
        let open = folder.path().join("open");
        fs::create_dir_all(open.join("state")).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(of(&open.join("state")).unwrap().contains("open`, which everybody may write to"));
        fs::set_permissions(&open, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(of(&open.join("state")), None);
    }
}
