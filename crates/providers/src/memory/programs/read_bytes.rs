//! Files that a program of ours reads whole.

use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::run::{Ending, ProgramRun};
use crate::memory::content::FileContent;
use crate::memory::node::{NodeContent, is_a_directory};
use crate::memory::read_account::ReadShare;
use crate::memory::reasons::reason;
use crate::memory::shell_files::MAX_READ_BYTES;
use crate::memory::walk::{Last, find};

/// The bytes of a file. They are the file's own where that is possible.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadBytes {
    bytes: Bytes,
    _share: Option<Arc<ReadShare>>,
}

impl Deref for ReadBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Vec<u8>> for ReadBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into(), _share: None }
    }
}

/// The reason why a file can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadError {
    /// The file can be opened, but not read.
    IsDirectory,
    NotFound,
    /// The words in which programs say why.
    Other(&'static str),
}

impl ReadError {
    /// The words in which programs say why.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::IsDirectory => "Is a directory",
            Self::NotFound => "No such file or directory",
            Self::Other(reason) => reason,
        }
    }
}

impl From<&eyot::Error> for ReadError {
    fn from(error: &eyot::Error) -> Self {
        match error.kind() {
            eyot::ErrorKind::IsDirectory => Self::IsDirectory,
            eyot::ErrorKind::NotFound => Self::NotFound,
            _ => Self::Other(reason(error)),
        }
    }
}

impl From<&std::io::Error> for ReadError {
    fn from(error: &std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        match error.kind() {
            Io::NotFound => Self::NotFound,
            Io::IsADirectory => Self::IsDirectory,
            Io::NotADirectory => Self::Other("Not a directory"),
            Io::PermissionDenied => Self::Other("Permission denied"),
            Io::FileTooLarge => Self::Other("File too large"),
            Io::StorageFull => Self::Other("No space left on device"),
            Io::AlreadyExists => Self::Other("File exists"),
            Io::InvalidInput => Self::Other("Invalid argument"),
            _ => Self::Other("Input/output error"),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.reason())
    }
}

impl ProgramRun<'_> {
    /// Reads the standard input to its end.
    pub(super) async fn read_all_input(&self) -> Result<Vec<u8>, Ending> {
        let mut all = Vec::new();
        while let Some(bytes) = self.read_input().await? {
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }

    /// Reads a file whole; `-` is the standard input.
    ///
    /// # Errors
    /// The outer one ends the run. The inner one is why the file can't be read.
    pub(super) async fn read(&self, name: &str) -> Result<Result<ReadBytes, ReadError>, Ending> {
        if name == "-" {
            return self.read_all_input().await.map(|bytes| Ok(bytes.into()));
        }
        let path = self.path(name);
        let found = {
            let held = self.hold();
            let place = find(&held.tree, held.root, &path, Last::Follow, None);
            place.and_then(|place| place.found()).map(|id| match &held.tree.node(id).content {
                NodeContent::File(_) => Some(held.content_of(id)),
                NodeContent::Directory(_) => Some(Err(is_a_directory())),
                _ => None,
            })
        };
        match found {
            Ok(Some(content)) => Ok(match content {
                Ok(content) => self.bytes_of(&content),
                Err(error) => Err((&error).into()),
            }),
            // What the shell itself holds: `/proc`, a substituted process, a device.
            Ok(None) | Err(_) => match self.fs.read_file(Path::new(&self.cwd.join(name))).await {
                Ok(bytes) => Ok(self.bytes_of(&bytes.into())),
                Err(bashkit::Error::Io(error)) => Ok(Err((&error).into())),
                Err(other) => Err(other.into()),
            },
        }
    }

    /// Takes the bytes of a file on the account of the command.
    fn bytes_of(&self, content: &FileContent) -> Result<ReadBytes, ReadError> {
        if content.len() > MAX_READ_BYTES {
            return Err(ReadError::Other("File too large"));
        }
        let share = self.children.shells().reads.lend(content.len());
        let share = share.ok_or(ReadError::Other("Cannot allocate memory"))?;
        Ok(ReadBytes { bytes: content.whole(), _share: Some(Arc::new(share)) })
    }
}
