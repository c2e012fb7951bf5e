//! Events, and how much of each text is kept.

use std::fmt;
use std::net::IpAddr;

use eyot::{Error, Outcome, Result};
use eyot_egress::{EgressProtocol, EgressVerdict};
use serde::{Deserialize, Serialize};

use crate::store::{ENDED_WITH_ITS_PROCESS, FOUND_GONE};

/// The most bytes of a command's line that are kept.
pub const MAX_COMMAND_BYTES: usize = 4096;
/// The most bytes of a reason that are kept.
pub const MAX_REASON_BYTES: usize = 1024;
/// The most bytes of every other text (names, paths, addresses) that are kept.
pub const MAX_TEXT_BYTES: usize = 4096;

/// The mark at the end of a text that was cut.
const CUT: &str = "…";

/// An event as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Counts the log's events from 1, without gaps.
    pub seq: u64,
    /// The time at which it was appended, in milliseconds since 1970 (UTC) by the host's clock,
    /// which may be set back.
    pub time_ms: i64,
    /// The pool that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The name of the sandbox that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// The id of the sandbox that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_id: Option<String>,
    /// The kind, with its facts. In JSON its fields stand beside the others, with its name under
    /// `kind`.
    #[serde(flatten)]
    pub kind: EventKind,
    /// The reason why it happened; never empty.
    pub reason: String,
    /// The hash of the event before it; zeros for the first.
    pub previous: EventHash,
    /// SHA-256 of the event's line without this field (and without the comma before it and the line's end).
    pub hash: EventHash,
}

impl Event {
    /// Tells whether it says when somebody found its sandbox gone, and not when the sandbox ended.
    pub fn is_late(&self) -> bool {
        self.reason == ENDED_WITH_ITS_PROCESS || self.reason.starts_with(FOUND_GONE)
    }
}

/// The kind of an event, with its facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The sandbox was made.
    Created,
    /// The sandbox was asleep and runs again.
    Woke,
    /// The sandbox's processes were stopped; its files are kept.
    Slept,
    /// The sandbox is gone for good.
    Destroyed,
    /// A command is about to start.
    ExecStarted {
        /// The shell line, or its arguments with spaces between them, as they were given: a secret
        /// on a command's line is found here. Standard input and variables are never recorded.
        command: String,
    },
    /// A command ended.
    ExecEnded {
        /// The same text as at its start.
        command: String,
        /// The outcome of the command.
        outcome: Outcome,
        /// From its start to its end, in milliseconds.
        duration_ms: u64,
        /// The number of bytes it wrote to standard output. What they were is not recorded.
        stdout_bytes: u64,
        /// The number of bytes it wrote to standard error.
        stderr_bytes: u64,
    },
    /// A file was written through the handle; what commands write is not told.
    FileWritten {
        /// The path.
        path: String,
        /// The number of bytes that were written.
        size: u64,
    },
    /// A file or a tree arrived from another sandbox.
    Transferred {
        /// The name of the sandbox that it came from.
        from: String,
        /// The path there.
        from_path: String,
        /// The path here.
        to_path: String,
        /// The number of files.
        files: u64,
        /// The number of bytes in these files together.
        bytes: u64,
    },
    /// A port of the sandbox can be reached from outside.
    PortOpened {
        /// The port inside.
        port: u16,
        /// The address at which it can be reached.
        url: String,
    },
    /// Something inside tried to reach something outside. Why it was decided so is the event's reason.
    EgressDecided {
        /// The decision.
        verdict: EgressVerdict,
        /// The protocol by which it was asked for.
        protocol: EgressProtocol,
        /// The host as it was asked for.
        host: String,
        /// The port; none for a name's addresses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
        /// The address that was dialled or refused, where it came to one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<IpAddr>,
    },
    /// The sandbox's files were kept.
    SnapshotTaken {
        /// The id of the snapshot.
        snapshot: String,
    },
    /// A snapshot of the sandbox's files was removed. The sandbox may be gone.
    SnapshotRemoved {
        /// The id of the snapshot.
        snapshot: String,
    },
    /// The sandbox has the files of a snapshot again.
    RolledBack {
        /// The id of the snapshot.
        snapshot: String,
    },
    /// The changes of the sandbox's copy of a folder of the host were written to that folder.
    Applied {
        /// The target of the mount.
        target: String,
        /// The number of changes.
        changes: u64,
    },
    /// Something was found in a state that was not intended, and was put right.
    Reconciled {
        /// A sentence that says what was found and done.
        what: String,
    },
    /// A kind that this version does not know: a later one wrote it. Never appended.
    #[serde(other)]
    Unknown,
}

