//! The guest's program as a file of the state folder, so that a process that makes one sandbox need
//! not copy it into memory first, and all sandboxes share its pages.
//!
//! The file is as safe as the state folder, which belongs to the caller and which no other user can
//! write to. Its name has the digest of the program that this version embeds. It is made aside, and
//! appears under its name when it is complete, on the disk, and open for writing nowhere. So the
//! content is not read again at a start. These marks tell it from a file that is something else or
//! was changed later: a regular file of the caller's, with the size and the mode, and with the time
//! of change that it was given and that every write would renew. Mode bits are all that counts for
//! writing by others: an access list can't allow more than they show.
//!
//! No process inside can write to it: it is executed through a read-only mount of its own, which is
//! attached nowhere. Only root may read it. The guest's files in `/proc` then belong to the
//! host's root, as with a program in sealed memory.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use eyot_guest::{PROGRAM, PROGRAM_DIGEST};
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, StatVfsMountFlags, Timespec, Timestamps, fchmod,
    flock, fstat, fstatvfs, fsync, futimens, openat, renameat, unlinkat,
};
use rustix::io::Errno;

use crate::state::{StateDir, make_dir};
use crate::sys;

/// The file's permission bits: everybody may execute it. The users inside are others.
const MODE: u32 = 0o111;
/// The file's time of change.
const CHANGED: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// The age from which files of other versions and of makers that were killed are removed. Two
/// versions on one state folder make their files again once a day at most.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest wait for other processes to close a new file. A process that another thread starts
/// has a copy of each descriptor until it executes its program.
const PATIENCE: Duration = Duration::from_secs(2);

/// The program's file, checked. While this value exists, no process sweeps the file away.
#[derive(Debug)]
pub(crate) struct CheckedGuest {
    path: PathBuf,
    file: OwnedFd,
    /// The folder, locked.
    _folder: OwnedFd,
}

impl CheckedGuest {
    /// Returns the file, and makes it first if it is missing or wrong.
    ///
    /// # Errors
    /// The state folder can't hold programs, or not this one.
    pub(crate) fn ready(state: &StateDir) -> io::Result<Self> {
        let path = state.programs();
        let folder = open_folder(&path)?;
        flock(&folder, FlockOperation::LockShared)?;
        let file = match open_sound(&folder) {
            Ok(file) => file,
            Err(_missing_or_wrong) => {
                make(&folder)?;
                sweep(&path, &folder);
                flock(&folder, FlockOperation::LockShared)?;
                open_sound(&folder)?
            }
        };
        refuse_noexec(&file)?;
        Ok(Self { path: path.join(name()), file, _folder: folder })
    }

    /// Returns the file's path, if it is UTF-8.
    pub(crate) fn path(&self) -> Option<&str> {
        self.path.to_str()
    }

    /// Mounts the file read-only. Only root may.
    pub(crate) fn mount(&self) -> io::Result<OwnedFd> {
        sys::take_read_only(&format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

/// Returns the file's name. Its beginning is the name that the kernel shows of the guest.
fn name() -> String {
    format!("eyot-guest-{PROGRAM_DIGEST}")
}

/// Opens the folder, and makes it if it is missing. Refuses one that others could write to.
fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::open(path, flags, Mode::empty());
    let folder = match open() {
        Err(Errno::NOENT) => {
            make_dir(path, 0o700)?;
            open()?
        }
        opened => opened?,
    };
    let found = fstat(&folder)?;
    if is_callers(&found) && found.st_mode & 0o022 == 0 { Ok(folder) } else { Err(Errno::PERM.into()) }
}

fn is_callers(found: &Stat) -> bool {
    found.st_uid == rustix::process::geteuid().as_raw()
}

/// Opens the file, but not for reading, if it has all marks of a complete one.
fn open_sound(folder: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, name(), flags, Mode::empty())?;
    if is_sound(&fstat(&file)?) { Ok(file) } else { Err(io::ErrorKind::InvalidData.into()) }
}

fn is_sound(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && is_callers(found)
        && found.st_mode & 0o7777 == MODE
        && u64::try_from(found.st_size).is_ok_and(|size| size == PROGRAM.len() as u64)
        && (found.st_mtime, found.st_mtime_nsec) == (CHANGED.tv_sec, 0)
}

fn refuse_noexec(file: &OwnedFd) -> io::Result<()> {
    if fstatvfs(file)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        Err(Errno::ACCESS.into())
    } else {
        Ok(())
    }
}

/// Makes the file aside, and gives it its name in place of whatever has it.
fn make(folder: &OwnedFd) -> io::Result<()> {
    refuse_noexec(folder)?;
    let aside = format!("new-{:016x}", random()?);
    let made = make_aside(folder, &aside).and_then(|()| Ok(renameat(folder, &aside, folder, name())?));
    if made.is_err()
        && let Err(error) = unlinkat(folder, &aside, AtFlags::empty())
    {
        tracing::debug!(%error, "remove the guest's program that could not be made");
    }
    made
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Makes a complete file, on the disk and open for writing nowhere.
fn make_aside(folder: &OwnedFd, aside: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, aside, flags, Mode::RUSR | Mode::WUSR)?);
    // Opened while the owner may still read it.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let reader = openat(folder, aside, flags, Mode::empty())?;
    file.write_all(PROGRAM)?;
    fchmod(&file, Mode::from_raw_mode(MODE))?;
    futimens(&file, &Timestamps { last_access: CHANGED, last_modification: CHANGED })?;
    fsync(&file)?;
    drop(file);
    wait_until_unwritten(&reader)
}

