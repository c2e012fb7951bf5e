//! Records of processes, files, names and usage: parts of messages.

use minicbor::{Decode, Encode};

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Status {
    /// With this code.
    #[n(0)]
    Exited(#[n(0)] i32),
    /// By this signal.
    #[n(1)]
    Signaled(#[n(0)] i32),
    /// By the memory limit.
    #[n(2)]
    OutOfMemory,
}

/// A started process.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ProcessRecord {
    /// The process's id.
    #[n(0)]
    pub id: u32,
    /// The process number.
    #[n(1)]
    pub pid: u32,
    /// The command, as text.
    #[n(2)]
    pub command: String,
    /// The exit status, if the process ended.
    #[n(3)]
    pub status: Option<Status>,
    /// The time of its start, in milliseconds since 1970.
    #[n(4)]
    pub started_ms: i64,
    /// The time of its end.
    #[n(5)]
    pub ended_ms: Option<i64>,
    /// The guest killed it at its deadline.
    #[n(6)]
    pub timed_out: Option<bool>,
}

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum FileKind {
    /// A regular file.
    #[n(0)]
    File,
    /// A directory.
    #[n(1)]
    Directory,
    /// A symbolic link.
    #[n(2)]
    Symlink,
    /// Anything else.
    #[n(3)]
    Other,
}

/// The attributes of a file: those of a link's target, except for `symlink`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct StatRecord {
    /// The type.
    #[n(0)]
    pub kind: FileKind,
    /// The path itself is a symbolic link.
    #[n(1)]
    pub symlink: bool,
    /// Size in bytes.
    #[n(2)]
    pub size: u64,
    /// Last modification, in milliseconds since 1970.
    #[n(3)]
    pub modified_ms: i64,
    /// Permission bits.
    #[n(4)]
    pub mode: u32,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FileEntry {
    /// The name's bytes.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub name: Vec<u8>,
    /// The type, links not followed.
    #[n(1)]
    pub kind: FileKind,
    /// Size in bytes.
    #[n(2)]
    pub size: u64,
}

/// The change of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum WatchKind {
    /// It is there now.
    #[n(0)]
    Created,
    /// The content changed, or the permissions, owner or times.
    #[n(1)]
    Modified,
    /// It is not there any more.
    #[n(2)]
    Removed,
    /// It was called `from` before.
    #[n(3)]
    Renamed,
    /// Something was missed; the path is empty.
    #[n(4)]
    Overflow,
}

/// Something that happened at or below a watched place.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WatchRecord {
    /// The change.
    #[n(0)]
    pub kind: WatchKind,
    /// The path's bytes, relative to the place; empty for the place itself.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub path: Vec<u8>,
    /// The path that it had before, if it was renamed.
    #[cbor(n(2), with = "minicbor::bytes")]
    pub from: Option<Vec<u8>>,
    /// It is, or was, a directory.
    #[n(3)]
    pub directory: bool,
}

/// The result of glob.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct GlobMatches {
    /// Absolute paths, sorted.
    #[n(0)]
    pub paths: Vec<String>,
    /// There were more.
    #[n(1)]
    pub truncated: bool,
}

/// A line that matched.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct GrepLine {
    /// The file.
    #[n(0)]
    pub path: String,
    /// Counted from 1.
    #[n(1)]
    pub line_number: u64,
    /// The line, perhaps cut.
    #[n(2)]
    pub line: String,
    /// It was cut.
    #[n(3)]
    pub line_truncated: bool,
}

/// The result of grep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct GrepMatches {
    /// The lines.
    #[n(0)]
    pub matches: Vec<GrepLine>,
    /// There were more.
    #[n(1)]
    pub truncated: bool,
}

/// A running process.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct LiveRecord {
    /// The process number.
    #[n(0)]
    pub pid: u32,
    /// The parent's process number.
    #[n(1)]
    pub parent_pid: u32,
    /// The owner, by name or else by number.
    #[n(2)]
    pub user: String,
    /// The letter of its state, as the kernel has it.
    #[n(3)]
    pub state: u8,
    /// The processor time so far, in milliseconds.
    #[n(4)]
    pub cpu_ms: u64,
    /// The resident memory in bytes.
    #[n(5)]
    pub memory_bytes: u64,
    /// The command line, perhaps cut, or the process's name in brackets.
    #[n(6)]
    pub command: String,
}

/// Everything that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct LiveProcessList {
    /// The processes, by number.
    #[n(0)]
    pub processes: Vec<LiveRecord>,
    /// There were more.
    #[n(1)]
    pub truncated: bool,
}

/// The resources in use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct UsageRecord {
    /// Live processes, the guest's own not counted.
    #[n(0)]
    pub processes: u64,
    /// Their resident memory in bytes.
    #[n(1)]
    pub memory_bytes: u64,
    /// Processor time in milliseconds.
    #[n(2)]
    pub cpu_ms: u64,
    /// Since the guest's start, in milliseconds.
    #[n(3)]
    pub uptime_ms: u64,
    /// Since the last activity, in milliseconds.
    #[n(4)]
    pub idle_ms: u64,
    /// The memory that the sandbox's control group counts, in bytes, if the guest can see that.
    #[n(5)]
    pub group_memory_bytes: Option<u64>,
    /// The most that it ever counted.
    #[n(6)]
    pub group_memory_peak_bytes: Option<u64>,
}
