//! Closes WebSockets with a frame that gives the reason.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::request::Parts;
use eyot::{Error, ErrorKind};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::turns::Turn;
use crate::problem::Refusal;

pub(super) type Sink = SplitSink<WebSocket, Message>;
pub(super) type Source = SplitStream<WebSocket>;

/// The request of a client that wants a WebSocket.
pub(super) struct Upgrade(WebSocketUpgrade);

impl Upgrade {
    /// Returns it for messages that have so many bytes at most.
    pub fn of_messages(self, max_bytes: usize) -> WebSocketUpgrade {
        self.0.max_message_size(max_bytes).max_frame_size(max_bytes)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        WebSocketUpgrade::from_request_parts(parts, state).await.map(Self).map_err(|rejection| {
            let message = "this path is a WebSocket, and the request asks for none";
            let hint = "connect with ws:// or wss://: https://www.rfc-editor.org/rfc/rfc6455";
            Refusal::with_status(Error::new(ErrorKind::Invalid, message).with_hint(hint), rejection.status())
        })
    }
}

/// The reason for closing a socket, and the time that its client has to answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closing {
    code: u16,
    reason: &'static str,
    within: Duration,
}

impl Closing {
    /// The exchange is complete.
    pub const DONE: Self = Self { code: close_code::NORMAL, reason: "", within: LAST_WORDS };
    /// Another client has connected, or the terminal or command behind the socket was ended.
    pub const ELSEWHERE: Self =
        Self { code: close_code::AWAY, reason: "connected elsewhere", within: LAST_WORDS };
    /// The server stops.
    pub const STOPS: Self =
        Self { code: close_code::AWAY, reason: "the server stops", within: PARTING_WORDS };
    /// The server stops, for sockets on which `AWAY` already stands for [`Closing::ELSEWHERE`].
    pub const RESTARTS: Self = Self { code: close_code::RESTART, ..Self::STOPS };
    const REVOKED: Self = Self {
        code: close_code::POLICY,
        reason: "the key was revoked, or the session ended",
        within: PARTING_WORDS,
    };

    /// Sends the close frame, and waits for the client's.
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

/// The time that a client has to read what was sent last.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// The same, when the server stops or the key was revoked.
const PARTING_WORDS: Duration = Duration::from_secs(1);

/// Does `work` on a socket and returns the reason to close it: the one that `work` ends with,
/// [`Closing::REVOKED`] if the client loses its right before, or `word` if the server stops.
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
