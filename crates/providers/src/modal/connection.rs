//! HTTP/2 connections to one server, plain or over TLS. Redirects are not followed: none is gRPC's.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use eyot::{Error, ErrorKind, Result};
use h2::client::{Builder, SendRequest};
use http::Uri;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::ServerName;

/// The longest wait for a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// The bytes of one answer that may wait for its reader. A reader that is slow holds up its own stream alone.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// The bytes of all answers that may wait; more than all streams together can have.
const CONNECTION_WINDOW_BYTES: u32 = (1 << 31) - 1;
/// The longest headers of an answer, in bytes.
const MAX_HEADER_BYTES: u32 = 64 << 10;
/// The calls that are under way on one connection before another is made; servers commonly allow 100.
const CALLS_PER_CONNECTION: usize = 90;
/// The time between two signs of life that a server is asked for.
const PING_EVERY: Duration = Duration::from_secs(20);
/// The wait for such a sign after which the connection counts as lost.
const PING_PATIENCE: Duration = Duration::from_secs(20);

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerAddress {
    pub scheme: &'static str,
    pub host: String,
    pub port: u16,
}

impl ServerAddress {
    /// Reads an address such as `https://host:port`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid("server_url", "must be `https://HOST` or `http://HOST`, with a port if need be")
        };
        let uri: Uri = text.trim_end_matches('/').parse().map_err(|_| wrong())?;
        let (scheme, usual) = match uri.scheme_str() {
            Some("https") => ("https", 443),
            Some("http") => ("http", 80),
            _ => return Err(wrong()),
        };
        let authority =
            uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(wrong)?;
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong());
        }
        Ok(Self { scheme, host: authority.host().to_owned(), port: uri.port_u16().unwrap_or(usual) })
    }

    /// Tells whether it is of this machine: a test's.
    pub fn is_local(&self) -> bool {
        matches!(&*self.host, "localhost" | "127.0.0.1" | "[::1]")
    }

    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }
}

/// The TLS configuration: the certificates that the system trusts.
pub(super) fn tls_config() -> Result<Arc<ClientConfig>> {
    let failed = |error| Error::new(ErrorKind::Internal, "prepare TLS").with_source(error);
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(failed)?;
    let mut config = builder.with_platform_verifier().map_err(failed)?.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

/// A connection, and the calls under way on it.
#[derive(Clone)]
struct Http2Connection {
    sender: SendRequest<Bytes>,
    calls: Arc<()>,
}

/// The right to make a call on a connection.
pub(super) struct CallSlot {
    pub sender: SendRequest<Bytes>,
    _call: Arc<()>,
}

/// The connections to one server, made as they are needed.
pub(super) struct Connections {
    pub address: ServerAddress,
    tls: Arc<ClientConfig>,
    open: Mutex<Vec<Http2Connection>>,
    /// Held while one is being made, so that calls that begin together share it.
    making: tokio::sync::Mutex<()>,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Connections {
    pub fn new(address: ServerAddress, tls: Arc<ClientConfig>) -> Self {
        Self { address, tls, open: Mutex::default(), making: tokio::sync::Mutex::default() }
    }

    /// Returns a connection that takes a call, and makes one if there is none.
    pub async fn slot(&self) -> Result<CallSlot, String> {
        loop {
            let Some(found) = self.find() else { break };
            if let Some(slot) = self.ready(found).await {
                return Ok(slot);
            }
        }
        let _turn = self.making.lock().await;
        if let Some(found) = self.find()
            && let Some(slot) = self.ready(found).await
        {
            return Ok(slot);
        }
        let made = tokio::time::timeout(CONNECT_PATIENCE, self.connect()).await;
        let sender = made.map_err(|_| format!("no connection within {} s", CONNECT_PATIENCE.as_secs()))??;
        let connection = Http2Connection { sender, calls: Arc::default() };
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(connection.clone());
        self.ready(connection).await.ok_or_else(|| "the connection was lost".to_owned())
    }

    fn find(&self) -> Option<Http2Connection> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // The list has a count of its own.
        let calls = |connection: &Http2Connection| Arc::strong_count(&connection.calls) - 1;
        let takes = |connection: &&Http2Connection| {
            calls(connection) < connection.sender.current_max_send_streams().min(CALLS_PER_CONNECTION)
        };
        open.iter().find(takes).cloned()
    }

    /// Waits until a connection takes a call. One that is lost is forgotten.
    async fn ready(&self, connection: Http2Connection) -> Option<CallSlot> {
        let Http2Connection { sender, calls } = connection;
        if let Ok(sender) = sender.ready().await {
            return Some(CallSlot { sender, _call: calls });
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|other| !Arc::ptr_eq(&other.calls, &calls));
        None
    }

    async fn connect(&self) -> Result<SendRequest<Bytes>, String> {
        let (host, port) = (self.address.bare_host(), self.address.port);
        let stream = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        if self.address.scheme == "http" {
            return handshake(stream).await;
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err("the server does not speak HTTP/2".to_owned());
        }
        handshake(stream).await
    }
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<SendRequest<Bytes>, String> {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(MAX_HEADER_BYTES)
        .enable_push(false);
    let (sender, mut connection) =
        builder.handshake::<_, Bytes>(stream).await.map_err(|error| error.to_string())?;
    let pings = connection.ping_pong();
    tokio::spawn(async move {
        let lost = async {
            match pings {
                Some(pings) => silence(pings).await,
                None => std::future::pending().await,
            }
        };
        // Dropping the connection fails every call on it.
        tokio::select! {
            ended = connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection to Modal has ended");
                }
            }
            () = lost => tracing::debug!("a connection to Modal gives no sign of life"),
        }
    });
    Ok(sender)
}

/// Asks for signs of life until none comes.
async fn silence(mut pings: h2::PingPong) {
    loop {
        tokio::time::sleep(PING_EVERY).await;
        let answered = tokio::time::timeout(PING_PATIENCE, pings.ping(h2::Ping::opaque())).await;
        if !matches!(answered, Ok(Ok(_))) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_the_usual_port() {
        let of = |text| ServerAddress::parse(text).map(|address| (address.scheme, address.authority()));
        assert_eq!(of("https://api.modal.com").unwrap(), ("https", "api.modal.com:443".to_owned()));
        assert_eq!(of("http://[::1]:5000/").unwrap(), ("http", "[::1]:5000".to_owned()));
        for wrong in
            ["api.modal.com", "ftp://x", "https://x/y", "https://key@x", "https://", "", "https://x?y=1"]
        {
            assert_eq!(of(wrong).unwrap_err().kind(), ErrorKind::Invalid, "{wrong}");
        }
    }
}
