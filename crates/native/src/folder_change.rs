//! Changes of a folder of the host, all or none. New files are made in a directory beside the others, and everything that is replaced or
//! removed goes there: each step is one rename, which can be undone. A journal in the sandbox's directory, written first, lets the next
//! process undo what a killed one has begun, or remove what a complete change has left.
//!
//! Somebody else may write to the folder meanwhile. Every path is opened beneath the folder and without links, new files get no set-id bit, and
//! what was taken out is looked at again: if it is not what was expected, all is undone.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Uid, chownat, mkdirat, openat2,
    renameat_with, statat, symlinkat, syncfs,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::host_files::{FileFacts, HostFiles};
use crate::state::write_whole;

const JOURNAL: &str = "apply.json";
const INSIDE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);
const PASSED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// The permission bits that the owner of a directory needs to put something into it.
const USABLE: u32 = 0o700;

/// A change of one path, which is relative to the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathChange {
    /// Removes it. A directory must be empty by then.
    Remove(FileFacts),
    MakeDirectory {
        mode: u32,
    },
    /// Makes a file or a link.
    Put {
        mode: u32,
    },
    /// Replaces a file or a link.
    Replace {
        mode: u32,
        expected: FileFacts,
    },
    /// Changes the permission bits of a directory.
    SetMode {
        from: u32,
        to: u32,
    },
}

/// The new content of a path.
pub(crate) enum NewContent {
    /// As many bytes of a file.
    File(File, u64),
    /// A link with this target.
    Link(CString),
}

/// A failed change. Nothing is changed.
#[derive(Debug)]
pub(crate) struct FolderChangeError {
    /// The path, relative to the folder, if it was one.
    pub path: Option<String>,
    /// Somebody else has changed the path.
    pub is_conflict: bool,
    pub error: io::Error,
}

impl From<io::Error> for FolderChangeError {
    fn from(error: io::Error) -> Self {
        Self { path: None, is_conflict: false, error }
    }
}

/// One step, as it stands in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum ChangeStep {
    /// Moves a new file to its place.
    Put { path: String, staged: u64, inode: u64 },
    /// Lets a new file and the present one change places.
    Swap { path: String, staged: u64, inode: u64 },
    /// Moves the present file away.
    Take { path: String, staged: u64 },
    /// Changes permission bits.
    Mode { path: String, from: u32, to: u32 },
}

/// The journal of a change.
#[derive(Debug, Serialize, Deserialize)]
struct ChangeJournal {
    folder: PathBuf,
    /// Tells the folder from another one that has its name now.
    inode: u64,
    /// The name of the directory for new and old files.
    staging: String,
    steps: Vec<ChangeStep>,
    /// The change is complete.
    done: bool,
    /// The file with the facts about the folder, which a new one replaces once the change is complete. Relative to the
    /// sandbox's directory, which is moved to the trash before the sandbox is destroyed.
    facts: PathBuf,
}

/// A folder that is being changed.
pub(crate) struct ChangedFolder {
    root: OwnedFd,
    directory: PathBuf,
    journal: ChangeJournal,
}

impl ChangedFolder {
    /// Opens the folder, of which the file `facts` of `directory` tells. The journal will lie there, too.
    pub(crate) fn open(folder: &Path, directory: &Path, facts: PathBuf, staging: String) -> io::Result<Self> {
        let root = open_root(folder)?;
        let inode = rustix::fs::fstat(&root)?.st_ino;
        let folder = folder.to_owned();
        let journal = ChangeJournal { folder, inode, staging, steps: Vec::new(), done: false, facts };
        Ok(Self { root, directory: directory.to_owned(), journal })
    }

