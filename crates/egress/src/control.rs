//! How the program is started and talked to. Both are JSON: one message at the start, with descriptors; and one line a
//! message on the control socket, where a client asks once and reads the answer to its end.

use serde::{Deserialize, Serialize};

use crate::decision::EgressDecision;
use crate::rules::EgressRules;

/// What the program is given at its start, over a socket that is its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The sandbox's name, for what a refused client is told.
    pub sandbox: String,
    /// Who may talk to it besides root: the host's uid.
    pub owner: u32,
    /// Whom to become on the host; `None`: stays who it is.
    pub become_id: Option<u32>,
    /// The rules to begin with.
    pub rules: EgressRules,
    /// The seccomp filter that it lays on itself: the code, jt, jf and k of an instruction in one number, from the top.
    pub filter: Vec<u64>,
}

/// How many descriptors come along with [`Start`]: the guest's pidfd, the control socket's listener, then what
/// [`SANDBOX_SOCKETS`] counts.
pub const START_DESCRIPTORS: usize = 2 + SANDBOX_SOCKETS;
/// The sockets inside the sandbox, in this order: HTTP, SOCKS5, DNS over UDP, DNS over TCP.
pub const SANDBOX_SOCKETS: usize = 4;
/// What the program answers when it serves.
pub const READY: &[u8] = b"ready";
/// How large [`Start`] may be: what one message on a socket carries everywhere.
pub const MAX_START_BYTES: usize = 128 * 1024;
/// How long a line on the control socket may be.
pub const MAX_LINE_BYTES: usize = MAX_START_BYTES;
/// How many decisions are remembered.
pub const MAX_DECISIONS: usize = 1000;

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// How it is.
    Status,
    /// To keep these rules from now on. What they no longer allow is closed.
    SetRules {
        /// The rules.
        rules: EgressRules,
    },
    /// What was decided, oldest first; and with `follow` what will be.
    Decisions {
        /// Only this many of the latest that are remembered.
        last: usize,
        /// Go on until the client leaves.
        follow: bool,
    },
}

/// What it answers, one or more lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// To [`Ask::Status`], and to [`Ask::SetRules`] when they hold.
    Status {
        /// The program's process number on the host.
        pid: u32,
        /// The rules that it keeps.
        rules: EgressRules,
    },
    /// To [`Ask::Decisions`], one line each.
    Decision(EgressDecision),
    /// What was asked for is not understood.
    Refused {
        /// Why.
        reason: String,
    },
}
