//! Messages to and from the egress program. The start is one JSON message with descriptors. On the
//! control socket each line is one JSON message: a client asks once and reads the answer to its
//! end.

use serde::{Deserialize, Serialize};

use crate::decision::EgressDecision;
use crate::rules::EgressRules;

/// The message that starts the program, over a socket that is its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartMessage {
    /// The sandbox's name, for the texts that refused clients read.
    pub sandbox: String,
    /// The host's uid that may use the control socket, besides root.
    pub owner: u32,
    /// The host's uid and gid to change to; `None` keeps those of the starter.
    pub become_id: Option<u32>,
    /// The rules to begin with.
    pub rules: EgressRules,
    /// The seccomp filter that the program lays on itself. Each number holds one instruction: from
    /// the top its code, jt, jf and k.
    pub filter: Vec<u64>,
}

/// The number of descriptors that come with [`StartMessage`]: the guest's pidfd, the control
/// socket's listener, then the [`SANDBOX_SOCKETS`].
pub const START_DESCRIPTORS: usize = 2 + SANDBOX_SOCKETS;
/// The number of sockets inside the sandbox, in this order: HTTP, SOCKS5, DNS over UDP, DNS over
/// TCP.
pub const SANDBOX_SOCKETS: usize = 4;
/// The program's answer once it serves.
pub const READY: &[u8] = b"ready";
/// The largest [`StartMessage`]: one message on a socket carries this much everywhere.
pub const MAX_START_BYTES: usize = 128 * 1024;
/// The longest line on the control socket.
pub const MAX_LINE_BYTES: usize = MAX_START_BYTES;
/// The number of decisions that are remembered.
pub const MAX_DECISIONS: usize = 1000;

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum ControlRequest {
    /// The program's state.
    Status,
    /// Replaces the rules. Connections that the new rules do not allow are closed.
    SetRules {
        /// The rules.
        rules: EgressRules,
    },
    /// The decisions so far, oldest first; with `follow` also those to come.
    Decisions {
        /// The number of remembered decisions to return, counted from the latest.
        last: usize,
        /// Continues until the client leaves.
        follow: bool,
    },
}

/// An answer of the program, one or more lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum ControlResponse {
    /// Answers [`ControlRequest::Status`], and [`ControlRequest::SetRules`] once the rules apply.
    Status {
        /// The program's process number on the host.
        pid: u32,
        /// The rules that apply.
        rules: EgressRules,
    },
    /// Answers [`ControlRequest::Decisions`], one line each.
    Decision(EgressDecision),
    /// The request was not understood.
    Refused {
        /// The reason.
        reason: String,
    },
}