impl EventKind {
    /// The kind's name as it stands in the log, such as `exec_started`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Woke => "woke",
            Self::Slept => "slept",
            Self::Destroyed => "destroyed",
            Self::ExecStarted { .. } => "exec_started",
            Self::ExecEnded { .. } => "exec_ended",
            Self::FileWritten { .. } => "file_written",
            Self::Transferred { .. } => "transferred",
            Self::PortOpened { .. } => "port_opened",
            Self::EgressDecided { .. } => "egress_decided",
            Self::SnapshotTaken { .. } => "snapshot_taken",
            Self::SnapshotRemoved { .. } => "snapshot_removed",
            Self::RolledBack { .. } => "rolled_back",
            Self::Applied { .. } => "applied",
            Self::Reconciled { .. } => "reconciled",
            Self::Unknown => "unknown",
        }
    }

    fn truncate_texts(&mut self) {
        match self {
            Self::ExecStarted { command } | Self::ExecEnded { command, .. } => {
                truncate_text(command, MAX_COMMAND_BYTES);
            }
            Self::FileWritten { path, .. } | Self::Applied { target: path, .. } => {
                truncate_text(path, MAX_TEXT_BYTES)
            }
            Self::Transferred { from, from_path, to_path, .. } => {
                for text in [from, from_path, to_path] {
                    truncate_text(text, MAX_TEXT_BYTES);
                }
            }
            Self::PortOpened { url: text, .. }
            | Self::EgressDecided { host: text, .. }
            | Self::Reconciled { what: text } => truncate_text(text, MAX_TEXT_BYTES),
            // Ids have a fixed length.
            Self::SnapshotTaken { .. } | Self::SnapshotRemoved { .. } | Self::RolledBack { .. } => {}
            Self::Created | Self::Woke | Self::Slept | Self::Destroyed | Self::Unknown => {}
        }
    }
}

/// An event to append. Texts may be of any length; what is longer than [`MAX_COMMAND_BYTES`],
/// [`MAX_REASON_BYTES`] or [`MAX_TEXT_BYTES`] is cut there and ends with `…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// The pool that it is about.
    pub pool: Option<String>,
    /// The name of the sandbox that it is about.
    pub sandbox: Option<String>,
    /// The id of the sandbox that it is about.
    pub sandbox_id: Option<String>,
    /// The reason why it happened; must not be blank.
    pub reason: String,
    /// The kind, with its facts.
    pub kind: EventKind,
}

impl NewEvent {
    /// Makes an event that names no pool and no sandbox yet.
    pub fn new(kind: EventKind, reason: impl Into<String>) -> Self {
        Self { pool: None, sandbox: None, sandbox_id: None, reason: reason.into(), kind }
    }

    /// The same event, about this pool.
    #[must_use]
    pub fn in_pool(mut self, pool: impl Into<String>) -> Self {
        self.pool = Some(pool.into());
        self
    }

    /// The same event, about the sandbox of this name and id.
    #[must_use]
    pub fn of_sandbox(mut self, name: impl Into<String>, id: impl Into<String>) -> Self {
        (self.sandbox, self.sandbox_id) = (Some(name.into()), Some(id.into()));
        self
    }

    /// Refuses what does not belong into the log, and cuts what is too long for it.
    pub(super) fn checked(mut self) -> Result<Self> {
        if self.reason.trim().is_empty() {
            return Err(Error::invalid("reason", "must not be empty: an event says why it happened"));
        }
        if self.kind == EventKind::Unknown {
            return Err(Error::invalid("kind", "must be a kind of event that this version knows"));
        }
        truncate_text(&mut self.reason, MAX_REASON_BYTES);
        for text in [&mut self.pool, &mut self.sandbox, &mut self.sandbox_id].into_iter().flatten() {
            truncate_text(text, MAX_TEXT_BYTES);
        }
        self.kind.truncate_texts();
        Ok(self)
    }
}

/// Leaves at most `limit` bytes of whole characters, the mark of the cut included.
fn truncate_text(text: &mut String, limit: usize) {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit - CUT.len()));
        text.push_str(CUT);
    }
}

/// A SHA-256 hash; as text 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventHash([u8; 32]);

impl EventHash {
    /// The hash that stands before the first event.
    pub const ZERO: Self = Self([0; 32]);

    /// The hash with these bytes.
    pub(super) fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Parses 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self> {
        let mut bytes = [0; 32];
        let is_upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
        match hex::decode_to_slice(text, &mut bytes) {
            Ok(()) if !is_upper => Ok(Self(bytes)),
            _ => Err(Error::invalid("hash", "must be 64 lower-case hexadecimal digits")),
        }
    }
}

impl fmt::Display for EventHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for EventHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for EventHash {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        Self::parse(&text)
    }
}

impl From<EventHash> for String {
    fn from(hash: EventHash) -> Self {
        hex::encode(hash.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_reason_and_an_unknown_kind_are_refused() {
        for reason in ["", " \n"] {
            let error = NewEvent::new(EventKind::Created, reason).checked().unwrap_err();
            assert!(error.to_string().starts_with("`reason` must not be empty"), "{error}");
        }
        assert!(NewEvent::new(EventKind::Unknown, "x").checked().is_err());
    }

    #[test]
    fn long_texts_are_cut_at_a_character_and_say_so() {
        let kind = EventKind::ExecStarted { command: "ä".repeat(MAX_COMMAND_BYTES) };
        let event = NewEvent::new(kind, "r".repeat(MAX_REASON_BYTES)).checked().unwrap();
        let EventKind::ExecStarted { command } = event.kind else { panic!("a start") };
        assert!(command.len() <= MAX_COMMAND_BYTES && command.ends_with("ä…"));
        assert_eq!(event.reason.len(), MAX_REASON_BYTES);
        assert!(!event.reason.ends_with('…'), "what fits is not cut");
    }

    #[test]
    fn a_hash_is_64_digits_and_nothing_else() {
        let text = "0123456789abcdef".repeat(4);
        assert_eq!(EventHash::parse(&text).unwrap().to_string(), text);
        for wrong in ["", &text[1..], &text.to_uppercase(), &format!("{text}0"), &"ä".repeat(32)] {
            assert!(EventHash::parse(wrong).is_err(), "{wrong}");
        }
    }
}
