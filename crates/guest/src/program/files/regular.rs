//! Regular files, and only those: opening anything else could hang (a FIFO), have an effect (a
//! device) or never end.

use std::fs::File;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::failure::{FileError, FileErrorKind};
use super::locate::{Name, Target, file_type};
use crate::protocol::Location;

/// Flags for opening content: a FIFO that is swapped in does not hang, and a terminal does not
/// become the guest's own.
pub const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The permission bits of a new file, unless the call sets others.
pub const DEFAULT_MODE: u32 = 0o644;

/// Opens the regular file that the target leads to, for reading. It is looked at first without
/// being opened, since merely opening a FIFO wakes its writer; and looked at again afterwards,
/// since it could have been swapped.
pub fn open(target: &Target) -> Result<(File, Stat), FileError> {
    check(&rustix::fs::fstat(target.open(OFlags::PATH)?)?)?;
    let file = target.open(READ)?;
    let stat = rustix::fs::fstat(&file)?;
    check(&stat)?;
    Ok((File::from(file), stat))
}

/// Opens a regular file of the sandbox itself, by its absolute path, and gives its size in bytes;
/// `None` where there is nothing. A failure is the end of a sentence about the file.
pub fn open_in_sandbox(path: &str) -> Result<Option<(File, u64)>, String> {
    let location = Location { path: path.to_owned(), beneath: None };
    match Target::new(&location).and_then(|target| open(&target)) {
        Ok((file, stat)) => Ok(Some((file, size(&stat)))),
        Err(problem) if problem.kind == FileErrorKind::NotFound => Ok(None),
        Err(problem) => Err(problem.reason),
    }
}

/// Refuses what is not a regular file: `is_directory` or `invalid`.
pub fn check(stat: &Stat) -> Result<(), FileError> {
    let what = match file_type(stat) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => return Err(FileError::new(FileErrorKind::IsDirectory, "is a directory")),
        FileType::Fifo => "a fifo",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a symbolic link",
        FileType::Unknown => "of an unknown type",
    };
    Err(FileError::invalid(format!("is {what}, not a regular file")))
}

/// A stat's size; never negative in fact.
pub fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Refuses what is no regular file, and one that the user may not write though its directory would
/// allow replacing it.
pub fn check_writable(name: &Name, stat: &Stat) -> Result<(), FileError> {
    check(stat)?;
    match name.open(OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty()) {
        Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => Err(errno.into()),
        // Anything else is no matter of permission: a program that runs can't be written to, only
        // replaced.
        _ => Ok(()),
    }
}

/// Refuses a file of `size` bytes when that is more than `most`.
pub fn check_size(size: u64, most: Option<u64>) -> Result<(), FileError> {
    match most {
        Some(most) if size > most => Err(FileError::too_large(most, "bytes")),
        _ => Ok(()),
    }
}

/// The permission bits that a file call can give. The set-id bits are none of them: no filter
/// stands between the guest and a folder of the host.
pub fn without_set_id(permissions: u32) -> u32 {
    permissions & 0o1777
}
