//! WebSockets: one that the server ends is closed by a frame that says why.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::turns::Turn;

pub(super) type Sink = SplitSink<WebSocket, Message>;
pub(super) type Source = SplitStream<WebSocket>;

/// Why a socket is closed, and how long its client has to answer that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closing {
    code: u16,
    reason: &'static str,
    within: Duration,
}

impl Closing {
    /// All was said.
    pub const DONE: Self = Self { code: close_code::NORMAL, reason: "", within: LAST_WORDS };
    /// Another client has connected, or what it was connected to has been ended.
    pub const ELSEWHERE: Self =
        Self { code: close_code::AWAY, reason: "connected elsewhere", within: LAST_WORDS };
    /// The server stops.
    pub const STOPS: Self =
        Self { code: close_code::AWAY, reason: "the server stops", within: PARTING_WORDS };
    /// The same, where [`Closing::ELSEWHERE`] has that code.
    pub const RESTARTS: Self = Self { code: close_code::RESTART, ..Self::STOPS };
    const REVOKED: Self = Self {
        code: close_code::POLICY,
        reason: "the key was revoked, or the session ended",
        within: PARTING_WORDS,
    };

    /// Sends the frame, and waits for the client's.
    pub async fn close(self, sink: &mut Sink, source: &mut Source) {
        let Self { code, reason, within } = self;
        let closing = async {
            // A client that has gone need not be told.
            if sink.send(Message::Close(Some(CloseFrame { code, reason: reason.into() }))).await.is_ok() {
                // A connection that is dropped with something unread is reset, and what was sent last is lost with it.
                while let Some(Ok(_)) = source.next().await {}
            }
        };
        drop(timeout(within, closing).await);
    }
}

/// How long a client may take to read the end.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// How long it may take when nobody waits for it any more.
const PARTING_WORDS: Duration = Duration::from_secs(1);

/// Why a socket is to be closed on which `work` is done: that says so at its end, unless the client may not go on before, or
/// the server is to stop, for which there is a word of its own.
pub(super) async fn closing(
    turn: &Turn,
    (stop, word): (&CancellationToken, Closing),
    work: impl Future<Output = Closing>,
) -> Closing {
    tokio::select! {
        biased;
        () = stop.cancelled() => word,
        done = turn.during(work) => done.unwrap_or(Closing::REVOKED),
    }
}
