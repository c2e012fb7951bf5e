//! Started processes: they survive the call, the connection and the process that asked for them.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::command::ExitStatus;
use crate::error::Result;

/// A started process, within its sandbox: `p1`, `p2`, …; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

impl std::str::FromStr for ProcessId {
    type Err = crate::error::Error;
    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let number = text.strip_prefix('p').unwrap_or(text).parse();
        number
            .map(Self)
            .map_err(|_| Self::Err::invalid("process", format!("must look like p1, not `{text}`")))
    }
}

impl Serialize for ProcessId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ProcessId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The status of a started process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProcessStatus {
    /// It runs.
    Running,
    /// It ended.
    Ended(ExitStatus),
}

/// The facts about a started process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProcessInfo {
    /// The id.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub id: ProcessId,
    /// The process number inside the sandbox.
    pub pid: u32,
    /// The command, as text.
    pub command: String,
    /// The status.
    pub status: ProcessStatus,
    /// The time at which it was started, in milliseconds since 1970 (UTC).
    pub started_ms: i64,
    /// The time at which it ended.
    pub ended_ms: Option<i64>,
    /// It had not ended at its deadline, and was killed with everything that it had started.
    #[serde(default)]
    pub timed_out: bool,
}

/// The most bytes of input that a process takes at its start, and that are written to it at once.
pub const MAX_STDIN_BYTES: usize = 64 << 10;

/// The input of a started process, and its deadline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartTerms {
    /// The beginning of its input, at most [`MAX_STDIN_BYTES`].
    pub stdin: Bytes,
    /// More input is written later; without that, end of file follows.
    pub stdin_follows: bool,
    /// It is killed with its whole tree when it runs for so long, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// One of the two streams of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A request for a part of a process's log. Offsets count every byte ever written to either stream;
/// about the last 1 MiB of both together is kept, and of each stream at least its last half MiB,
/// however much the other one writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// The stream to read; `None`: both, in the order in which they arrived.
    pub stream: Option<LogStream>,
    /// The offset in that order at which to begin; a part that is no longer kept is skipped, and
    /// the chunk's offset says so.
    pub offset: u64,
    /// Begin this many bytes before the end instead.
    pub tail_bytes: Option<u64>,
    /// Begin this many lines before the end instead. A line ends with its line feed, or where its stream ends so far; of
    /// both streams, the lines that ended last count, each whole.
    pub tail_lines: Option<u64>,
    /// End after this many bytes, of what is followed, too.
    pub limit_bytes: Option<u64>,
    /// Go on with what is still to come, until the process ends.
    pub follow: bool,
}

/// The part of a log that an answer covers, as of the time at which the answer began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogRange {
    /// The offset of the answer's first byte; `end` if it has none yet.
    pub start: u64,
    /// The offset behind the last byte that there was. A reader that asks again from here misses
    /// nothing and reads nothing twice.
    pub end: u64,
    /// The number of bytes that were ever written to the streams that were asked for.
    pub total_bytes: u64,
    /// The number of those that are no longer kept: they came before everything that is.
    pub dropped_bytes: u64,
}

/// A process's log, or a part of it: what it covers, and its chunks.
pub struct Log {
    /// The part that it covers.
    pub range: LogRange,
    /// The chunks in their order. Dropping them ends the reading.
    pub chunks: BoxStream<'static, Result<LogChunk>>,
}

impl Stream for Log {
    type Item = Result<LogChunk>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.chunks.as_mut().poll_next(context)
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("range", &self.range).finish_non_exhaustive()
    }
}

/// A piece of a process's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChunk {
    /// The stream it was written to.
    pub stream: LogStream,
    /// The offset at which it begins in the process's log, counted over both streams.
    pub offset: u64,
    /// The offset at which it begins in its own stream. If that jumps, a reader was too slow, and
    /// what lies between is not kept any more.
    pub stream_offset: u64,
    /// The bytes.
    pub data: Bytes,
}

/// A process that runs in a sandbox, started by any means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LiveProcess {
    /// The process number inside the sandbox.
    pub pid: u32,
    /// The parent's.
    pub parent_pid: u32,
    /// The user it runs as, by name, or by number where the sandbox does not know the name.
    pub user: String,
    /// The state, by the kernel's letter: `R` runs, `S` and `D` wait, `T` is stopped, `Z` has
    /// ended.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: char,
    /// The processor time so far in milliseconds. Absent if the backend does not count it by process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// The resident memory in bytes. Absent if the backend does not count it by process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The command line, cut to 512 bytes, or its name in brackets.
    pub command: String,
}

/// Everything that runs in a sandbox but its guest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LiveProcesses {
    /// The processes, by number.
    pub processes: Vec<LiveProcess>,
    /// There were more than are listed.
    pub truncated: bool,
}

/// A sandbox's use of resources now. A figure is absent if the backend does not know it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Usage {
    /// Live processes, the guest not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Memory in bytes: where a control group holds the limit, all that counts towards it (files in memory and the
    /// cache of files included); else the resident memory of all processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The most memory in bytes that there was at once, where a control group counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_peak_bytes: Option<u64>,
    /// Processor time used so far by live and reaped processes, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    /// Bytes on disk that the sandbox wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Since the sandbox was made, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime_ms: Option<u64>,
    /// Since the last activity, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
}
