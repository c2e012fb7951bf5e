//! Regular files, and only those: opening anything else could hang (a FIFO), have an effect (a
//! device) or never end.

use std::fs::File;

use rustix::fs::{FileType, OFlags, Stat};

use super::failure::{Kind, Problem};
use super::locate::{Target, file_type};
use crate::protocol::Location;

/// Flags for opening content: a FIFO that is swapped in does not hang, and a terminal does not
/// become the guest's own.
pub const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens the regular file that the target leads to, for reading. It is looked at first without
/// being opened, since merely opening a FIFO wakes its writer; and looked at again afterwards,
/// since it could have been swapped.
pub fn open(target: &Target) -> Result<(File, Stat), Problem> {
    check(&rustix::fs::fstat(target.open(OFlags::PATH)?)?)?;
    let file = target.open(READ)?;
    let stat = rustix::fs::fstat(&file)?;
    check(&stat)?;
    Ok((File::from(file), stat))
}

/// Opens a regular file of the sandbox itself, by its absolute path, and gives its size in bytes;
/// `None` where there is nothing. A failure is the end of a sentence about the file.
pub fn of_the_sandbox(path: &str) -> Result<Option<(File, u64)>, String> {
    let location = Location { path: path.to_owned(), beneath: None };
    match Target::new(&location).and_then(|target| open(&target)) {
        Ok((file, stat)) => Ok(Some((file, size(&stat)))),
        Err(problem) if problem.kind == Kind::NotFound => Ok(None),
        Err(problem) => Err(problem.reason),
    }
}

/// Refuses what is not a regular file: `is_directory` or `invalid`.
pub fn check(stat: &Stat) -> Result<(), Problem> {
    let what = match file_type(stat) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => return Err(Problem::new(Kind::IsDirectory, "is a directory")),
        FileType::Fifo => "a fifo",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink => "a symbolic link",
        FileType::Unknown => "of an unknown type",
    };
    Err(Problem::invalid(format!("is {what}, not a regular file")))
}

/// A stat's size; never negative in fact.
pub fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}