/// Waits until no process has the file open for writing: its execution would fail with `ETXTBSY`.
fn wait_until_unwritten(file: &OwnedFd) -> io::Result<()> {
    let given_up = Instant::now() + PATIENCE;
    while sys::is_open_for_writing(file.as_fd())? {
        if Instant::now() >= given_up {
            return Err(Errno::TXTBSY.into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Removes old files of other versions, and of makers that were killed, unless a process is about
/// to use one. Guests that run go on: the kernel keeps their file.
fn sweep(path: &Path, folder: &OwnedFd) {
    let swept = match flock(folder, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => remove_old(path, SystemTime::now()),
    };
    if let Err(error) = swept {
        tracing::debug!(%error, "sweep old programs of guests");
    }
}

fn remove_old(path: &Path, now: SystemTime) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name().to_str() != Some(&name()) && is_old(&entry.metadata()?, now) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn is_old(found: &fs::Metadata, now: SystemTime) -> bool {
    let changed = UNIX_EPOCH + Duration::from_secs(u64::try_from(found.ctime()).unwrap_or(0));
    now.duration_since(changed).is_ok_and(|age| age >= KEPT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn state() -> (tempfile::TempDir, StateDir) {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::made_at(&folder.path().join("state"));
        (folder, state)
    }

    fn content(guest: &CheckedGuest) -> Vec<u8> {
        let path = guest.path().unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o511)).unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn the_file_is_made_once_and_taken_again() {
        let (_folder, state) = state();
        let inode = |guest: &CheckedGuest| fstat(&guest.file).unwrap().st_ino;
        let first = CheckedGuest::ready(&state).unwrap();
        let second = CheckedGuest::ready(&state).unwrap();
        assert_eq!(inode(&first), inode(&second));
        assert_eq!(fs::read_dir(state.programs()).unwrap().count(), 1);
        assert!(content(&first) == PROGRAM);
    }

    #[test]
    fn whatever_has_the_name_and_is_not_the_complete_file_is_replaced() {
        let (_folder, state) = state();
        let path = PathBuf::from(CheckedGuest::ready(&state).unwrap().path().unwrap());
        let elsewhere = state.root().join("elsewhere");
        fs::write(&elsewhere, PROGRAM).unwrap();
        let changes: [(&str, &dyn Fn()); 6] = [
            ("mode", &|| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap()),
            ("half", &|| fs::write(&path, &PROGRAM[..100]).unwrap()),
            ("same size", &|| {
                fs::write(&path, vec![0; PROGRAM.len()]).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(MODE)).unwrap();
            }),
            ("set-id", &|| fs::set_permissions(&path, fs::Permissions::from_mode(0o4111)).unwrap()),
            ("link", &|| {
                fs::remove_file(&path).unwrap();
                symlink(&elsewhere, &path).unwrap();
            }),
            ("none", &|| fs::remove_file(&path).unwrap()),
        ];
        for (what, change) in changes {
            if path.is_file() && !path.is_symlink() {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            }
            change();
            assert!(content(&CheckedGuest::ready(&state).unwrap()) == PROGRAM, "{what}");
        }
        assert_eq!(fs::read_dir(state.programs()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_others_may_write_to_or_that_is_a_link_is_refused() {
        let (_folder, state) = state();
        fs::create_dir(state.programs()).unwrap();
        fs::set_permissions(state.programs(), fs::Permissions::from_mode(0o770)).unwrap();
        assert_eq!(CheckedGuest::ready(&state).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        fs::remove_dir(state.programs()).unwrap();
        symlink(state.root(), state.programs()).unwrap();
        CheckedGuest::ready(&state).unwrap_err();
    }

    #[test]
    fn a_file_that_is_open_for_writing_is_told_from_one_that_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let writer = File::create(&path).unwrap();
        let reader = File::open(&path).unwrap();
        assert!(sys::is_open_for_writing(reader.as_fd()).unwrap());
        drop(writer);
        // Another test's child may have a copy for a moment.
        wait_until_unwritten(&reader.into()).unwrap();
    }

    #[test]
    fn a_sweep_removes_what_other_versions_and_killed_makers_left_a_day_ago() {
        let (_folder, state) = state();
        let guest = CheckedGuest::ready(&state).unwrap();
        for name in ["eyot-guest-of-another-version", "new-0"] {
            fs::write(state.programs().join(name), "").unwrap();
        }
        remove_old(&state.programs(), SystemTime::now()).unwrap();
        assert_eq!(fs::read_dir(state.programs()).unwrap().count(), 3);
        remove_old(&state.programs(), SystemTime::now() + KEPT * 2).unwrap();
        let left: Vec<PathBuf> =
            fs::read_dir(state.programs()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [PathBuf::from(guest.path().unwrap())]);
    }

    #[test]
    fn nothing_is_swept_while_a_process_is_about_to_use_a_file() {
        let (_folder, state) = state();
        let _guest = CheckedGuest::ready(&state).unwrap();
        let other = open_folder(&state.programs()).unwrap();
        assert_eq!(flock(&other, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK));
    }
}
