//! Streamable HTTP: our HTTP client sends the requests of rmcp, so that errors have types and show no secrets.

use std::collections::HashMap;
use std::sync::Arc;

use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};

use super::events::EventStream;
use super::failure::HttpFailure;
use super::http::{AnswerType, EVENTS, JSON, McpHttpClient, answer_type};

const SESSION_ID: &str = "mcp-session-id";
const LAST_EVENT_ID: &str = "last-event-id";
/// The error code for an unknown session in servers that follow the SDK's example.
const BAD_SESSION: ErrorCode = ErrorCode(-32000);

type StreamableResult<T> = Result<T, StreamableHttpError<HttpFailure>>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// This client uses its own url and headers. Rmcp gets neither, so that it cannot log them.
impl StreamableHttpClient for McpHttpClient {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> StreamableResult<StreamableHttpPostResponse> {
        let _answering = self.answering(&message);
        let json = serde_json::to_vec(&message)?;
        let request = self.message(self.url().clone(), &format!("{JSON}, {EVENTS}"), json);
        let response = self.send(with_headers(request, headers, session_id.as_deref())).await;
        let response = response.map_err(StreamableHttpError::Client)?;
        let request_id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        if !response.status().is_success() {
            return refused(self, response, session_id.is_some(), request_id).await;
        }
        accepted(self, response, request_id.is_some()).await
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> StreamableResult<()> {
        let request = self.request(Method::DELETE, self.url().clone(), JSON);
        // Not with `send`, which fails after the stop. Rmcp allows five seconds for this.
        let answered = with_headers(request, headers, Some(&session_id)).send().await;
        answered.map_err(|error| StreamableHttpError::Client(HttpFailure::of_request(&error)))?;
        Ok(())
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> StreamableResult<EventStream> {
        self.stream_turn().await.map_err(StreamableHttpError::Client)?;
        let request = self.request(Method::GET, self.url().clone(), EVENTS);
        let mut request = with_headers(request, headers, session_id.as_deref());
        if let Some(id) = last_event_id {
            request = request.header(LAST_EVENT_ID, id);
        }
        let response = self.send(request).await.map_err(StreamableHttpError::Client)?;
        if response.status().is_client_error() {
            // A stream for notifications is optional, and servers without one refuse it in many ways.
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !response.status().is_success() || answer_type(&response) != AnswerType::Events {
            let status = response.status().as_u16();
            return Err(StreamableHttpError::Client(HttpFailure::Refused { status, said: None }));
        }
        Ok(self.events(response))
    }
}

fn with_headers(mut request: RequestBuilder, headers: Headers, session_id: Option<&str>) -> RequestBuilder {
    for (name, value) in headers {
        request = request.header(name, value);
    }
    match session_id {
        Some(id) => request.header(SESSION_ID, id),
        None => request,
    }
}

/// Returns the answer to a message that the server accepted.
async fn accepted(
    client: &McpHttpClient,
    response: Response,
    wants_reply: bool,
) -> StreamableResult<StreamableHttpPostResponse> {
    let status = response.status();
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    let session = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    match answer_type(&response) {
        AnswerType::Events => Ok(StreamableHttpPostResponse::Sse(client.events(response), session)),
        _ if !wants_reply => Ok(StreamableHttpPostResponse::Accepted),
        AnswerType::Json => {
            let body = client.body(response).await.map_err(StreamableHttpError::Client)?;
            match serde_json::from_str(&body) {
                Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
                Err(_) => Err(StreamableHttpError::Client(client.note(HttpFailure::Garbage))),
            }
        }
        AnswerType::Other(found) => {
            Err(StreamableHttpError::Client(client.note(HttpFailure::ForeignContent(found))))
        }
    }
}

/// Returns the answer to a message that the server refused: an expired session, an MCP error about this request, or a
/// failure.
async fn refused(
    client: &McpHttpClient,
    response: Response,
    has_session: bool,
    request_id: Option<RequestId>,
) -> StreamableResult<StreamableHttpPostResponse> {
    let status = response.status();
    if status == StatusCode::NOT_FOUND && has_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    let (failure, body) = client.refusal(response).await;
    let Ok(ServerJsonRpcMessage::Error(error)) = serde_json::from_str(&body) else {
        return Err(StreamableHttpError::Client(failure));
    };
    if status == StatusCode::BAD_REQUEST && has_session && error.error.code == BAD_SESSION {
        client.forget(&failure);
        return Err(StreamableHttpError::SessionExpired);
    }
    let is_about_access = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    // An error without an id, or about another request, would leave this request waiting.
    if !is_about_access && request_id.is_some() && error.id == request_id {
        client.forget(&failure);
        return Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None));
    }
    Err(StreamableHttpError::Client(failure))
}