    /// Makes the changes, in this order. `content` has the content of a path. `after` looks at the changed folder, and writes
    /// the new facts about it into a file.
    pub(crate) fn make(
        mut self,
        changes: &[(String, PathChange)],
        content: impl Fn(&str) -> io::Result<Option<NewContent>>,
        after: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), FolderChangeError> {
        self.write_journal()?;
        let made = self.make_all(changes, content).and_then(|()| {
            after(&self.new_facts())?;
            syncfs(&self.root).map_err(io::Error::from)?;
            self.journal.done = true;
            Ok(self.write_journal()?)
        });
        if let Err(failed) = made {
            self.journal.done = false;
            // What can't be undone now, the next use of the sandbox undoes: the journal stays.
            self.undo()?;
            return Err(failed);
        }
        // All is applied, and the next use of the sandbox removes what is left of it.
        if let Err(error) = self.finish() {
            tracing::warn!(%error, folder = %self.journal.folder.display(), "remove what an apply has left");
        }
        Ok(())
    }

    fn make_all(
        &mut self,
        changes: &[(String, PathChange)],
        content: impl Fn(&str) -> io::Result<Option<NewContent>>,
    ) -> Result<(), FolderChangeError> {
        let staging = self.make_staging()?;
        let mut modes = Vec::new();
        for (number, (path, change)) in (0_u64..).zip(changes) {
            let staged = self.stage(&staging, number, (path, change), &content);
            let (step, mode) = staged.map_err(|error| at(path, error))?;
            self.journal.steps.push(step);
            modes.extend(mode);
        }
        self.journal.steps.extend(modes);
        syncfs(&self.root).map_err(io::Error::from)?;
        self.write_journal()?;
        let expected = changes.iter().map(|(_, change)| match change {
            PathChange::Remove(expected) | PathChange::Replace { expected, .. } => Some(expected),
            _ => None,
        });
        for (step, expected) in self.journal.steps.iter().zip(expected.chain(std::iter::repeat(None))) {
            self.carry_out(&staging, step, expected)?;
        }
        Ok(())
    }

    fn make_staging(&self) -> io::Result<OwnedFd> {
        mkdirat(&self.root, &self.journal.staging, Mode::RWXU)?;
        Ok(self.open_staging()?)
    }

    fn open_staging(&self) -> Result<OwnedFd, Errno> {
        openat2(&self.root, &self.journal.staging, PASSED | OFlags::DIRECTORY, Mode::empty(), INSIDE)
    }

    /// Makes the new file of a change. Returns the step of the change, and one that comes last.
    fn stage(
        &self,
        staging: &OwnedFd,
        number: u64,
        (path, change): (&str, &PathChange),
        content: impl Fn(&str) -> io::Result<Option<NewContent>>,
    ) -> io::Result<(ChangeStep, Option<ChangeStep>)> {
        let (path, name) = (path.to_owned(), number.to_string());
        let mut last = None;
        match *change {
            PathChange::Remove(_) => return Ok((ChangeStep::Take { path, staged: number }, None)),
            PathChange::SetMode { from, to } => return Ok((ChangeStep::Mode { path, from, to }, None)),
            PathChange::MakeDirectory { mode } => {
                mkdirat(staging, &name, Mode::RWXU)?;
                self.own(staging, &name, None)?;
                set_mode(staging, &name, (mode & 0o777) | USABLE, OFlags::empty())?;
                last = (mode & USABLE != USABLE).then(|| ChangeStep::Mode {
                    path: path.clone(),
                    from: mode | USABLE,
                    to: mode,
                });
            }
            PathChange::Put { mode } | PathChange::Replace { mode, .. } => {
                let present = match change {
                    PathChange::Replace { .. } => Some(self.look(&path)?),
                    _ => None,
                };
                match content(&path)?.ok_or(io::ErrorKind::PermissionDenied)? {
                    NewContent::Link(target) => symlinkat(target, staging, &name)?,
                    NewContent::File(file, size) => copy(staging, &name, file, size)?,
                }
                self.own(staging, &name, present)?;
                if !is_link(staging, &name)? {
                    set_mode(staging, &name, mode & 0o777, OFlags::empty())?;
                }
            }
        }
        let inode = statat(staging, &name, AtFlags::SYMLINK_NOFOLLOW)?.st_ino;
        let step = match change {
            PathChange::Replace { .. } => ChangeStep::Swap { path, staged: number, inode },
            _ => ChangeStep::Put { path, staged: number, inode },
        };
        Ok((step, last))
    }

