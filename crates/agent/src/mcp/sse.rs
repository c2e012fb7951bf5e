//! The older transport: the server's messages are events of one long answer. The first event names the address for the
//! client's messages.

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::Url;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use sse_stream::Sse;

use super::events::EventStream;
use super::failure::HttpFailure;
use super::http::{JSON, McpHttpClient};
use crate::http::shown_url;

/// The time limit for sending a message. The reply comes by the stream, so this does not limit a call.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of the address for messages.
const MAX_ENDPOINT_BYTES: usize = 8 << 10;

/// An open stream and the address for messages.
pub(super) struct SseTransport {
    client: McpHttpClient,
    events: EventStream,
    endpoint: Url,
}

impl SseTransport {
    /// Opens the stream and waits for the address. The caller limits the time.
    pub(super) async fn connect(client: McpHttpClient) -> Result<Self, HttpFailure> {
        let mut events = client.open_events().await?;
        let endpoint = endpoint(&client, &mut events).await.map_err(|failure| client.note(failure))?;
        Ok(Self { client, events, endpoint })
    }

    /// Returns the message of an event, or `None` if events of this kind have none. A broken message is an error.
    fn message(event: Sse) -> Result<Option<ServerJsonRpcMessage>, HttpFailure> {
        if event.event.is_some_and(|kind| kind != "message") {
            return Ok(None);
        }
        let data = event.data.unwrap_or_default();
        if data.trim().is_empty() {
            return Ok(None);
        }
        match serde_json::from_str(&data) {
            Ok(message) => Ok(Some(message)),
            // JSON that this version of the protocol does not know. Newer servers may send it.
            Err(error) if error.is_data() => {
                tracing::debug!("an MCP server sent a message of an unknown kind");
                Ok(None)
            }
            Err(_) => Err(HttpFailure::Garbage),
        }
    }

    async fn next(&mut self) -> Result<ServerJsonRpcMessage, HttpFailure> {
        loop {
            let event = self.events.next().await.ok_or(HttpFailure::Ended)?;
            if let Some(message) = Self::message(event.map_err(|error| HttpFailure::of_events(&error))?)? {
                return Ok(message);
            }
        }
    }
}

/// Reads events up to the one that names the address for messages.
async fn endpoint(client: &McpHttpClient, events: &mut EventStream) -> Result<Url, HttpFailure> {
    while let Some(event) = events.next().await {
        let event = event.map_err(|error| HttpFailure::of_events(&error))?;
        if event.event.as_deref() != Some("endpoint") {
            continue;
        }
        let named = event.data.unwrap_or_default();
        if named.len() > MAX_ENDPOINT_BYTES {
            return Err(HttpFailure::Garbage);
        }
        let url = client.url().join(named.trim()).map_err(|_| HttpFailure::Garbage)?;
        // The headers are sent there too, and another server must not get them.
        if url.origin() != client.url().origin() {
            return Err(HttpFailure::ForeignEndpoint(shown_url(&url)));
        }
        return Ok(url);
    }
    Err(HttpFailure::Ended)
}

impl Transport<RoleClient> for SseTransport {
    type Error = HttpFailure;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), HttpFailure>> + Send + 'static {
        let (client, endpoint) = (self.client.clone(), self.endpoint.clone());
        let answering = client.answering(&message);
        async move {
            let _answering = answering;
            let json = serde_json::to_vec(&message).map_err(|_| HttpFailure::Garbage)?;
            let response = client.send(client.message(endpoint, JSON, json).timeout(SEND_TIMEOUT)).await?;
            if response.status().is_success() {
                return Ok(());
            }
            let failure = client.refusal(response).await.0;
            // The server no longer knows this stream, even if the stream stays open.
            if matches!(failure, HttpFailure::Refused { status: 400 | 404 | 410, .. }) {
                client.forget_session();
            }
            Err(failure)
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.next().await {
            Ok(message) => Some(message),
            Err(failure) => {
                self.client.note(failure);
                None
            }
        }
    }

    async fn close(&mut self) -> Result<(), HttpFailure> {
        self.events = futures_util::stream::empty().boxed();
        Ok(())
    }
}
