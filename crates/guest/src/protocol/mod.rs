//! The wire protocol between a host and a guest: [`Frame`]s over any byte stream, many calls at
//! once, credits per stream of a call. Nothing here trusts the other side: every length is bounded
//! before anything is allocated.
//!
//! A call begins with a `Request` under a number of the client's choosing (from 1, each used once
//! per connection) and ends with exactly one `Reply` or `Failure`. In between go `Data`, `End`,
//! `Credit`, `Event`, `Control`.
//!
//! A sender may have [`WINDOW`] bytes of `Data` under way per call, channel and direction, and more
//! as the receiver grants them with `Credit`. So a reader who stops reading stops that one stream,
//! and nothing else.

mod config;
pub mod container;
mod frame;
mod kept;
mod message;
pub mod pod;
mod record;
#[cfg(any(feature = "client", feature = "program"))]
pub mod silence;
mod start;
pub mod terminal;

pub use config::{GuestConfig, Identity, Ids};
pub use frame::{Decoder, Frame, FrameError, HEADER_BYTES, Header, Kind, MAX_FRAME_BYTES, MAX_PAYLOAD_BYTES};
pub use kept::{KEEPS_COMMANDS, KeepTerms, KeptEnd, KeptRecord, MAX_KEPT, StopCause};
pub use message::{
    CommandSpec, Control, Event, Exec, Failure, Hello, Location, LogRange, LogRequest, Message, Protections,
    Reply, Request, Terminal, Welcome, WriteParameters, decode, encode,
};
pub use record::{
    FileEntry, FileKind, GlobMatches, GrepLine, GrepMatches, LiveProcessList, LiveRecord, ProcessRecord,
    StatRecord, Status, UsageRecord, WatchKind, WatchRecord,
};
pub use start::{ProcessTerms, STARTS_ON_TERMS};

/// The protocol's major version: both sides must have the same.
pub const MAJOR: u16 = 1;
/// The protocol's minor version: what is added with it may be ignored by an older side.
pub const MINOR: u16 = 6;
/// The minor version from which on a guest passes descriptors of files to a client on its machine.
pub const PASSES_FILES: u16 = 4;
/// The minor version from which on it also passes those of files that are being written.
pub const PASSES_DRAFTS: u16 = 5;
/// The minor version from which on it holds calls back on request.
pub const HOLDS_CALLS: u16 = 6;
/// The most bytes of a file that a client reads or writes by a passed descriptor.
pub const MAX_PASSED_BYTES: u64 = 8 << 20;
/// The file systems that keep files on a disk of this machine: the name in mountinfo, and `f_type`
/// of statfs(2). Descriptors are passed of files on these alone, or on an overlay of them.
pub const DISK_FILE_SYSTEMS: [(&str, i64); 4] =
    [("ext4", 0xef53), ("xfs", 0x5846_5342), ("btrfs", 0x9123_683e), ("f2fs", 0xf2f5_2010)];

/// The most bytes of `Data` under way per call, channel and direction before the receiver grants
/// more.
pub const WINDOW: u32 = 256 * 1024;
/// The largest message (a `Request`, `Reply`, … in one or several frames), in bytes.
pub const MAX_MESSAGE_BYTES: usize = 8 << 20;
/// The most calls that may be open at once on one connection.
pub const MAX_CALLS: usize = 1024;

/// The channel of a call's standard input, of a file's content in either direction, of a dialled
/// connection.
pub const CHANNEL_MAIN: u8 = 0;
/// The channel of standard output.
pub const CHANNEL_STDOUT: u8 = 1;
/// The channel of standard error.
pub const CHANNEL_STDERR: u8 = 2;

/// The length of the prefix of a log's payload: its offset over both streams, and that in its own.
/// Kept output has the same: its position, and that of what follows.
pub const LOG_PREFIX_BYTES: usize = 16;
/// The bytes of a started process's log that makers have kept.
pub const LOG_BYTES: u64 = 1 << 20;
/// The most processes that are listed as running.
pub const MAX_LIVE_PROCESSES: usize = 8192;

/// The file descriptor on which the guest finds the stream to its maker.
pub const STREAM_FD: i32 = 3;
/// The file descriptor on which the guest finds the listener for later connections.
pub const LISTENER_FD: i32 = 4;
/// The file descriptor from which the guest reads its [`GuestConfig`], encoded, to the end.
pub const CONFIG_FD: i32 = 5;
/// The file descriptor on which a native guest finds the file that counts the kills for want of
/// memory, where [`GuestConfig::memory_events_fd`] says so.
pub const MEMORY_EVENTS_FD: i32 = 6;
