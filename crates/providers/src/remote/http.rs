//! Requests to a server, and the meaning of its refusals.

use std::sync::Arc;

use bytes::Bytes;
use eyot::wire::{LIFE, Problem, SPEAKS_TLS};
use eyot::{Error, ErrorKind, Result, SandboxOperationUnsupported};
use futures_util::{Stream, StreamExt};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error as SocketError;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, header};

use super::options::{RemoteAddress, RemoteOptions};
use super::tls;
use crate::root_cause::{is_forbidden, root_cause};

/// The query that asks for the values of variables: a handle on this side has the whole spec.
pub(super) const SHOW_ENV: [(&str, &str); 1] = [("show_env", "true")];

/// The sandbox that a request is about, and its life.
#[derive(Debug, Clone)]
pub(super) struct TargetSandbox {
    /// The sandbox's id.
    pub id: String,
    /// The sandbox's name, for errors.
    pub name: String,
    /// The life that the handle belongs to.
    pub life: String,
}

/// A connection point to a server.
#[derive(Clone)]
pub(super) struct ServerClient {
    options: RemoteOptions,
    client: reqwest::Client,
    base: Url,
    /// The TLS configuration of WebSockets to `https`.
    tls: Option<Arc<ClientConfig>>,
}

/// Any stream that can carry a WebSocket.
pub(super) trait SocketStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> SocketStream for T {}

pub(super) type Socket = WebSocketStream<Box<dyn SocketStream>>;

impl ServerClient {
    pub fn new(options: RemoteOptions) -> Result<Self> {
        let builder = reqwest::Client::builder().no_proxy();
        let (builder, base) = match &options.address {
            RemoteAddress::Http(url) => (builder, url.clone()),
            // The name is for the header alone.
            RemoteAddress::Unix(path) => (builder.unix_socket(path.as_path()), localhost()?),
        };
        let tls = match base.scheme() {
            "https" => Some(tls::config(options.ca_certificate.as_deref())?),
            _ => None,
        };
        let builder = match &tls {
            Some(tls) => builder.tls_backend_preconfigured(ClientConfig::clone(tls)),
            None => builder,
        };
        let client = builder.build().map_err(|error| {
            Error::new(ErrorKind::Internal, "prepare requests to the server").with_source(error)
        })?;
        Ok(Self { options, client, base, tls })
    }

    /// Returns the pool that requests name.
    pub fn pool(&self) -> Option<&str> {
        self.options.pool.as_deref()
    }

    /// Makes a URL below the server's address. Escapes the segments.
    pub fn url(&self, segments: &[&str], query: &[(&str, &str)]) -> Result<Url> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| Error::new(ErrorKind::Internal, "the server's address has no paths"))?
            .clear()
            .extend(segments);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    /// Makes a request with the key.
    pub fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.client.request(method, url);
        match &self.options.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// Sends a request that is not about a sandbox with a handle.
    pub async fn ask(&self, request: RequestBuilder) -> Result<Response> {
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        if response.status().is_success() { Ok(response) } else { Err(whole(refusal(response).await)) }
    }

    /// Sends a request about the sandbox of a handle.
    pub async fn ask_about(&self, target: &TargetSandbox, request: RequestBuilder) -> Result<Response> {
        let request = request.header(LIFE, &target.life);
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(meant(target, refusal(response).await))
        }
    }

    /// Reads the JSON of an answer.
    pub async fn json<T: DeserializeOwned>(&self, response: Response) -> Result<T> {
        let bytes = response.bytes().await.map_err(|error| self.unreachable(error))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::new(ErrorKind::Unavailable, "the server's answer can't be read").with_source(error)
        })
    }

    /// Streams the bytes of an answer.
    pub fn bytes(&self, response: Response) -> impl Stream<Item = Result<Bytes>> + Send + 'static {
        response.bytes_stream().map(|bytes| {
            bytes.map_err(|error| {
                Error::new(ErrorKind::Unavailable, "the server's answer broke off").with_source(error)
            })
        })
    }

    /// Opens a WebSocket.
    pub async fn socket(&self, target: &TargetSandbox, url: Url) -> Result<Socket> {
        let mut request = url.as_str().replacen("http", "ws", 1).into_client_request().map_err(|error| {
            Error::new(ErrorKind::Internal, "prepare a request to the server").with_source(error)
        })?;
        let headers = request.headers_mut();
        let value = |text: &str| {
            HeaderValue::from_str(text).map_err(|_| Error::invalid("key", "has what no header can carry"))
        };
        headers.insert(HeaderName::from_static(LIFE), value(&target.life)?);
        if let Some(key) = &self.options.key {
            headers.insert(header::AUTHORIZATION, value(&format!("Bearer {key}"))?);
        }
        let stream = self.connect().await?;
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, _)) => Ok(socket),
            Err(SocketError::Http(response)) => {
                let body = response.body().as_deref().unwrap_or_default();
                Err(meant(target, problem(response.status().as_u16(), body)))
            }
            Err(error) => Err(self.unreachable(error)),
        }
    }

    async fn connect(&self) -> Result<Box<dyn SocketStream>> {
        match &self.options.address {
            RemoteAddress::Unix(path) => {
                Ok(Box::new(UnixStream::connect(path).await.map_err(|error| self.unreachable(error))?))
            }
            RemoteAddress::Http(url) => {
                let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
                let address = (host, url.port_or_known_default().unwrap_or(80));
                let stream = TcpStream::connect(address).await.map_err(|error| self.unreachable(error))?;
                stream.set_nodelay(true).map_err(|error| self.unreachable(error))?;
                let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
                let name = ServerName::try_from(host.to_owned()).map_err(|error| self.unreachable(error))?;
                let connector = TlsConnector::from(Arc::clone(tls));
                let stream =
                    connector.connect(name, stream).await.map_err(|error| self.unreachable(error))?;
                Ok(Box::new(stream))
            }
        }
    }

    fn unreachable(&self, error: impl std::error::Error + Send + Sync + 'static) -> Error {
        let place = match &self.options.address {
            RemoteAddress::Http(url) => url.as_str().trim_end_matches('/').to_owned(),
            RemoteAddress::Unix(path) => format!("unix:{}", path.display()),
        };
        let (sentence, hint) = match tls::failure(&error) {
            Some(tokio_rustls::rustls::Error::InvalidMessage(_)) => (
                format!("the server at {place} does not answer as one with TLS does"),
                "does it serve without? Then its address begins with http://",
            ),
            Some(reason) => (
                format!("the server at {place} can't be trusted: {}", tls::distrust(reason)),
                "EYOT_CA_CERT names a PEM file with the certificates that the server's may come from",
            ),
            None => {
                let is_others =
                    matches!(&self.options.address, RemoteAddress::Unix(_)) && is_forbidden(&error);
                let hint = if is_others {
                    "the socket is another user's: only that user and root may use it, unless its mode says otherwise"
                } else {
                    "is the address right? `eyot serve` starts a server"
                };
                (format!("the server at {place} does not answer: {}", root_cause(&error)), hint)
            }
        };
        Error::new(ErrorKind::Unavailable, sentence).with_hint(hint).with_source(error)
    }
}

