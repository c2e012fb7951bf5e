//! Messages about kept commands: those that outlive their clients, with their output, for a while.

use minicbor::{Decode, Encode};

use super::Status;

/// The minor version of the protocol from which on guests keep commands.
pub const KEEPS_COMMANDS: u16 = 2;
/// The most commands that a guest keeps at a time: so many on terminals, and as many others.
pub const MAX_KEPT: usize = 64;

/// The terms on which a command is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct KeepTerms {
    /// It is ended and forgotten after this many milliseconds without a reader.
    #[n(0)]
    pub linger_ms: u64,
    /// The deadline from its start, in milliseconds.
    #[n(1)]
    pub timeout_ms: Option<u64>,
}

/// A kept command.
///
/// The output of a command on a terminal has a position for each byte, from 0 on. Other output has
/// one for each piece, from 1 on, and a piece is always read whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct KeptRecord {
    /// The id, which is never used twice.
    #[n(0)]
    pub id: String,
    /// The command, as text.
    #[n(1)]
    pub command: String,
    /// It runs on a terminal.
    #[n(2)]
    pub terminal: bool,
    /// The time of its start, in milliseconds since 1970.
    #[n(3)]
    pub started_ms: i64,
    /// The time since its start, in milliseconds.
    #[n(4)]
    pub age_ms: u64,
    /// A client reads its output.
    #[n(5)]
    pub attached: bool,
    /// The deadline from its start, in milliseconds.
    #[n(6)]
    pub timeout_ms: Option<u64>,
    /// The position of the first output that is kept.
    #[n(7)]
    pub first: u64,
    /// The position of the output that comes next.
    #[n(8)]
    pub next: u64,
    /// The number of bytes that it wrote to standard output.
    #[n(9)]
    pub stdout_bytes: u64,
    /// The number of bytes that it wrote to standard error.
    #[n(10)]
    pub stderr_bytes: u64,
    /// The end, if it has ended.
    #[n(11)]
    pub end: Option<KeptEnd>,
}

/// The end of a kept command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct KeptEnd {
    /// The status that it ended with.
    #[n(0)]
    pub status: Status,
    /// The guest killed its whole tree, for this reason.
    #[n(1)]
    pub cause: Option<StopCause>,
    /// Something that it left behind still held its output open when the guest stopped reading.
    #[n(2)]
    pub output_open: bool,
    /// The time from its start to its end, in milliseconds.
    #[n(3)]
    pub duration_ms: u64,
}

/// The reason why a guest killed a kept command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum StopCause {
    /// Its deadline passed.
    #[n(0)]
    Deadline,
    /// A client asked for it, or went away in the middle of its input.
    #[n(1)]
    Client,
}
