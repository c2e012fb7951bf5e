//! Commands on the wire.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use super::Problem;
use crate::exec::{Outcome, PtySize};
use crate::process::LogStream;

/// A command. One of `command` and `argv` is there.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ExecBody {
    /// Shell source, run by `bash -c`, else `sh -c`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "shell_line")]
    pub command: Option<String>,
    /// A program and its arguments; no shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// The working directory, resolved against the sandbox's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables layered over the sandbox's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The user who runs it; by default the sandbox's user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The deadline from the start, in milliseconds; by default the sandbox's, and without that none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The most bytes of each stream that are kept; by default the sandbox's limit, else 1 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<u64>,
    /// The standard input, as text. Without any it reads end of file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// The standard input, as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin_base64: Option<String>,
    /// Over a WebSocket: standard input follows in messages.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stdin_follows: bool,
    /// Runs on a terminal of this size; standard output and error are then one stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pty: Option<PtySize>,
}

/// The output and the outcome of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecAnswer {
    /// The outcome: `{"exited": 0}`, `{"signaled": 9}`, `"timed_out"`, `"cancelled"`,
    /// `"out_of_memory"`.
    pub outcome: Outcome,
    /// The same in one number: the code, 128 + signal, 124 for the deadline, 130 for a cancel, 137 for out of memory.
    pub exit_code: i32,
    /// Standard output as text, up to the limit; what is not UTF-8 becomes U+FFFD.
    pub stdout: String,
    /// Standard error as text, up to the limit, with a sentence where the deadline has passed.
    pub stderr: String,
    /// Standard output's bytes, only where they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout_base64: Option<String>,
    /// Standard error's bytes, only where they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_base64: Option<String>,
    /// The number of bytes it wrote to standard output in all.
    pub stdout_bytes: u64,
    /// The number of bytes it wrote to standard error in all.
    pub stderr_bytes: u64,
    /// Standard output was longer than what was kept.
    pub stdout_truncated: bool,
    /// Standard error was longer than what was kept.
    pub stderr_truncated: bool,
    /// From the start to the outcome, in milliseconds.
    pub duration_ms: u64,
    /// The deadline has passed, and the whole process tree was killed.
    pub timed_out: bool,
    /// It was cancelled, and the whole process tree was killed.
    pub aborted: bool,
    /// It was to be killed, and that could not be confirmed.
    pub may_still_be_running: bool,
    /// A process that it left behind, such as `sleep 60 &`, still held its output open when reading stopped.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub output_open: bool,
}

impl ExecAnswer {
    /// Returns the same without the output, for a client that had it as it came; nothing is said to
    /// be missing.
    #[must_use]
    pub fn without_output(self) -> Self {
        let (stdout, stderr, stdout_base64, stderr_base64) = Default::default();
        let (stdout_truncated, stderr_truncated) = (false, false);
        Self { stdout, stderr, stdout_base64, stderr_base64, stdout_truncated, stderr_truncated, ..self }
    }
}

/// The most bytes of standard input that may be under way.
pub const STDIN_WINDOW: usize = 256 * 1024;
/// The byte that leads a message of standard output.
pub const STDOUT: u8 = 1;
/// The byte that leads a message of standard error.
pub const STDERR: u8 = 2;

/// A client's request to a running command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SocketControl {
    /// Kill it with its whole tree; the outcome is `cancelled`.
    Kill,
    /// Kill it with its whole tree, because its client's deadline has passed; the outcome is `timed_out`.
    Expire,
    /// Send its process group (its terminal's foreground group) this signal, by its Linux number.
    Signal(i32),
    /// Gives its terminal this size.
    Resize(PtySize),
}

/// A message about a command to its client, beside its output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum SocketEvent {
    /// It runs.
    Started,
    /// So many bytes of standard input more may be sent.
    Credit(usize),
    /// A control failed with this problem; the command runs on.
    Refused(Problem),
    /// It ended. Nothing follows.
    End(Box<ExecAnswer>),
    /// It could not be run, or its sandbox is gone. Nothing follows.
    Problem(Problem),
}

/// A streamed command has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecStarted {
    /// The id by which its stream can be taken up again.
    pub exec: String,
}

/// A piece of what a streamed command writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecPiece {
    /// The bytes, as base64.
    pub data: String,
}

/// A process to start. One of `command` and `argv` is there.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct StartBody {
    /// Shell source.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "shell_line")]
    pub command: Option<String>,
    /// A program and its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    /// The working directory, resolved against the sandbox's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables layered over the sandbox's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The user who runs it; by default the sandbox's user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The standard input, or its beginning, as text: at most 64 KiB. Without any it reads end of file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// The same as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin_base64: Option<String>,
    /// More of its input is written later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stdin_follows: bool,
    /// It is killed when it has not ended after so many milliseconds; by default never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Runs it on a terminal of this size; standard output and error are then one stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pty: Option<PtySize>,
}

/// Input for a started process.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct StdinBody {
    /// The input, as text: at most 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// The same as base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin_base64: Option<String>,
    /// End of file comes behind it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub end: bool,
}

/// A signal to send.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SignalBody {
    /// By its Linux number: 15 asks a process to end. Without one, or without a body, the whole process tree is killed. For a
    /// process that has ended this changes nothing, and succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// A piece of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogPiece {
    /// `stdout` or `stderr`.
    pub stream: LogStream,
    /// The offset of its first byte, over both streams.
    pub offset: u64,
    /// The offset of its first byte in its own stream.
    pub stream_offset: u64,
    /// The bytes, as base64.
    pub data: String,
}

/// Reads shell source. Whoever sends a list of words is told where it belongs.
fn shell_line<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    struct ShellLine;

    impl<'de> Visitor<'de> for ShellLine {
        type Value = Option<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a line for a shell; a list of words goes into `argv`")
        }

        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_string(self)
        }

        fn visit_str<E>(self, line: &str) -> Result<Self::Value, E> {
            Ok(Some(line.to_owned()))
        }

        fn visit_string<E>(self, line: String) -> Result<Self::Value, E> {
            Ok(Some(line))
        }
    }

    deserializer.deserialize_option(ShellLine)
}
