//! Started processes: they survive the call, the connection and the process that asked for them.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::exec::ExitStatus;

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
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_prefix('p').unwrap_or(text).parse();
        number
            .map(Self)
            .map_err(|_| Self::Err::invalid("process", format!("must look like p1, not `{text}`")))
    }
}

impl Serialize for ProcessId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whether a started process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessStatus {
    /// It runs.
    Running,
    /// It ended.
    Ended(ExitStatus),
}

/// What is known of a started process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessInfo {
    /// Its id.
    pub id: ProcessId,
    /// Its process number inside the sandbox.
    pub pid: u32,
    /// What was started, as text.
    pub command: String,
    /// Whether it runs.
    pub status: ProcessStatus,
    /// When it was started, in milliseconds since 1970 (UTC).
    pub started_ms: i64,
    /// When it ended.
    pub ended_ms: Option<i64>,
}

/// One of the two streams of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Which part of a process's log to read. Offsets count every byte ever written to either stream; about the last 1 MiB
/// of both together is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogQuery {
    /// Which stream; `None`: both, in the order in which they arrived.
    pub stream: Option<LogStream>,
    /// Where to begin in that order; a part that is no longer kept is skipped, and the chunk's offset says so.
    pub offset: u64,
    /// Begin this many bytes before the end instead.
    pub tail_bytes: Option<u64>,
    /// Go on with what is still to come, until the process ends.
    pub follow: bool,
}

/// A piece of a process's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogChunk {
    /// Which stream it was written to.
    pub stream: LogStream,
    /// Where it begins in the process's log, counted over both streams.
    pub offset: u64,
    /// The bytes.
    pub data: Bytes,
}

/// What a sandbox uses now; absent is what the backend can't tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
