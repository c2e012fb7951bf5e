//! The reply that each call waits for, and how large it may be. A guest that answers something
//! else, or more, breaks the protocol.

use minicbor::Decoder;

use super::fault::Violation;
use crate::protocol::{MAX_KEPT, MAX_LIVE_PROCESSES, MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES, Reply, decode};

/// The number of started processes that a guest may list.
const MAX_PROCESSES: u64 = 65_536;

/// The reply that a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyKind {
    /// `Reply::Done`.
    Done,
    /// `Reply::Exited`.
    Exited,
    /// `Reply::Process`.
    Process,
    /// `Reply::Processes`.
    Processes,
    /// `Reply::Size`.
    Size,
    /// `Reply::Stat`.
    Stat,
    /// `Reply::Bool`.
    Bool,
    /// `Reply::Glob` with at most this many paths.
    Glob(u32),
    /// `Reply::Grep` with at most this many lines.
    Grep(u32),
    /// `Reply::Usage`.
    Usage,
    /// `Reply::LiveProcesses`.
    LiveProcesses,
    /// `Reply::Kept`.
    Kept,
    /// `Reply::KeptList`.
    KeptList,
}

impl ReplyKind {
    /// The largest encoded reply that is accepted. Only lists may take more than one frame.
    pub(super) fn max_bytes(self) -> usize {
        match self {
            Self::Processes | Self::LiveProcesses | Self::KeptList | Self::Glob(_) | Self::Grep(_) => {
                MAX_MESSAGE_BYTES
            }
            Self::Process => 4 * MAX_PAYLOAD_BYTES,
            _ => MAX_PAYLOAD_BYTES,
        }
    }

    /// The reply in these bytes, if it is the right one. Lists are counted before anything is
    /// allocated for them.
    pub(super) fn decode(self, bytes: &[u8]) -> Result<Reply, Violation> {
        self.check_count(bytes)?;
        let reply = decode::<Reply>(bytes).map_err(Violation)?;
        if self.accepts(&reply) {
            Ok(reply)
        } else {
            Err(Violation::new(format!("a reply of the wrong kind to a call that waits for {self:?}")))
        }
    }

    fn accepts(self, reply: &Reply) -> bool {
        matches!(
            (self, reply),
            (Self::Done, Reply::Done)
                | (Self::Exited, Reply::Exited(..))
                | (Self::Process, Reply::Process(_))
                | (Self::Processes, Reply::Processes(_))
                | (Self::Size, Reply::Size(_))
                | (Self::Stat, Reply::Stat(_))
                | (Self::Bool, Reply::Bool(_))
                | (Self::Glob(_), Reply::Glob(_))
                | (Self::Grep(_), Reply::Grep(_))
                | (Self::Usage, Reply::Usage(_))
                | (Self::LiveProcesses, Reply::LiveProcesses(_))
                | (Self::Kept, Reply::Kept(_))
                | (Self::KeptList, Reply::KeptList(_))
        )
    }

    /// A list element of one byte can become a record of a hundred: its count is held to what was
    /// asked for.
    fn check_count(self, bytes: &[u8]) -> Result<(), Violation> {
        let (most, nesting) = match self {
            Self::Processes => (MAX_PROCESSES, 1),
            Self::KeptList => (2 * MAX_KEPT as u64, 1),
            Self::LiveProcesses => (MAX_LIVE_PROCESSES as u64, 2),
            Self::Glob(most) | Self::Grep(most) => (u64::from(most), 2),
            _ => return Ok(()),
        };
        match list_length(bytes, nesting) {
            Ok(Some(count)) if count <= most => Ok(()),
            Ok(Some(count)) => {
                Err(Violation::new(format!("a list of {count} where at most {most} were asked for")))
            }
            Ok(None) => Err(Violation::new("a list of unknown length")),
            Err(error) => Err(Violation::new(format!("a message that can't be read: {error}"))),
        }
    }
}

/// The length of the list in a reply `[variant, [list]]` (one level) or `[variant, [[list, …]]]`
/// (two levels).
fn list_length(bytes: &[u8], nesting: usize) -> Result<Option<u64>, minicbor::decode::Error> {
    let mut decoder = Decoder::new(bytes);
    decoder.array()?;
    decoder.u32()?;
    for _ in 0..nesting {
        decoder.array()?;
    }
    decoder.array()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{GlobMatches, GrepLine, GrepMatches, ProcessRecord, encode};

    #[test]
    fn lists_are_counted_before_they_are_decoded() {
        let found = Reply::Glob(GlobMatches { paths: vec![String::new(); 3], truncated: false });
        assert!(ReplyKind::Glob(3).decode(&encode(&found)).is_ok());
        assert!(ReplyKind::Glob(2).decode(&encode(&found)).unwrap_err().0.contains("a list of 3"));
        let line = GrepLine { path: "/a".into(), line_number: 1, line: String::new(), line_truncated: false };
        let found = Reply::Grep(GrepMatches { matches: vec![line; 2], truncated: true });
        assert!(ReplyKind::Grep(2).decode(&encode(&found)).is_ok());
        assert!(ReplyKind::Grep(1).decode(&encode(&found)).is_err());
        let process = ProcessRecord {
            id: 1,
            pid: 2,
            command: "x".into(),
            status: None,
            started_ms: 0,
            ended_ms: None,
            timed_out: None,
        };
        assert!(ReplyKind::Processes.decode(&encode(&Reply::Processes(vec![process; 2]))).is_ok());
    }

    #[test]
    fn another_reply_than_the_one_that_is_waited_for_is_refused() {
        let wrong = ReplyKind::Size.decode(&encode(&Reply::Done)).unwrap_err();
        assert_eq!(wrong.0, "a reply of the wrong kind to a call that waits for Size");
        assert!(ReplyKind::Glob(9).decode(&encode(&Reply::Done)).is_err());
    }
}
