//! Opening paths. Without a directory to be held beneath, as the kernel does it in the sandbox's
//! own root; with one, every resolution is the kernel's too (`openat2` with `RESOLVE_BENEATH`), so
//! that no link, not even one that is swapped in during the call, leads out of it.

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::failure::{FileError, FileErrorKind};
use crate::protocol::Location;

/// The kernel's own limit on links in one path.
const MAX_LINKS: usize = 40;
/// The number of times that a resolution is repeated after the kernel gave up because of a rename.
const MAX_ATTEMPTS: usize = 1000;
const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// A path, and what it must stay beneath.
pub struct Target {
    beneath: Option<ConfiningDirectory>,
    /// Absolute, or relative to `beneath`; never empty.
    path: Vec<u8>,
}

struct ConfiningDirectory {
    directory: OwnedFd,
    path: String,
}

/// A name in an open directory: what operations on names (and not on what they lead to) need.
#[derive(Debug)]
pub struct Name {
    /// The directory, open with `O_PATH`.
    pub parent: OwnedFd,
    /// The name: one segment, not `.` or `..`.
    pub name: Vec<u8>,
}

impl Name {
    /// Returns the attributes of the name itself, a link not followed; `None` if there is no file.
    pub fn stat(&self) -> Result<Option<Stat>, Errno> {
        match rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Opens the name itself; a link is refused with `ELOOP`.
    pub fn open(&self, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        rustix::fs::openat(&self.parent, &self.name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode)
    }
}

impl Target {
    /// The target of a location. Opens the directory that it is held beneath, and nothing else.
    pub fn new(location: &Location) -> Result<Self, FileError> {
        check(&location.path)?;
        let Some(directory) = &location.beneath else {
            return Ok(Self { beneath: None, path: location.path.clone().into_bytes() });
        };
        let rest = below(&location.path, directory)
            .ok_or_else(|| FileError::invalid(format!("the path is not below `{directory}`")))?;
        let path = if rest.is_empty() { "." } else { rest };
        let opened = rustix::fs::openat(CWD, directory, HANDLE | OFlags::DIRECTORY, Mode::empty())?;
        let beneath = ConfiningDirectory { directory: opened, path: directory.clone() };
        Ok(Self { beneath: Some(beneath), path: path.as_bytes().to_vec() })
    }

    /// Opens what the path leads to. Links are followed unless `flags` say otherwise.
    pub fn open(&self, flags: OFlags) -> Result<OwnedFd, FileError> {
        self.open_raw(flags).map_err(|errno| self.problem(errno))
    }

    /// The same with the kernel's own error, to tell cases apart; [`Target::problem`] then says
    /// what it means.
    pub fn open_raw(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.open_path(&self.path, flags)
    }

