//! The HTTP proxy: tunnels by `CONNECT`, and requests for `http://` addresses. A request is taken
//! apart and written anew. The request line alone decides where it goes, and no header can say
//! otherwise.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use super::allowed_connection::AllowedConnection;
use super::gate::{ConnectError, Gate};
use super::limits;
use super::relay::relay;
use crate::decision::EgressProtocol;

type Body = BoxBody<Bytes, hyper::Error>;

const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
/// The headers that are between two neighbours and are not passed on.
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    PROXY_CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Serves one client, for as many requests as it sends.
pub(super) async fn serve(gate: Arc<Gate>, client: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    let service = service_fn(move |request| answer(Arc::clone(&gate), request));
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits::PATIENCE)
        .max_buf_size(limits::HEAD_BYTES)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(client), service)
        .with_upgrades()
        .await
        .map_err(io::Error::other)
}

async fn answer(gate: Arc<Gate>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let answered = match request.method() {
        &Method::CONNECT => tunnel(gate, request).await,
        _ => forward(gate, request).await,
    };
    Ok(answered.unwrap_or_else(|(status, text)| plain(status, text)))
}

/// A status and a text, for a request that is not carried out.
type Denial = (StatusCode, String);

fn bad(reason: &str) -> Denial {
    (StatusCode::BAD_REQUEST, format!("eyot: {reason}\n"))
}

async fn tunnel(gate: Arc<Gate>, request: Request<Incoming>) -> Result<Response<Body>, Denial> {
    let (host, port) =
        authority(request.uri(), None).ok_or_else(|| bad("CONNECT needs a host and a port"))?;
    let connected = gate.connect(EgressProtocol::Connect, &host, port).await;
    let (server, allowed) = connected.map_err(denial)?;
    tokio::spawn(async move {
        if let Ok(client) = hyper::upgrade::on(request).await {
            relay(&gate, &allowed, TokioIo::new(client), server).await;
        }
    });
    Ok(Response::new(empty()))
}

async fn forward(gate: Arc<Gate>, mut request: Request<Incoming>) -> Result<Response<Body>, Denial> {
    if request.uri().scheme_str().is_none() {
        return Err(bad("this is a proxy; use it by http_proxy and https_proxy"));
    }
    if request.uri().scheme_str() != Some("http") {
        return Err(bad("only http:// addresses are asked for like this; others by CONNECT"));
    }
    let (host, port) = authority(request.uri(), Some(80)).ok_or_else(|| bad("the address has no host"))?;
    rewrite(&mut request).ok_or_else(|| bad("the address is none"))?;
    let connected = gate.connect(EgressProtocol::Http, &host, port).await;
    let (server, allowed) = connected.map_err(denial)?;
    let mut response = send(gate, server, allowed, request).await.map_err(|error| {
        (StatusCode::BAD_GATEWAY, format!("eyot: {host}:{port} gave no answer that can be read: {error}\n"))
    })?;
    drop_hop_by_hop(response.headers_mut());
    Ok(response.map(BodyExt::boxed))
}

/// Sends one request on a connection of its own.
async fn send(
    gate: Arc<Gate>,
    server: TcpStream,
    allowed: AllowedConnection,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, hyper::Error> {
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .preserve_header_case(true)
        .max_buf_size(limits::HEAD_BYTES)
        .handshake(TokioIo::new(server))
        .await?;
    tokio::spawn(async move {
        tokio::select! {
            // The response reports a failure of the connection.
            ended = connection => drop(ended),
            () = gate.until_forbidden(&allowed) => {}
        }
    });
    sender.send_request(request).await
}

/// Rewrites the request as the server is to see it: the path alone, and the host that the proxy
/// really connects to.
fn rewrite(request: &mut Request<Incoming>) -> Option<()> {
    drop_hop_by_hop(request.headers_mut());
    let authority = request.uri().authority()?;
    let host = authority.as_str().rsplit('@').next().unwrap_or_default();
    let host = HeaderValue::from_str(host).ok()?;
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).parse::<Uri>().ok()?;
    request.headers_mut().insert(HOST, host);
    *request.uri_mut() = path;
    *request.version_mut() = hyper::Version::HTTP_11;
    Some(())
}

/// Drops the headers that are between neighbours, and those that `Connection` names.
fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    // A client that names a header which frames the message would have it read differently further
    // on.
    for name in named.iter().filter(|name| **name != HOST && **name != CONTENT_LENGTH).chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

fn authority(uri: &Uri, default_port: Option<u16>) -> Option<(String, u16)> {
    let authority = uri.authority()?;
    let port = match authority.port() {
        Some(port) => Some(port.as_str().parse::<u16>().ok()?),
        None => default_port,
    };
    let port = port.filter(|port| *port > 0)?;
    Some((authority.host().to_owned(), port)).filter(|(host, _)| !host.is_empty())
}

fn denial(failure: ConnectError) -> Denial {
    match failure {
        ConnectError::Refused(sentence) => (StatusCode::FORBIDDEN, sentence),
        ConnectError::Unresolved(sentence) => (StatusCode::BAD_GATEWAY, sentence),
        ConnectError::Unreachable(error) if error.kind() == io::ErrorKind::TimedOut => {
            (StatusCode::GATEWAY_TIMEOUT, "eyot: the host does not answer\n".to_owned())
        }
        ConnectError::Unreachable(error) => {
            let reason = error.to_string();
            let reason = reason.split(" (os error").next().unwrap_or_default();
            (StatusCode::BAD_GATEWAY, format!("eyot: connect: {}\n", reason.to_lowercase()))
        }
    }
}

/// Makes an answer of a text. The first line is its reason phrase, too, in place of "Forbidden": of a tunnel that is refused many programs show
/// nothing else.
fn plain(status: StatusCode, mut text: String) -> Response<Body> {
    let phrase = ReasonPhrase::try_from(text.lines().next().unwrap_or_default().as_bytes());
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
    // A text that a line of HTTP can't have stays the body alone.
    if let Ok(phrase) = phrase {
        response.extensions_mut().insert(phrase);
    }
    response
}

fn empty() -> Body {
    Full::default().map_err(|never| match never {}).boxed()
}
