//! The link to one server. If its session is lost, the link opens a new one, until the link is closed.

use std::fmt;
use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, Tool};
use rmcp::service::{ClientInitializeError, Peer, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::failure::{HttpFailure, MAX_MESSAGE_BYTES};
use super::http::McpHttpClient;
use super::listing::{self, ListingFailure};
use super::options::{McpServerOptions, McpTransport};
use super::progress::McpClientHandler;
use super::secrets::{ConnectionSecrets, checked_headers};
use super::sse::SseTransport;
use super::unanswered;
use crate::http::shown_url;

/// The longest wait for the server to delete a session when the link is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(8);
/// The longest probe of whether a server speaks the older transport instead of streamable HTTP.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest wait between two attempts to reopen the stream for notifications.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// The link to one server, shared by a connection and its tools.
pub(super) struct McpLink {
    server: String,
    url: Url,
    headers: HeaderMap,
    secrets: ConnectionSecrets,
    transport: McpTransport,
    handler: McpClientHandler,
    connect_timeout: Duration,
    call_timeout: Duration,
    closed: CancellationToken,
    session: Mutex<Option<LiveSession>>,
}

/// A session with the server. Dropping it ends everything that waits for the server.
struct LiveSession {
    running: RunningService<RoleClient, McpClientHandler>,
    http: McpHttpClient,
    _stop: DropGuard,
}

impl LiveSession {
    fn is_usable(&self) -> bool {
        !self.running.is_transport_closed() && !self.http.is_forgotten()
    }
}

/// The reason for a missing session.
enum SessionFailure {
    Http(HttpFailure),
    Refused(String),
}

impl McpLink {
    /// Creates a link. Nothing is sent yet.
    pub(super) fn new(server: &str, options: &McpServerOptions) -> Result<Self> {
        let url = options.address()?;
        let identity = Implementation::new(options.client_name.clone(), options.client_version.clone());
        Ok(Self {
            server: server.to_owned(),
            headers: checked_headers(&options.headers)?,
            secrets: ConnectionSecrets::of(&url, &options.headers),
            url,
            transport: options.transport,
            handler: McpClientHandler::new(ClientConfig::new(ClientCapabilities::default(), identity)),
            connect_timeout: options.connect_timeout()?,
            call_timeout: options.call_timeout()?,
            closed: CancellationToken::new(),
            session: Mutex::new(None),
        })
    }

    /// Returns the server's name.
    pub(super) fn server(&self) -> &str {
        &self.server
    }

    /// Returns the values that nothing may show.
    pub(super) fn secrets(&self) -> &ConnectionSecrets {
        &self.secrets
    }

    /// Returns the handler for the server's messages.
    pub(super) fn handler(&self) -> &McpClientHandler {
        &self.handler
    }

    /// Returns the time limit of a call.
    pub(super) fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// Returns the token that is cancelled when the link is closed.
    pub(super) fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Opens a session and lists the server's tools.
    pub(super) async fn connect(&self) -> Result<Vec<Tool>> {
        let listed = timeout(self.connect_timeout, async {
            let (peer, http) = self.session().await?;
            listing::all_tools(&peer).await.map_err(|failure| self.listing_error(&http, &failure))
        });
        listed.await.unwrap_or_else(|_| Err(self.connect_timeout_error()))
    }

    /// Returns the session, and opens a new one if it was lost.
    pub(super) async fn session(&self) -> Result<(Peer<RoleClient>, McpHttpClient)> {
        let mut session = self.session.lock().await;
        if let Some(live) = session.as_ref().filter(|live| live.is_usable()) {
            return Ok((live.running.peer().clone(), live.http.clone()));
        }
        *session = None;
        let opening = timeout(self.connect_timeout, self.open());
        let opened = tokio::select! {
            () = self.closed.cancelled() => return Err(self.closed_error()),
            opened = opening => opened.unwrap_or_else(|_| Err(self.connect_timeout_error())),
        };
        let live = session.insert(opened?);
        Ok((live.running.peer().clone(), live.http.clone()))
    }

    async fn open(&self) -> Result<LiveSession> {
        let stop = CancellationToken::new();
        let guard = stop.clone().drop_guard();
        let (url, headers) = (self.url.clone(), self.headers.clone());
        let http = McpHttpClient::new(url, headers, self.secrets.clone(), stop)?;
        match self.serve(&http).await {
            Ok(running) => {
                // A failure before this point is not the reason for a later end.
                drop(http.take_failure());
                Ok(LiveSession { running, http, _stop: guard })
            }
            Err(failure) => Err(self.connect_error(&http, failure).await),
        }
    }

    async fn serve(
        &self,
        http: &McpHttpClient,
    ) -> Result<RunningService<RoleClient, McpClientHandler>, SessionFailure> {
        let (client, closed) = (self.handler.clone(), self.closed.child_token());
        let served = match self.transport {
            McpTransport::StreamableHttp => {
                let transport = StreamableHttpClientTransport::with_client(http.clone(), self.streamable());
                client.serve_with_ct(transport, closed).await
            }
            McpTransport::Sse => {
                let transport = SseTransport::connect(http.clone()).await.map_err(SessionFailure::Http)?;
                client.serve_with_ct(transport, closed).await
            }
        };
        served.map_err(|error| match (http.take_failure(), error) {
            (Some(failure), _) => SessionFailure::Http(failure),
            (None, ClientInitializeError::JsonRpcError(error)) => {
                SessionFailure::Refused(self.secrets.hide(&error.message))
            }
            _ => SessionFailure::Http(HttpFailure::Garbage),
        })
    }

    /// Returns the settings for rmcp's transport. They contain no secrets: the HTTP client adds those.
    fn streamable(&self) -> StreamableHttpClientTransportConfig {
        let mut config = StreamableHttpClientTransportConfig::with_uri(shown_url(&self.url))
            .max_sse_event_size(MAX_MESSAGE_BYTES)
            .reinit_on_expired_session(true);
        let mut backoff = ExponentialBackoff::default();
        backoff.max_delay = Some(MAX_RETRY_DELAY);
        config.retry_config = std::sync::Arc::new(backoff);
        config
    }

    /// Closes the link. This waits at most eight seconds for the server to delete the session. Waiting calls get an answer
    /// at once.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        let Some(mut live) = self.session.lock().await.take() else { return };
        if live.running.close_with_timeout(CLOSE_TIMEOUT).await.is_err() {
            tracing::warn!(server = self.server, "the session of an MCP server ended in a panic");
        }
    }

    /// Closes the link without waiting.
    pub(super) fn abandon(&self) {
        self.closed.cancel();
        if let Ok(mut session) = self.session.try_lock() {
            *session = None;
        }
    }

    /// Returns the error for a caller who uses a closed link.
    pub(super) fn closed_error(&self) -> Error {
        Error::new(ErrorKind::Cancelled, format!("the connection to MCP server `{}` is closed", self.server))
    }

    /// Returns the beginning of every error about connecting.
    fn connecting(&self) -> String {
        format!("connect to MCP server `{}` at `{}`", self.server, self.secrets.hide(&shown_url(&self.url)))
    }

    fn connect_timeout_error(&self) -> Error {
        let seconds = self.connect_timeout.as_secs_f64();
        let message = format!("{}: no answer within {seconds} s", self.connecting());
        let other = match self.transport {
            McpTransport::StreamableHttp => "sse",
            McpTransport::Sse => "http",
        };
        let hint = format!("is `url` right, and the transport? the other one is `transport: {other}`");
        Error::new(ErrorKind::Timeout, message).with_hint(hint)
    }

    async fn connect_error(&self, http: &McpHttpClient, failure: SessionFailure) -> Error {
        let failure = match failure {
            SessionFailure::Http(failure) => failure,
            SessionFailure::Refused(reason) => {
                let message = format!("{}: it refuses: {reason}", self.connecting());
                return Error::new(ErrorKind::Unavailable, message);
            }
        };
        let error = Error::new(failure.kind(), format!("{}: {failure}", self.connecting()));
        if self.transport == McpTransport::StreamableHttp
            && failure.may_be_other_transport()
            && speaks_sse(http).await
        {
            return error.with_hint("this server speaks the older transport; use `transport: sse`");
        }
        self.with_hint(error, &failure)
    }

    fn listing_error(&self, http: &McpHttpClient, failure: &ListingFailure) -> Error {
        let error = |kind, reason: &str| {
            let reason = self.secrets.hide(reason);
            Error::new(kind, format!("list the tools of MCP server `{}`: {reason}", self.server))
        };
        match failure {
            ListingFailure::Limit(limit) => error(ErrorKind::TooLarge, limit),
            ListingFailure::Service(service) => match unanswered::failure_of(http, service) {
                Some(failure) => self.with_hint(error(failure.kind(), &failure.to_string()), &failure),
                None => error(ErrorKind::Unavailable, &unanswered::reason(http, service)),
            },
        }
    }

    /// The error with what the caller can do about this failure.
    fn with_hint(&self, error: Error, failure: &HttpFailure) -> Error {
        match failure.hint(self.transport, self.headers.contains_key(AUTHORIZATION)) {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// Returns whether the server opens a stream as in the older transport.
async fn speaks_sse(http: &McpHttpClient) -> bool {
    timeout(PROBE_TIMEOUT, SseTransport::connect(http.clone())).await.is_ok_and(|connected| connected.is_ok())
}

impl fmt::Debug for McpLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpLink")
            .field("server", &self.server)
            .field("url", &shown_url(&self.url))
            .field("is_closed", &self.closed.is_cancelled())
            .finish_non_exhaustive()
    }
}