/// The most bytes that are shown of a text that is no problem.
const MAX_SENTENCE_BYTES: usize = 200;

fn localhost() -> Result<Url> {
    Url::parse("http://localhost/")
        .map_err(|error| Error::new(ErrorKind::Internal, "name this host").with_source(error))
}

async fn refusal(response: Response) -> Problem {
    let status = response.status();
    let body = response.bytes().await.unwrap_or_default();
    problem(status.as_u16(), &body)
}

/// Reads the problem in a body. A body that is none came from a proxy in between.
fn problem(status: u16, body: &[u8]) -> Problem {
    serde_json::from_slice(body).unwrap_or_else(|_| {
        let kind = match status {
            401 | 403 => ErrorKind::Permission,
            404 => ErrorKind::NotFound,
            _ => ErrorKind::Unavailable,
        };
        let title = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let detail = format!("the server answered {status} {}{}", title.unwrap_or_default(), sentence(body));
        Problem {
            problem_type: "about:blank".to_owned(),
            title: title.unwrap_or_default().to_owned(),
            status,
            reason: detail.clone(),
            kind: kind.to_string(),
            hint: (!detail.contains(SPEAKS_TLS))
                .then(|| "is this Eyot's server, or what stands before it?".to_owned()),
            detail,
            field: None,
            sleeping: false,
            dead: false,
            sandbox: None,
            no_sandbox: false,
            unsupported: None,
        }
    })
}

/// Returns the first line of a text that a server or a proxy sent instead of a problem.
fn sentence(body: &[u8]) -> String {
    let text = std::str::from_utf8(body).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default().trim();
    let is_shown = !line.is_empty() && !line.starts_with('<') && !line.contains(char::is_control);
    if is_shown {
        format!(": {}", &line[..line.floor_char_boundary(MAX_SENTENCE_BYTES)])
    } else {
        String::new()
    }
}

/// Makes an error with the problem's full sentence.
pub(super) fn whole(problem: Problem) -> Error {
    if problem.sleeping {
        let sandbox = problem.sandbox.clone().unwrap_or_default();
        return asleep(&problem, sandbox);
    }
    let detail = problem.detail.clone();
    of_kind(problem, detail)
}

/// Makes the error of a call on a sandbox. Its handle adds the operation to the sentence.
pub(super) fn meant(target: &TargetSandbox, problem: Problem) -> Error {
    match () {
        () if problem.no_sandbox => Error::destroyed(&target.name),
        () if problem.sleeping => asleep(&problem, &target.name),
        () => {
            let reason = problem.reason.clone();
            of_kind(problem, reason)
        }
    }
}

fn asleep(problem: &Problem, sandbox: impl std::fmt::Display) -> Error {
    if problem.dead { Error::dead(sandbox) } else { Error::sleeping(sandbox) }
}

fn of_kind(problem: Problem, sentence: String) -> Error {
    if let Some(unsupported) = problem.unsupported {
        let options: Vec<&str> = unsupported.options.iter().map(String::as_str).collect();
        return SandboxOperationUnsupported::new(&unsupported.operation, &unsupported.provider, &options)
            .into();
    }
    let kind = ErrorKind::from_name(&problem.kind).unwrap_or(ErrorKind::Unavailable);
    let error = Error::new(kind, sentence);
    problem.hint.into_iter().fold(error, Error::with_hint)
}