    /// Opens the directory that the path leads to, to read or to work in.
    pub fn open_directory(&self) -> Result<OwnedFd, FileError> {
        self.open(OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Interprets an error of this target's resolution.
    pub fn problem(&self, errno: Errno) -> FileError {
        match (&self.beneath, errno) {
            (Some(beneath), Errno::XDEV) => {
                FileError::new(FileErrorKind::Permission, format!("the path leads out of `{}`", beneath.path))
            }
            (Some(_), Errno::NOSYS) => {
                let reason = "this kernel lacks openat2, which paths beneath a directory need";
                FileError::new(FileErrorKind::Unsupported, reason)
            }
            _ => errno.into(),
        }
    }

    /// The path's last segment in its directory, a link there not followed. `/` and the directory
    /// that the target is held beneath have no name: `invalid`.
    pub fn name(&self) -> Result<Name, FileError> {
        self.name_of(&self.path).map_err(|errno| self.problem(errno))?.ok_or_else(|| {
            FileError::invalid(match self.beneath {
                Some(_) => "is the directory that the operation is held beneath",
                None => "is the root directory",
            })
        })
    }

    /// The name that a write through the path would reach: links are followed to the end, even to
    /// where nothing is yet.
    pub fn resolved_name(&self) -> Result<Name, FileError> {
        let mut path = self.path.clone();
        for _ in 0..MAX_LINKS {
            let name = self.name_of(&path).map_err(|errno| self.problem(errno))?;
            let name = name.ok_or_else(|| FileError::from(Errno::ISDIR))?;
            let is_link = name.stat()?.is_some_and(|stat| file_type(&stat) == FileType::Symlink);
            if !is_link {
                return Ok(name);
            }
            let link = rustix::fs::readlinkat(&name.parent, &name.name, Vec::new())?.into_bytes();
            if link.starts_with(b"/") && self.beneath.is_some() {
                return Err(self.problem(Errno::XDEV));
            }
            path = joined(&path, &link);
        }
        Err(Errno::LOOP.into())
    }

    /// The segments' prefixes, shortest first: `a`, `a/b`, … as targets of their own in the same
    /// confinement.
    pub fn open_prefix(&self, length: usize, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.open_path(&self.path[..length], flags)
    }

    /// Returns the end of each segment of the path, in bytes.
    pub fn segment_ends(&self) -> Vec<usize> {
        let inner = (1..self.path.len()).filter(|&index| self.path[index] == b'/');
        inner.chain([self.path.len()]).collect()
    }

    /// The name at a prefix of the path.
    pub fn name_at(&self, length: usize) -> Result<Option<Name>, Errno> {
        self.name_of(&self.path[..length])
    }

    fn name_of(&self, path: &[u8]) -> Result<Option<Name>, Errno> {
        let (parent, name) = split(path);
        if matches!(name, b"" | b"." | b"..") {
            return Ok(None);
        }
        let parent = self.open_path(parent, HANDLE | OFlags::DIRECTORY)?;
        Ok(Some(Name { parent, name: name.to_vec() }))
    }

    fn open_path(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC;
        match &self.beneath {
            None => rustix::io::retry_on_intr(|| rustix::fs::openat(CWD, path, flags, Mode::empty())),
            Some(beneath) => open_beneath(&beneath.directory, path, flags, ResolveFlags::empty()),
        }
    }
}

/// Opens a path below a directory that no resolution may leave; `resolve` forbids more.
pub fn open_beneath(
    directory: &OwnedFd,
    path: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let resolve = resolve | ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..MAX_ATTEMPTS {
        match rustix::fs::openat2(directory, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            // The kernel could not be sure about `..` because something was renamed; see
            // openat2(2).
            Err(Errno::AGAIN) => std::thread::yield_now(),
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
    Err(Errno::AGAIN)
}

/// Returns the file type of a stat.
pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn check(path: &str) -> Result<(), FileError> {
    let crooked = |path: &str| path.split('/').skip(1).any(|segment| matches!(segment, "" | "." | ".."));
    if !path.starts_with('/') || path.contains('\0') || (path != "/" && crooked(path)) {
        return Err(FileError::invalid("the path is not absolute and normalised"));
    }
    Ok(())
}

fn below<'p>(path: &'p str, directory: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(directory.trim_end_matches('/'))?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}

/// The directory part (never empty) and the last segment.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => (b"/", &path[1..]),
        Some(index) => (&path[..index], &path[index + 1..]),
        None => (b".", path),
    }
}

/// Joins the path of a link with its target. The kernel resolves the rest, because `..` after a
/// linked directory is physical.
fn joined(path: &[u8], link: &[u8]) -> Vec<u8> {
    if link.starts_with(b"/") {
        return link.to_vec();
    }
    [split(path).0, b"/", link].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn target(root: &std::path::Path, path: &str) -> Target {
        let beneath = root.to_str().unwrap().to_owned();
        Target::new(&Location { path: format!("{beneath}/{path}"), beneath: Some(beneath) }).unwrap()
    }

    #[test]
    fn a_path_that_is_not_normalised_or_not_below_is_refused() {
        for path in ["a", "/a/../b", "/a//b", "/a/", "/a\0b", "/./a", ""] {
            let location = Location { path: path.into(), beneath: None };
            assert_eq!(Target::new(&location).err().unwrap().kind, FileErrorKind::Invalid, "{path:?}");
        }
        let beside = Location { path: "/workspace2/a".into(), beneath: Some("/workspace".into()) };
        assert_eq!(Target::new(&beside).err().unwrap().kind, FileErrorKind::Invalid);
    }

    #[test]
    fn f1_a_link_out_of_the_directory_is_refused_and_one_that_stays_inside_works() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("sub")).unwrap();
        std::fs::write(root.path().join("real"), "x").unwrap();
        for (link, to) in
            [("abs", "/etc/passwd"), ("up", "../../etc/passwd"), ("proc", "/proc/1/root/etc/passwd")]
        {
            symlink(to, root.path().join("sub").join(link)).unwrap();
            let file = target(root.path(), &format!("sub/{link}"));
            let problem = file.open(OFlags::RDONLY).unwrap_err();
            assert!(
                problem.kind == FileErrorKind::Permission && problem.reason.contains("leads out of"),
                "{problem:?}"
            );
            assert_eq!(file.resolved_name().unwrap_err().kind, FileErrorKind::Permission);
        }
        symlink("../real", root.path().join("sub/inside")).unwrap();
        symlink("inside", root.path().join("sub/chain")).unwrap();
        assert!(target(root.path(), "sub/chain").open(OFlags::RDONLY).is_ok());
        assert_eq!(target(root.path(), "sub/chain").resolved_name().unwrap().name, b"real");
    }

    #[test]
    fn a_link_that_leads_to_itself_is_invalid() {
        let root = tempfile::tempdir().unwrap();
        symlink("loop", root.path().join("loop")).unwrap();
        assert_eq!(
            target(root.path(), "loop").open(OFlags::RDONLY).unwrap_err().kind,
            FileErrorKind::Invalid
        );
        assert_eq!(target(root.path(), "loop").resolved_name().unwrap_err().kind, FileErrorKind::Invalid);
    }

    #[test]
    fn the_directory_itself_and_the_root_have_no_name() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().to_str().unwrap().to_owned();
        let itself = Target::new(&Location { path: path.clone(), beneath: Some(path) }).unwrap();
        assert_eq!(itself.name().unwrap_err().kind, FileErrorKind::Invalid);
        let slash = Target::new(&Location { path: "/".into(), beneath: None }).unwrap();
        assert_eq!(slash.name().unwrap_err().kind, FileErrorKind::Invalid);
        assert!(slash.open_directory().is_ok());
    }
}