    /// Gives a new file the owner of the one that it replaces, or the folder's.
    fn own(&self, staging: &OwnedFd, name: &str, present: Option<Stat>) -> io::Result<()> {
        let made = statat(staging, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let owner = match present {
            Some(present) => present,
            None if rustix::process::geteuid().is_root() => rustix::fs::fstat(&self.root)?,
            None => return Ok(()),
        };
        if (made.st_uid, made.st_gid) == (owner.st_uid, owner.st_gid) {
            return Ok(());
        }
        let (uid, gid) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
        let uid = (made.st_uid != owner.st_uid).then_some(uid);
        Ok(chownat(staging, name, uid, Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn look(&self, path: &str) -> io::Result<Stat> {
        let (parent, name) = self.parent(path)?;
        Ok(statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Opens the directory that a path is in.
    fn parent<'p>(&self, path: &'p str) -> io::Result<(OwnedFd, &'p OsStr)> {
        let name = Path::new(path).file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = Path::new(path).parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        Ok((openat2(&self.root, parent, PASSED | OFlags::DIRECTORY, Mode::empty(), INSIDE)?, name))
    }

    fn carry_out(
        &self,
        staging: &OwnedFd,
        step: &ChangeStep,
        expected: Option<&FileFacts>,
    ) -> Result<(), FolderChangeError> {
        let (ChangeStep::Put { path, .. }
        | ChangeStep::Swap { path, .. }
        | ChangeStep::Take { path, .. }
        | ChangeStep::Mode { path, .. }) = step;
        // A rename sets the change time, so it is compared before.
        let is_changed = match (step, expected) {
            (ChangeStep::Swap { .. } | ChangeStep::Take { .. }, Some(expected)) => {
                self.look_if_there(path)?.is_none_or(|found| !FileFacts::new(&found).has_same_facts(expected))
            }
            (ChangeStep::Mode { from, .. }, _) => {
                self.look_if_there(path)?.is_none_or(|found| found.st_mode & 0o777 != from & 0o777)
            }
            _ => false,
        };
        if is_changed {
            return Err(changed_meanwhile(path));
        }
        let taken = match step {
            ChangeStep::Put { staged, .. } => {
                self.rename(staging, *staged, path, [RenameSide::Staging, RenameSide::Folder]).map(|()| None)
            }
            ChangeStep::Swap { staged, .. } => self.swap(staging, *staged, path).map(|()| Some(*staged)),
            ChangeStep::Take { staged, .. } => self
                .rename(staging, *staged, path, [RenameSide::Folder, RenameSide::Staging])
                .map(|()| Some(*staged)),
            ChangeStep::Mode { to, .. } => self.set_mode_of(path, *to).map(|()| None),
        };
        let taken = taken.map_err(|error| at(path, error))?;
        let (Some(taken), Some(expected)) = (taken, expected) else { return Ok(()) };
        let found = statat(staging, taken.to_string(), AtFlags::SYMLINK_NOFOLLOW);
        let found = found.map_err(|error| at(path, error.into()))?;
        let is_as_expected = FileFacts::new(&found).has_same_content_facts(expected)
            && is_file_or_empty(staging, taken, &found).map_err(|error| at(path, error))?;
        if is_as_expected { Ok(()) } else { Err(changed_meanwhile(path)) }
    }

    fn rename(&self, staging: &OwnedFd, staged: u64, path: &str, way: [RenameSide; 2]) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        let staged = staged.to_string();
        let place = |side: RenameSide| match side {
            RenameSide::Staging => (staging, OsStr::new(&staged)),
            RenameSide::Folder => (&parent, name),
        };
        let [(from, old), (to, new)] = way.map(place);
        Ok(renameat_with(from, old, to, new, RenameFlags::NOREPLACE)?)
    }

    fn swap(&self, staging: &OwnedFd, staged: u64, path: &str) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(renameat_with(staging, staged.to_string(), &parent, name, RenameFlags::EXCHANGE)?)
    }

    fn set_mode_of(&self, path: &str, mode: u32) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        // A directory passes its group on by a bit that is the host's.
        let special = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode & 0o7000;
        // Somebody may have put the other name of a file there.
        set_mode(&parent, name, (mode & 0o777) | special, OFlags::DIRECTORY)
    }

    /// Undoes what was done, and removes the journal.
    fn undo(&self) -> io::Result<()> {
        match self.open_staging() {
            // Nothing was done yet.
            Err(Errno::NOENT) => {}
            staging => {
                let staging = staging?;
                let mut is_kept = false;
                for step in self.journal.steps.iter().rev() {
                    match self.undo_step(&staging, step) {
                        // Somebody has made that name again. What was there before must not be lost, nor hold up the rest.
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => is_kept = true,
                        undone => undone?,
                    }
                    // What the steps had put into a directory was taken out of it before.
                    if let ChangeStep::Put { staged, .. } = step {
                        is_kept |= !was_left_empty(&staging, *staged)?;
                    }
                }
                if is_kept {
                    self.keep_staging()?;
                }
            }
        }
        self.renew_facts()?;
        self.clean_up()
    }

    /// Gives the directory with what could not be put back a name of its own, which stays.
    fn keep_staging(&self) -> io::Result<()> {
        let kept = format!("{}-kept", self.journal.staging.trim_start_matches('.'));
        renameat_with(&self.root, &self.journal.staging, &self.root, &kept, RenameFlags::NOREPLACE)?;
        tracing::warn!(folder = %self.journal.folder.display(), kept, "files that an apply had replaced can't be put back: their names are taken");
        Ok(())
    }

    /// Undoes a step, if it was done.
    fn undo_step(&self, staging: &OwnedFd, step: &ChangeStep) -> io::Result<()> {
        let has_inode = |path: &str, inode: u64| {
            Ok::<_, io::Error>(self.look_if_there(path)?.is_some_and(|found| found.st_ino == inode))
        };
        match step {
            ChangeStep::Put { path, staged, inode } if has_inode(path, *inode)? => {
                self.rename(staging, *staged, path, [RenameSide::Folder, RenameSide::Staging])
            }
            ChangeStep::Swap { path, staged, inode } if has_inode(path, *inode)? => {
                self.swap(staging, *staged, path)
            }
            ChangeStep::Take { path, staged } => {
                match statat(staging, staged.to_string(), AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => Ok(()),
                    found => {
                        found?;
                        self.rename(staging, *staged, path, [RenameSide::Staging, RenameSide::Folder])
                    }
                }
            }
            ChangeStep::Mode { path, from, to } => match self.look_if_there(path)? {
                Some(found) if found.st_mode & 0o777 == to & 0o777 => self.set_mode_of(path, *from),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Looks at a path that may not be there, nor the directory that it would be in.
    fn look_if_there(&self, path: &str) -> io::Result<Option<Stat>> {
        use io::ErrorKind::{NotADirectory, NotFound};
        match self.look(path) {
            Err(error) if matches!(error.kind(), NotADirectory | NotFound) => Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => Ok(None),
            found => found.map(Some),
        }
    }

    /// Removes what a complete change has left.
    fn finish(&self) -> io::Result<()> {
        match fs::rename(self.new_facts(), self.facts()) {
            // It was done before.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        self.clean_up()
    }

    fn facts(&self) -> PathBuf {
        self.directory.join(&self.journal.facts)
    }

    fn new_facts(&self) -> PathBuf {
        self.facts().with_extension("applied")
    }

    /// Takes the present facts of the files that were moved away and back.
    fn renew_facts(&self) -> io::Result<()> {
        let moved = self.journal.steps.iter().filter_map(|step| match step {
            ChangeStep::Swap { path, .. } | ChangeStep::Take { path, .. } => Some(path.as_str()),
            ChangeStep::Put { .. } | ChangeStep::Mode { .. } => None,
        });
        let mut facts = HostFiles::read(&self.facts())?;
        facts.renew(&self.journal.folder, moved)?;
        facts.write(&self.new_facts())?;
        fs::rename(self.new_facts(), self.facts())
    }

    fn clean_up(&self) -> io::Result<()> {
        eyot_image::remove_tree(&self.journal.folder.join(&self.journal.staging))?;
        fs::remove_file(self.directory.join(JOURNAL))
    }

    fn write_journal(&self) -> io::Result<()> {
        write_whole(&self.directory, JOURNAL, &serde_json::to_vec(&self.journal)?)?;
        // Before anything that it tells of is done.
        File::open(self.directory.join(JOURNAL))?.sync_all()?;
        File::open(&self.directory)?.sync_all()
    }
}

/// The side of a rename.
#[derive(Clone, Copy)]
enum RenameSide {
    Staging,
    Folder,
}

/// Tells whether a change of a folder was begun.
pub(crate) fn was_begun(directory: &Path) -> bool {
    directory.join(JOURNAL).exists()
}

/// Undoes the change of a folder that a killed process has begun, or removes what a complete one has left. The caller holds the
/// sandbox's lock. Of a folder that is not there the journal stays.
pub(crate) fn recover(directory: &Path) -> io::Result<()> {
    let journal: ChangeJournal = match fs::read(directory.join(JOURNAL)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        bytes => serde_json::from_slice(&bytes?)?,
    };
    // The journal stays for the time when the folder is there again, as one on a disk that is not mounted now.
    let root = match open_root(&journal.folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        root => root?,
    };
    if rustix::fs::fstat(&root)?.st_ino != journal.inode {
        return Ok(());
    }
    let folder = ChangedFolder { root, directory: directory.to_owned(), journal };
    if folder.journal.done { folder.finish() } else { folder.undo() }
}

fn open_root(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

fn changed_meanwhile(path: &str) -> FolderChangeError {
    FolderChangeError { is_conflict: true, ..at(path, io::ErrorKind::AlreadyExists.into()) }
}

fn at(path: &str, error: io::Error) -> FolderChangeError {
    let is_conflict = error.kind() == io::ErrorKind::AlreadyExists;
    FolderChangeError { path: Some(path.to_owned()), is_conflict, error }
}

/// Tells whether a directory that an undo has taken back, if there is one, has nothing of somebody else's in it.
fn was_left_empty(staging: &OwnedFd, staged: u64) -> io::Result<bool> {
    match statat(staging, staged.to_string(), AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(true),
        found => is_file_or_empty(staging, staged, &found?),
    }
}

/// Tells whether nothing is in what was taken out: somebody may have put something into a directory since it was looked at.
fn is_file_or_empty(staging: &OwnedFd, taken: u64, found: &Stat) -> io::Result<bool> {
    if rustix::fs::FileType::from_raw_mode(found.st_mode) != rustix::fs::FileType::Directory {
        return Ok(true);
    }
    let directory = Path::new("/proc/self/fd").join(staging.as_raw_fd().to_string()).join(taken.to_string());
    Ok(fs::read_dir(directory)?.next().is_none())
}

fn is_link(at: &OwnedFd, name: &str) -> io::Result<bool> {
    let found = statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Symlink)
}

fn copy(staging: &OwnedFd, name: &str, from: File, size: u64) -> io::Result<()> {
    let made = Path::new("/proc/self/fd").join(staging.as_raw_fd().to_string()).join(name);
    let mut made = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(made)?;
    io::copy(&mut from.take(size), &mut made)?;
    made.flush()
}

/// Sets the permission bits of a file or directory that is no link.
fn set_mode(at: &OwnedFd, name: impl AsRef<OsStr>, mode: u32, kind: OFlags) -> io::Result<()> {
    let file = openat2(at, name.as_ref(), PASSED | kind, Mode::empty(), INSIDE)?;
    // A descriptor of a path alone takes no other way.
    Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", file.as_raw_fd()), Mode::from_raw_mode(mode))?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::host_files::{HostDifference, HostFolder};

    /// A folder, and the directory of a sandbox.
    struct Scene {
        folder: tempfile::TempDir,
        directory: tempfile::TempDir,
        changes: Vec<(String, PathChange)>,
    }

    impl Scene {
        fn new() -> Self {
            let (folder, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            fs::create_dir_all(folder.path().join("old")).unwrap();
            for path in ["replaced", "old/removed"] {
                fs::write(folder.path().join(path), "before").unwrap();
            }
            symlink("replaced", folder.path().join("link")).unwrap();
            let mut host = HostFolder::open(folder.path()).unwrap();
            let mut now = |path: &str| host.look(path.as_ref()).unwrap().unwrap();
            let changes = [
                ("old/removed", PathChange::Remove(now("old/removed"))),
                ("old", PathChange::Remove(now("old"))),
                ("new", PathChange::MakeDirectory { mode: 0o555 }),
                ("new/file", PathChange::Put { mode: 0o640 }),
                ("link", PathChange::Replace { mode: 0o777, expected: now("link") }),
                ("replaced", PathChange::Replace { mode: 0o600, expected: now("replaced") }),
            ];
            let changes = changes.map(|(path, change)| (path.to_owned(), change)).to_vec();
            HostFiles::of(folder.path()).unwrap().write(&directory.path().join("facts")).unwrap();
            Self { folder, directory, changes }
        }

        fn open(&self) -> ChangedFolder {
            let (folder, directory) = (self.folder.path(), self.directory.path());
            ChangedFolder::open(folder, directory, "facts".into(), ".staging".to_owned()).unwrap()
        }

        /// Moves the directory, as who destroys a sandbox does.
        fn move_directory(&mut self) {
            let moved = tempfile::tempdir().unwrap();
            fs::rename(self.directory.path(), moved.path()).unwrap();
            self.directory = moved;
        }

        fn read(&self, path: &str) -> String {
            fs::read_to_string(self.folder.path().join(path)).unwrap_or_default()
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(self.folder.path()).unwrap();
            let mut names: Vec<_> =
                names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }

        fn is_before(&self) {
            assert_eq!(self.names(), ["link", "old", "replaced"]);
            assert_eq!(
                (self.read("replaced").as_str(), self.read("old/removed").as_str()),
                ("before", "before")
            );
            assert_eq!(fs::read_link(self.folder.path().join("link")).unwrap(), Path::new("replaced"));
            assert!(!was_begun(self.directory.path()));
            // The next try finds the files to be as they were.
            let facts = HostFiles::read(&self.directory.path().join("facts")).unwrap();
            let mut host = HostFolder::open(self.folder.path()).unwrap();
            for path in ["replaced", "link", "old/removed"].map(Path::new) {
                let now = host.look(path).unwrap().unwrap();
                let found = host.difference(path, facts.get(path).unwrap(), &now).unwrap();
                assert_eq!(found, HostDifference::None, "{path:?}");
            }
        }

        fn is_after(&self) {
            assert_eq!(self.names(), ["link", "new", "replaced"]);
            assert_eq!((self.read("replaced").as_str(), self.read("new/file").as_str()), ("after", "after"));
            assert_eq!(fs::read_link(self.folder.path().join("link")).unwrap(), Path::new("elsewhere"));
            let mode =
                |path| fs::metadata(self.folder.path().join(path)).unwrap().permissions().mode() & 0o7777;
            assert_eq!((mode("new"), mode("new/file"), mode("replaced")), (0o555, 0o640, 0o600));
            let facts = HostFiles::read(&self.directory.path().join("facts")).unwrap();
            assert_eq!(facts, HostFiles::default());
            assert!(!was_begun(self.directory.path()));
            fs::set_permissions(self.folder.path().join("new"), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn no_facts(path: &Path) -> io::Result<()> {
        HostFiles::default().write(path)
    }

    fn content(path: &str) -> io::Result<Option<NewContent>> {
        if path == "link" {
            return Ok(Some(NewContent::Link(c"elsewhere".to_owned())));
        }
        let mut file = tempfile::tempfile()?;
        file.write_all(b"after")?;
        std::io::Seek::rewind(&mut file)?;
        Ok(Some(NewContent::File(file, 5)))
    }

    #[test]
    fn all_changes_are_made_and_nothing_is_left_of_making_them() {
        let scene = Scene::new();
        scene.open().make(&scene.changes, content, no_facts).unwrap();
        scene.is_after();
    }

    #[test]
    fn whatever_step_a_process_dies_behind_the_next_one_undoes_the_change() {
        for done in 0..=7 {
            let mut scene = Scene::new();
            let mut folder = scene.open();
            folder.write_journal().unwrap();
            let staging = folder.make_staging().unwrap();
            let mut last = Vec::new();
            for (number, (path, change)) in (0_u64..).zip(&scene.changes) {
                let (step, mode) = folder.stage(&staging, number, (path, change), content).unwrap();
                folder.journal.steps.push(step);
                last.extend(mode);
            }
            folder.journal.steps.extend(last);
            folder.write_journal().unwrap();
            for step in folder.journal.steps.iter().take(done) {
                folder.carry_out(&staging, step, None).unwrap();
            }
            drop((folder, staging));
            if done % 2 == 0 {
                scene.move_directory();
            }
            recover(scene.directory.path()).unwrap();
            scene.is_before();
        }
    }

    #[test]
    fn a_complete_change_stays_and_what_it_left_is_removed() {
        let scene = Scene::new();
        let mut folder = scene.open();
        folder.write_journal().unwrap();
        folder.make_all(&scene.changes, content).unwrap();
        no_facts(&folder.new_facts()).unwrap();
        folder.journal.done = true;
        folder.write_journal().unwrap();
        drop(folder);
        recover(scene.directory.path()).unwrap();
        scene.is_after();
    }

    #[test]
    fn what_somebody_else_has_changed_or_made_meanwhile_stays_and_all_is_undone() {
        for path in ["replaced", "new", "old/added"] {
            let scene = Scene::new();
            fs::write(scene.folder.path().join(path), "theirs!").unwrap();
            let failed = scene.open().make(&scene.changes, content, no_facts).unwrap_err();
            assert!(failed.is_conflict, "{path}: {failed:?}");
            assert_eq!(scene.read(path), "theirs!");
            assert_eq!(scene.read("old/removed"), "before");
            assert!(!was_begun(scene.directory.path()) && !scene.folder.path().join(".staging").exists());
        }
    }

    #[test]
    fn what_somebody_has_put_into_a_new_directory_outlasts_the_undo() {
        let scene = Scene::new();
        let theirs = || {
            let new = scene.folder.path().join("new");
            fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
            fs::write(new.join("theirs"), "theirs")
        };
        let failed =
            scene.open().make(&scene.changes, content, |_| theirs().and(Err(io::ErrorKind::Other.into())));
        assert!(failed.is_err());
        assert_eq!(scene.read("replaced"), "before");
        let kept = scene.names().into_iter().find(|name| name.ends_with("-kept")).unwrap();
        let found = fs::read_dir(scene.folder.path().join(kept)).unwrap();
        let mut folders = found.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        assert!(folders.any(|folder| folder.join("theirs").exists()));
    }

    #[test]
    fn a_directory_that_became_a_link_is_not_followed() {
        let (scene, outside) = (Scene::new(), tempfile::tempdir().unwrap());
        fs::remove_dir_all(scene.folder.path().join("old")).unwrap();
        fs::write(outside.path().join("removed"), "outside").unwrap();
        symlink(outside.path(), scene.folder.path().join("old")).unwrap();
        let folder = scene.open();
        assert!(folder.make(&scene.changes, content, no_facts).is_err());
        assert!(!was_begun(scene.directory.path()) && !scene.folder.path().join(".staging").exists());
        assert_eq!(fs::read_to_string(outside.path().join("removed")).unwrap(), "outside");
    }
}
