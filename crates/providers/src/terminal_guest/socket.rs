//! A vendor's terminal as a WebSocket.

use eyot::Result;
use reqwest::header::{CONNECTION, HeaderValue, UPGRADE};
use reqwest::{RequestBuilder, Response, Upgraded};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::e2b::vendor::AnswerSource;

/// The largest message that is taken, in bytes. A terminal may keep 256 KiB of output for who comes late.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// A terminal, on which a program in the sandbox has the other end.
pub(crate) type TerminalSocket = WebSocketStream<Upgraded>;

/// Makes a request for a WebSocket of one. Returns it with the text that the answer must prove to have read.
pub(crate) fn websocket_request(request: RequestBuilder) -> (RequestBuilder, String) {
    let key = generate_key();
    let request = request
        .header(CONNECTION, HeaderValue::from_static("Upgrade"))
        .header(UPGRADE, HeaderValue::from_static("websocket"))
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", &key);
    (request, key)
}

/// Makes a WebSocket of an answer that agrees to it.
pub(crate) async fn upgraded(response: Response, key: &str, source: AnswerSource) -> Result<TerminalSocket> {
    let accepted = response.headers().get("Sec-WebSocket-Accept").and_then(|value| value.to_str().ok());
    if accepted != Some(derive_accept_key(key.as_bytes()).as_str()) {
        return Err(source.unreadable().with_source("it is no WebSocket's"));
    }
    let upgraded = response.upgrade().await.map_err(|error| source.unreachable(error))?;
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(MAX_MESSAGE_BYTES);
    config.max_frame_size = Some(MAX_MESSAGE_BYTES);
    Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
}
