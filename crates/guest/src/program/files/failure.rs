//! Why a file call failed, and the one place where the kernel's errors become the kinds of the
//! wire.

use std::fmt;

use rustix::io::Errno;

use crate::program::call_io::Stopped;
use crate::protocol::Failure;

/// The kinds of failure that file calls have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
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

impl Kind {
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

/// A failure: its kind, and the end of a sentence that whoever asked begins with the operation and
/// the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The kind of the failure.
    pub kind: Kind,
    /// The sentence's end: "is a directory".
    pub reason: String,
}

impl Problem {
    /// A problem of this kind; `reason` ends the sentence.
    pub fn new(kind: Kind, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }

    /// The request is wrong.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, reason)
    }

    /// More than a limit allows; `what` is counted in the limit's unit.
    pub fn too_large(limit: impl fmt::Display, what: &str) -> Self {
        Self::new(Kind::TooLarge, format!("is larger than the limit of {limit} {what}"))
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

impl From<Stopped> for Problem {
    fn from(_: Stopped) -> Self {
        Self::new(Kind::Cancelled, "cancelled")
    }
}

impl From<Errno> for Problem {
    fn from(errno: Errno) -> Self {
        let (kind, reason) = match errno {
            Errno::NOENT => (Kind::NotFound, "does not exist"),
            Errno::EXIST => (Kind::AlreadyExists, "already exists"),
            Errno::NOTEMPTY => (Kind::AlreadyExists, "is a directory that is not empty"),
            Errno::ISDIR => (Kind::IsDirectory, "is a directory"),
            Errno::NOTDIR => (Kind::NotDirectory, "is not a directory, or a part of its path is not"),
            Errno::ACCESS | Errno::PERM => (Kind::Permission, "permission denied"),
            Errno::ROFS => (Kind::Permission, "is on a read-only file system"),
            Errno::LOOP => {
                (Kind::Invalid, "its path has too many symbolic links, or one that may not be followed")
            }
            Errno::NAMETOOLONG => (Kind::Invalid, "its name or path is too long"),
            Errno::ILSEQ => (Kind::Invalid, "the file system does not take its name"),
            Errno::INVAL => (Kind::Invalid, "the file system does not take this operation"),
            Errno::NXIO | Errno::NODEV => {
                (Kind::Invalid, "is a socket, a fifo or a device, not a regular file")
            }
            Errno::FBIG | Errno::OVERFLOW => (Kind::TooLarge, "is larger than the file size limit"),
            Errno::NOSPC | Errno::DQUOT => (Kind::Quota, "no space is left"),
            Errno::MFILE | Errno::NFILE => (Kind::Quota, "too many files are open"),
            Errno::NOMEM | Errno::NOBUFS => (Kind::Quota, "no memory is left"),
            Errno::MLINK => (Kind::Quota, "its directory or link count is full"),
            Errno::BUSY | Errno::TXTBSY => (Kind::Conflict, "is in use"),
            Errno::XDEV => (Kind::Conflict, "is on another file system"),
            Errno::STALE | Errno::AGAIN => (Kind::Conflict, "keeps changing, or has nothing to read yet"),
            Errno::NOSYS | Errno::OPNOTSUPP => (Kind::Unsupported, "the kernel does not support this"),
            other => {
                return Self::new(
                    Kind::Internal,
                    format!("the system failed with error {}", other.raw_os_error()),
                );
            }
        };
        Self::new(kind, reason)
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::new(Kind::Internal, error.to_string()),
        }
    }
}
