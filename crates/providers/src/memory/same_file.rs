//! `-ef` of the shell's `test`. The interpreter compares the text of the two paths, and its `test` can't be replaced. So
//! `LEFT -ef RIGHT` becomes `-e PATH`: a path below the working directory that contains both names, and that exists if both
//! lead to the same file.

use std::path::{Path, PathBuf};

use super::files::MemoryFiles;
use super::names::bytes_of;
use super::node::NodeId;
use super::walk::{Last, find};

/// The directory of these paths, which does not exist.
const MARK: &str = ".eyot-same-file";

/// Returns the path that exists if two names lead to the same file.
pub(super) fn question(left: &str, right: &str) -> String {
    format!("{MARK}/x{}/x{}", hex::encode(left), hex::encode(right))
}

/// Returns whether the two names in such a path lead to the same file. `None`: the path is an ordinary one.
pub(super) fn answer(files: &MemoryFiles, path: &Path) -> Option<bool> {
    let right = name_in(path)?;
    let parent = path.parent()?;
    let left = name_in(parent)?;
    let mark = parent.parent()?;
    if mark.file_name()?.to_str()? != MARK {
        return None;
    }
    let cwd = mark.parent()?;
    let held = files.lock();
    let node = |name: PathBuf| -> Option<NodeId> {
        let path = bytes_of(cwd.join(name).as_os_str()).into_owned();
        find(&held.tree, held.root, &path, Last::Follow, None).and_then(|place| place.found()).ok()
    };
    let (left, right) = (node(left), node(right));
    Some(left.is_some() && left == right)
}

fn name_in(path: &Path) -> Option<PathBuf> {
    let encoded = path.file_name()?.to_str()?.strip_prefix('x')?;
    let name = String::from_utf8(hex::decode(encoded).ok()?).ok()?;
    (!name.is_empty()).then(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_question_is_answered() {
        let files = MemoryFiles::with_max_bytes(1 << 20);
        let asked = |left, right| answer(&files, &Path::new("/tmp").join(question(left, right)));
        assert_eq!(asked("/tmp", "../tmp/."), Some(true));
        assert_eq!(asked("/tmp", "/"), Some(false));
        assert_eq!(asked("gone", "gone"), Some(false));
        assert_eq!(answer(&files, Path::new("/tmp/x61/x61")), None);
        assert_eq!(answer(&files, Path::new("/tmp")), None);
    }
}
