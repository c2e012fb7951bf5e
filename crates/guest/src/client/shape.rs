//! The traffic that a call may have, derived from its request: the frames that its guest may send,
//! and how much.

use super::answer::ReplyKind;
use super::lanes::Lane;
use crate::protocol::{CHANNEL_MAIN, CHANNEL_STDERR, CHANNEL_STDOUT, Request};

/// The number of channels of a call.
pub(super) const CHANNELS: usize = 3;

/// The announcement that a guest makes before it sends data and its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Announcement {
    /// Nothing.
    Never,
    /// `Event::Started`, always.
    Started,
    /// `Event::Opened`, always.
    Opened,
    /// `Event::Opened` or `Event::Passed`, always one of them.
    OpenedOrPassed,
    /// `Event::Log`, always.
    Log,
    /// `Event::Kept`, always.
    Kept,
}

/// The meaning of one frame of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Bytes of a stream; where a frame ends means nothing.
    Stream,
    /// A message of its own.
    Whole,
    /// Two offsets of eight bytes, then at least one byte.
    Prefixed,
}

/// The traffic that a call may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallShape {
    /// The reply.
    pub(super) answer: ReplyKind,
    /// The announcement that comes first.
    pub(super) announce: Announcement,
    /// The channels on which the guest may send.
    pub(super) channels: &'static [u8],
    /// The meaning of a frame of data.
    pub(super) framing: Framing,
    /// The most bytes of data that the guest may send in all; `None` for no end.
    pub(super) max_data: Option<u64>,
    /// The client sends on the main channel.
    pub(super) input: bool,
    /// The limit on calls at a time that it falls under.
    pub(super) lane: Lane,
}

impl CallShape {
    const fn new(answer: ReplyKind) -> Self {
        Self {
            answer,
            announce: Announcement::Never,
            channels: &[],
            framing: Framing::Stream,
            max_data: None,
            input: false,
            lane: Lane::Any,
        }
    }

    const fn lane(self, lane: Lane) -> Self {
        Self { lane, ..self }
    }

    const fn receives(self, announce: Announcement, channels: &'static [u8], framing: Framing) -> Self {
        Self { announce, channels, framing, ..self }
    }

    /// The shape of the call that this request begins.
    pub(super) fn of(request: &Request) -> Self {
        const MAIN: &[u8] = &[CHANNEL_MAIN];
        const OUTPUTS: &[u8] = &[CHANNEL_STDOUT, CHANNEL_STDERR];
        let done = Self::new(ReplyKind::Done);
        match request {
            Request::Ping => done.lane(Lane::Ping),
            Request::Adopt | Request::Shutdown | Request::Kill(..) | Request::SetDeadlines(..) => done,
            Request::Exec(exec) => {
                let channels = if exec.terminal.is_some() { &OUTPUTS[..1] } else { OUTPUTS };
                let shape =
                    Self::new(ReplyKind::Exited).receives(Announcement::Started, channels, Framing::Stream);
                Self { input: exec.stdin, ..shape }
            }
            Request::Start(_) | Request::StartOn(..) | Request::Wait(..) => Self::new(ReplyKind::Process),
            Request::Processes => Self::new(ReplyKind::Processes),
            Request::Logs(_) => done.receives(Announcement::Log, OUTPUTS, Framing::Prefixed),
            Request::Read(_, _, limit) => {
                let shape = done.receives(Announcement::Opened, MAIN, Framing::Stream).lane(Lane::Out);
                Self { max_data: *limit, ..shape }
            }
            Request::ReadPassed(_, _, limit) => {
                let shape =
                    done.receives(Announcement::OpenedOrPassed, MAIN, Framing::Stream).lane(Lane::Out);
                Self { max_data: *limit, ..shape }
            }
            Request::TarOut(_) => done.receives(Announcement::Opened, MAIN, Framing::Stream).lane(Lane::Out),
            Request::Write(..) | Request::TarIn(..) => {
                Self { input: true, ..Self::new(ReplyKind::Size) }.lane(Lane::In)
            }
            Request::WritePassed(..) => {
                let shape = Self::new(ReplyKind::Size).lane(Lane::In);
                Self { input: true, announce: Announcement::OpenedOrPassed, ..shape }
            }
            Request::Stat(_) => Self::new(ReplyKind::Stat).lane(Lane::Short),
            Request::List(_) => done.receives(Announcement::Opened, MAIN, Framing::Whole).lane(Lane::Short),
            Request::Exists(_) => Self::new(ReplyKind::Bool).lane(Lane::Short),
            Request::CreateDir(..) | Request::Remove(..) | Request::Rename(..) => done.lane(Lane::Short),
            Request::Glob(_, _, _, most) => Self::new(ReplyKind::Glob(*most)).lane(Lane::Short),
            Request::Grep { max_matches, .. } => Self::new(ReplyKind::Grep(*max_matches)).lane(Lane::Short),
            Request::Dial(_) => {
                Self { input: true, ..done.receives(Announcement::Opened, MAIN, Framing::Stream) }
            }
            Request::Keep(..) | Request::Attach(..) => {
                Self::new(ReplyKind::Kept).receives(Announcement::Kept, OUTPUTS, Framing::Prefixed)
            }
            Request::KeptInput(_) => Self { input: true, ..done },
            Request::KeptControl(..) | Request::Forget(_) | Request::ProcessInput(..) => done,
            Request::KeptEnd(_) => Self::new(ReplyKind::Kept),
            Request::KeptCommands => Self::new(ReplyKind::KeptList),
            Request::Usage => Self::new(ReplyKind::Usage),
            Request::LiveProcesses => Self::new(ReplyKind::LiveProcesses),
            // It may wait as long as it likes, and the guest bounds how many there are.
            Request::Watch(..) => done.receives(Announcement::Opened, MAIN, Framing::Whole),
            Request::Hold => {
                Self { input: true, ..done.receives(Announcement::Opened, &[], Framing::Stream) }
            }
        }
    }
}
