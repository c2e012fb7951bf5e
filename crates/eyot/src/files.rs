//! Files as the contract sees them: what is known about one, and how to read, write, list, make and remove it.

use serde::{Deserialize, Serialize};

/// The kind of thing that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum FileType {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link (in listings; `stat` describes the target).
    Symlink,
    /// A FIFO, a socket or a device.
    Other,
}

/// The facts about a file. Everything but the two required facts is absent when the backend does
/// not know it.
///
/// For a symbolic link, `is_file`, `is_directory`, `size`, `modified_ms`, `mode` describe the target and
/// `is_symbolic_link` the path itself. A dangling link is not found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileStat {
    /// It is a regular file.
    pub is_file: bool,
    /// It is a directory.
    pub is_directory: bool,
    /// The path itself is a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_symbolic_link: Option<bool>,
    /// Size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Last modification, in milliseconds since 1970 (UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[doc(alias = "mtime")]
    pub modified_ms: Option<i64>,
    /// Permission bits, such as `0o644`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DirEntry {
    /// The name, not the path. Bytes that are not UTF-8 stand as U+FFFD; `name_bytes` then has the real ones.
    pub name: String,
    /// The name's bytes, only when they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_bytes: Option<Vec<u8>>,
    /// The type; a symbolic link is not followed. Absent when the backend does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_type: Option<FileType>,
    /// Size in bytes, where the backend says it without another question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl DirEntry {
    /// The same by their names, as they are shown.
    pub(crate) fn sorted(mut entries: Vec<Self>) -> Vec<Self> {
        entries.sort_unstable_by(|one, other| {
            (&one.name, &one.name_bytes).cmp(&(&other.name, &other.name_bytes))
        });
        entries
    }
}

/// A part of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    /// The first byte, counted from 0. Past the end: nothing is read.
    pub offset: u64,
    /// The most bytes to read; `None`: to the end.
    pub limit: Option<u64>,
}

/// The treatment of a file that is there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteMode {
    /// It is replaced as a whole, atomically: a reader sees the old or the new content. Its permission bits stay.
    #[default]
    Replace,
    /// The bytes are added at its end; two appends never interleave.
    Append,
    /// The write is refused with `already_exists`.
    CreateNew,
}

/// Options for writing a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteOptions {
    /// The treatment of a file that is there already.
    pub mode: WriteMode,
    /// Permission bits of a new file; `None`: `0o644`. With `Replace`, also those of an old one. Setuid and setgid bits are
    /// refused with `invalid`.
    pub permissions: Option<u32>,
    /// The write fails with `too_large`, and changes nothing, when the file would grow past this many bytes.
    pub max_file_bytes: Option<u64>,
}

/// Options for making a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateDirOptions {
    /// Makes parents too, and accepts a directory that is there already.
    pub recursive: bool,
}

/// Options for removing a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveOptions {
    /// Removes a directory and everything below it; without it a directory is refused with `is_directory`.
    pub recursive: bool,
    /// A path that is missing is no error. It forgives nothing else.
    pub force: bool,
}

/// Options for unpacking a tar stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TarInOptions {
    /// The unpacked bytes may not exceed this; the default is 4 GiB.
    pub max_total_bytes: u64,
    /// There may not be more entries than this; the default is 1,000,000.
    pub max_entries: u64,
}

impl Default for TarInOptions {
    fn default() -> Self {
        Self { max_total_bytes: 4 << 30, max_entries: 1_000_000 }
    }
}
