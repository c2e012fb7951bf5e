//! The plan of a tar entry, checked before anything is done: pure functions over names.

use std::borrow::Cow;
use std::io::Read;

use eyot_archive::link_stays_inside;
use tar::{Entry, EntryType};

/// The longest path, as the kernel has it.
const MAX_PATH_BYTES: usize = 4095;

/// A refused entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryError {
    /// The entry's path, as the archive has it.
    pub path: Vec<u8>,
    /// The end of a sentence that begins with the path.
    pub reason: &'static str,
}

/// An entry that may be made.
#[derive(Debug, PartialEq, Eq)]
pub struct TarPlan {
    /// Relative to the directory, without `.` or `..`; empty for the directory itself.
    pub path: Vec<u8>,
    /// The file to make there.
    pub make: TarAction,
    /// Permission bits without set-id and sticky ones.
    pub mode: u32,
    /// Last modification in seconds since 1970.
    pub modified: i64,
}

/// The file that an entry makes.
#[derive(Debug, PartialEq, Eq)]
pub enum TarAction {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link with this target; when the directory confines, one that stays inside.
    Symlink(Vec<u8>),
    /// A second name of the regular file at this path inside.
    HardLink(Vec<u8>),
    /// Nothing: it only describes.
    Nothing,
}

/// Plans an entry, or says why it is refused. Unpacking follows no link, so a symbolic one may
/// lead anywhere, as in a Python environment. With `confined` it must never lead out.
pub fn plan<R: Read>(entry: &mut Entry<'_, R>, confined: bool) -> Result<TarPlan, EntryError> {
    let path = entry.path_bytes().into_owned();
    let link = entry.link_name_bytes().map(Cow::into_owned).unwrap_or_default();
    plan_as(entry, &path, &link, confined)
}

/// Plans an entry that gets another path and another link target than its own.
pub fn plan_as<R: Read>(
    entry: &mut Entry<'_, R>,
    path: &[u8],
    link: &[u8],
    confined: bool,
) -> Result<TarPlan, EntryError> {
    let refused = |reason| EntryError { path: path.to_vec(), reason };
    attributes_of(entry, path, link, confined).map_err(refused)
}

fn attributes_of<R: Read>(
    entry: &mut Entry<'_, R>,
    raw: &[u8],
    link: &[u8],
    confined: bool,
) -> Result<TarPlan, &'static str> {
    let kind = entry.header().entry_type();
    if kind == EntryType::XGlobalHeader {
        return Ok(TarPlan { path: Vec::new(), make: TarAction::Nothing, mode: 0, modified: 0 });
    }
    if has_pax_sparse(entry) {
        return Err("is a sparse file in the pax format, which is not supported");
    }
    let path = clean_path(raw)?;
    let make = match kind {
        EntryType::Directory => TarAction::Directory,
        // Archives from before there was a type for directories.
        EntryType::Regular if raw.ends_with(b"/") => TarAction::Directory,
        EntryType::Regular | EntryType::GNUSparse | EntryType::Continuous => TarAction::File,
        EntryType::Symlink => TarAction::Symlink(symlink_target(&path, link, confined)?),
        EntryType::Link => TarAction::HardLink(clean_path(link_name(link)?)?),
        EntryType::Fifo => return Err("is a fifo"),
        EntryType::Char | EntryType::Block => return Err("is a device"),
        _ => return Err("is of an unknown type"),
    };
    if path.is_empty() && make != TarAction::Directory {
        return Err("has no name");
    }
    let mode = entry.header().mode().map_err(|_| "has permission bits that can't be read")? & 0o777;
    let modified = entry.header().mtime().ok().and_then(|time| i64::try_from(time).ok()).unwrap_or(0);
    Ok(TarPlan { path, make, mode, modified })
}

fn has_pax_sparse<R: Read>(entry: &mut Entry<'_, R>) -> bool {
    let Ok(Some(extensions)) = entry.pax_extensions() else {
        return false;
    };
    extensions.filter_map(Result::ok).any(|extension| extension.key_bytes().starts_with(b"GNU.sparse."))
}

fn link_name(link: &[u8]) -> Result<&[u8], &'static str> {
    if link.is_empty() { Err("is a link to nowhere") } else { Ok(link) }
}

fn symlink_target(path: &[u8], link: &[u8], confined: bool) -> Result<Vec<u8>, &'static str> {
    let target = link_name(link)?;
    check_bytes(target)?;
    if !confined || stays_inside(path, target) {
        Ok(target.to_vec())
    } else {
        Err("is a symbolic link that leaves the directory")
    }
}

/// The path without `.`, empty segments and a final slash; refused when it is not simply below the
/// directory.
fn clean_path(path: &[u8]) -> Result<Vec<u8>, &'static str> {
    check_bytes(path)?;
    if path.starts_with(b"/") {
        return Err("has an absolute path");
    }
    let segments: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    if segments.contains(&&b".."[..]) {
        return Err("has `..` in its path");
    }
    Ok(segments.join(&b'/'))
}

fn check_bytes(path: &[u8]) -> Result<(), &'static str> {
    if path.contains(&0) {
        return Err("has a NUL in its path");
    }
    if path.len() > MAX_PATH_BYTES {
        return Err("has a path that is too long");
    }
    Ok(())
}

/// Tells whether a link at `path` with this target stays inside. See [`link_stays_inside`].
fn stays_inside(path: &[u8], target: &[u8]) -> bool {
    link_stays_inside(target, path.iter().filter(|byte| **byte == b'/').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_or_refused() {
        assert_eq!(clean_path(b"./a//b/./c/"), Ok(b"a/b/c".to_vec()));
        assert_eq!(clean_path(b"./"), Ok(Vec::new()));
        assert_eq!(clean_path(b"a/..b/c.."), Ok(b"a/..b/c..".to_vec()));
        for path in [&b"/a"[..], b"a/../b", b"..", b"a\0b", &[b'a'; 5000]] {
            assert!(clean_path(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn link_targets_stay_inside_or_not() {
        for (path, target, inside) in [
            ("a", "b", true),
            ("a", "..", false),
            ("d/a", "..", true),
            ("d/a", "../../x", false),
            ("d/a", ".././x/y", true),
            ("d/a", "../x/../y", false),
            ("d/a", "x/..", false),
            ("a", "/etc/passwd", false),
            ("a", "b/../../c", false),
        ] {
            assert_eq!(stays_inside(path.as_bytes(), target.as_bytes()), inside, "{path} -> {target}");
        }
    }
}
