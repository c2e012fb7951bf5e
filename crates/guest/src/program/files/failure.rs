//! Why a file call failed, and the one place where the kernel's errors become the kinds of the
//! wire.

use std::fmt;

use rustix::io::Errno;

use crate::program::call_io::Stopped;
use crate::protocol::Failure;

/// The kinds of failure that file calls have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileErrorKind {
    /// The request itself is wrong.
    Invalid,
    /// Nothing is there.
    NotFound,
    /// Something is there already.
    AlreadyExists,
    /// A file was needed.
    IsDirectory,
    /// A directory was needed.
    NotDirectory,
    /// The user may not, or the path leads out of its directory.
    Permission,
    /// Larger than a limit.
    TooLarge,
    /// No room is left.
    Quota,
    /// This kernel can't do it.
    Unsupported,
    /// The caller is gone.
    Cancelled,
    /// Things changed under the operation.
    Conflict,
    /// A defect, or broken storage.
    Internal,
}

impl FileErrorKind {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::IsDirectory => "is_directory",
            Self::NotDirectory => "not_directory",
            Self::Permission => "permission",
            Self::TooLarge => "too_large",
            Self::Quota => "quota",
            Self::Unsupported => "unsupported",
            Self::Cancelled => "cancelled",
            Self::Conflict => "conflict",
            Self::Internal => "internal",
        }
    }
}

impl From<crate::glob_pattern::PatternError> for FileError {
    fn from(refused: crate::glob_pattern::PatternError) -> Self {
        Self::invalid(refused.0)
    }
}

impl From<crate::tar_entry::EntryError> for FileError {
    fn from(refused: crate::tar_entry::EntryError) -> Self {
        Self::invalid(refused.reason).at(&refused.path)
    }
}

/// A failure: its kind, and the end of a sentence. The caller puts the operation and the path
/// before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// The kind of the failure.
    pub kind: FileErrorKind,
    /// The sentence's end: "is a directory".
    pub reason: String,
}

impl FileError {
    /// A problem of this kind; `reason` ends the sentence.
    pub fn new(kind: FileErrorKind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }

    /// The request is wrong.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::new(FileErrorKind::Invalid, reason)
    }

    /// More than a limit allows; `what` is counted in the limit's unit.
    pub fn too_large(limit: impl fmt::Display, what: &str) -> Self {
        Self::new(FileErrorKind::TooLarge, format!("is larger than the limit of {limit} {what}"))
    }

    /// The same problem, at something below the path of the call.
    #[must_use]
    pub fn at(mut self, name: &[u8]) -> Self {
        self.reason = format!("`{}`: {}", String::from_utf8_lossy(name), self.reason);
        self
    }

    /// The same on the wire.
    pub fn into_failure(self) -> Failure {
        Failure { kind: self.kind.as_str().to_owned(), message: self.reason }
    }
}

impl From<Stopped> for FileError {
    fn from(_: Stopped) -> Self {
        Self::new(FileErrorKind::Cancelled, "cancelled")
    }
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        let (kind, reason) = match errno {
            Errno::NOENT => (FileErrorKind::NotFound, "does not exist"),
            Errno::EXIST => (FileErrorKind::AlreadyExists, "already exists"),
            Errno::NOTEMPTY => (FileErrorKind::AlreadyExists, "is a directory that is not empty"),
            Errno::ISDIR => (FileErrorKind::IsDirectory, "is a directory"),
            Errno::NOTDIR => {
                (FileErrorKind::NotDirectory, "is not a directory, or a part of its path is not")
            }
            Errno::ACCESS | Errno::PERM => (FileErrorKind::Permission, "permission denied"),
            Errno::ROFS => (FileErrorKind::Permission, "is on a read-only file system"),
            Errno::LOOP => (
                FileErrorKind::Invalid,
                "its path has too many symbolic links, or one that may not be followed",
            ),
            Errno::NAMETOOLONG => (FileErrorKind::Invalid, "its name or path is too long"),
            Errno::ILSEQ => (FileErrorKind::Invalid, "the file system does not take its name"),
            Errno::INVAL => (FileErrorKind::Invalid, "the file system does not take this operation"),
            Errno::NXIO | Errno::NODEV => {
                (FileErrorKind::Invalid, "is a socket, a fifo or a device, not a regular file")
            }
            Errno::FBIG => (FileErrorKind::TooLarge, "is larger than the file size limit"),
            // The mount has a place on disk for the files of one user alone.
            Errno::OVERFLOW => (
                FileErrorKind::Permission,
                "is in a mounted folder, where only the sandbox's own user can make files",
            ),
            Errno::NOSPC | Errno::DQUOT => (FileErrorKind::Quota, "no space is left"),
            Errno::MFILE | Errno::NFILE => (FileErrorKind::Quota, "too many files are open"),
            Errno::NOMEM | Errno::NOBUFS => (FileErrorKind::Quota, "no memory is left"),
            Errno::MLINK => (FileErrorKind::Quota, "its directory or link count is full"),
            Errno::BUSY | Errno::TXTBSY => (FileErrorKind::Conflict, "is in use"),
            Errno::XDEV => (FileErrorKind::Conflict, "is on another file system"),
            Errno::STALE | Errno::AGAIN => {
                (FileErrorKind::Conflict, "keeps changing, or has nothing to read yet")
            }
            Errno::NOSYS | Errno::OPNOTSUPP => {
                (FileErrorKind::Unsupported, "the kernel does not support this")
            }
            other => {
                return Self::new(
                    FileErrorKind::Internal,
                    format!("the system failed with error {}", other.raw_os_error()),
                );
            }
        };
        Self::new(kind, reason)
    }
}

impl From<std::io::Error> for FileError {
    fn from(error: std::io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::new(FileErrorKind::Internal, error.to_string()),
        }
    }
}
