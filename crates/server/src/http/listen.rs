//! Connections: at most a fixed number at once, with time limits for headers and bodies, and a
//! shutdown that lets answers finish.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use prometheus_client::metrics::gauge::Gauge;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tower_http::timeout::TimeoutBody;

use super::holding::hold_until_sent;
use super::idle::{IdleConnections, TrackedConnection};
use super::limits::ServeLimits;
use super::linger::LingeringStream;
use super::peer::Peer;
use super::place::{ConnectionPlace, PlacedStream};
use super::tls::Certificate;
use super::watched::watched_by;

/// The smallest read buffer that the HTTP library accepts, in bytes.
const MIN_BUFFER_BYTES: usize = 8 << 10;
/// The time that connections have to end after they were cut.
const FAREWELL: Duration = Duration::from_secs(2);
/// The pause after the system had no more descriptors or memory for a connection.
const EXHAUSTED: Duration = Duration::from_millis(200);

/// A source of connections.
#[derive(Debug)]
pub enum Listener {
    /// A TCP port.
    Tcp(TcpListener),
    /// A TCP port on which TLS is spoken.
    Tls(TcpListener, Arc<Certificate>),
    /// A unix socket. Only root and the user that the server runs as may connect.
    Unix(UnixListener),
}

/// A connection that was accepted. Its TLS handshake is still to come.
enum AcceptedConnection {
    Plain(Either<TcpStream, UnixStream>, Peer),
    Tls(TcpStream, Arc<Certificate>, Peer),
}

/// A connection that is ready for requests.
type Stream = Either<Either<TcpStream, UnixStream>, TlsStream<TcpStream>>;

impl Listener {
    async fn accept(&self) -> io::Result<AcceptedConnection> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = tcp(listener).await?;
                Ok(AcceptedConnection::Plain(Either::Left(stream), peer))
            }
            Self::Tls(listener, certificate) => {
                let (stream, peer) = tcp(listener).await?;
                Ok(AcceptedConnection::Tls(stream, Arc::clone(certificate), peer))
            }
            Self::Unix(listener) => loop {
                let (stream, _) = listener.accept().await?;
                let peer = stream.peer_cred()?.uid();
                if peer == 0 || peer == rustix::process::geteuid().as_raw() {
                    return Ok(AcceptedConnection::Plain(Either::Right(stream), Peer::Socket));
                }
                tracing::warn!(uid = peer, "another user knocks at the socket");
            },
        }
    }
}

async fn tcp(listener: &TcpListener) -> io::Result<(TcpStream, Peer)> {
    let (stream, address) = listener.accept().await?;
    // An answer that is small goes out at once.
    stream.set_nodelay(true)?;
    Ok((stream, Peer::at(address.ip())))
}

impl AcceptedConnection {
    fn peer(&self) -> Peer {
        match self {
            Self::Plain(_, peer) | Self::Tls(_, _, peer) => *peer,
        }
    }

    fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(..))
    }

    /// Returns the stream of requests. With TLS this waits for the handshake, for no longer than
    /// `handshake_within`.
    async fn opened(self, handshake_within: Duration) -> io::Result<Stream> {
        Ok(match self {
            Self::Plain(stream, _) => Either::Left(stream),
            Self::Tls(stream, certificate, _) => {
                Either::Right(certificate.accept(stream, handshake_within).await?)
            }
        })
    }
}

/// Serves until `stop` is cancelled, and then until answers and commands have ended or their time
/// limit has passed. Then `cut` is cancelled, and the rest has [`FAREWELL`] to end. `open` counts
/// the connections.
pub(crate) async fn serve(
    listener: Listener,
    router: Router,
    limits: &ServeLimits,
    open: Gauge,
    stop: CancellationToken,
    cut: CancellationToken,
) {
    let max = limits.max_connections.clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
    let server = ListenerServer {
        builder: builder(limits),
        router,
        body_stall: Duration::from_millis(limits.body_stall_ms),
        handshake: Duration::from_millis(limits.tls_handshake_timeout_ms),
        idle: Arc::default(),
        places: Arc::new(Semaphore::new(max)),
        open,
        stop: stop.clone(),
        cut: cut.clone(),
    };
    tokio::select! {
        () = server.accept(&listener) => {}
        () = stop.cancelled() => {}
    }
    drop(listener);
    // Who has all the places knows that nobody else has one.
    let all = || server.places.acquire_many(u32::try_from(max).unwrap_or(u32::MAX));
    if timeout(Duration::from_millis(limits.drain_timeout_ms), all()).await.is_ok() {
        return;
    }
    tracing::warn!("connections are cut that did not end by themselves");
    cut.cancel();
    if timeout(FAREWELL, all()).await.is_err() {
        tracing::warn!("some connections have ended without a word");
    }
}

fn builder(limits: &ServeLimits) -> http1::Builder {
    // Not the builder that finds the version out by itself: it waits for the first bytes without a timeout.
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits.header_timeout_ms))
        .max_header_size(limits.max_header_bytes)
        .max_buf_size(limits.max_header_bytes.max(MIN_BUFFER_BYTES));
    builder
}

/// State that the connections of a listener share.
struct ListenerServer {
    builder: http1::Builder,
    router: Router,
    body_stall: Duration,
    handshake: Duration,
    idle: Arc<IdleConnections>,
    places: Arc<Semaphore>,
    open: Gauge,
    /// Answers that are under way may finish; new requests are not taken.
    stop: CancellationToken,
    /// Answers that are under way end now.
    cut: CancellationToken,
}

impl ListenerServer {
    async fn accept(&self, listener: &Listener) {
        loop {
            match listener.accept().await {
                Ok(accepted) => {
                    let place = ConnectionPlace::new(self.place().await, self.open.clone());
                    self.begin(accepted, place);
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection can't be taken");
                    self.idle.shed();
                    sleep(EXHAUSTED).await;
                }
            }
        }
    }

    /// Takes a place for a connection, if need be by closing one that is idle.
    async fn place(&self) -> OwnedSemaphorePermit {
        loop {
            if let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() {
                return permit;
            }
            let next = Arc::clone(&self.places).acquire_owned();
            if self.idle.shed() {
                // It may have had a request on its way, and then it ends later.
                if let Ok(Ok(permit)) = timeout(EXHAUSTED, next).await {
                    return permit;
                }
            } else {
                tokio::select! {
                    Ok(permit) = next => return permit,
                    () = self.idle.one_more() => {}
                }
            }
        }
    }

    /// Answers the requests of this connection, on a new task.
    fn begin(&self, accepted: AcceptedConnection, place: ConnectionPlace) {
        let (stop, end, cut) = (self.stop.clone(), self.stop.child_token(), self.cut.clone());
        // Without a request yet: one that is slow to shake hands gives its place up like any other.
        let member = self.idle.enter(end.clone());
        // Before the first request there is nothing to wait for.
        let body_has_ended = Arc::new(AtomicBool::new(true));
        let service = self.service(&accepted, member.clone(), Arc::clone(&body_has_ended));
        let (builder, handshake) = (self.builder.clone(), self.handshake);
        tokio::spawn(async move {
            let opened = tokio::select! {
                opened = accepted.opened(handshake) => opened,
                () = end.cancelled() => return,
            };
            let stream = match opened {
                Ok(stream) => LingeringStream::new(PlacedStream { stream, _place: place }, body_has_ended),
                Err(error) => return tracing::debug!(%error, "a connection came to nothing"),
            };
            let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                // Told to, it ends with the answer that is under way; at once without one that matters.
                () = end.cancelled() => if member.may_be_cut(stop.is_cancelled()) { Ok(()) } else {
                        connection.as_mut().graceful_shutdown();
                        tokio::select! {
                            ended = connection => ended,
                            () = cut.cancelled() => Ok(()),
                        }
                    },
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection broke");
            }
        });
    }

    /// Makes the service that answers the requests of a connection.
    fn service(
        &self,
        accepted: &AcceptedConnection,
        member: TrackedConnection,
        body_has_ended: Arc<AtomicBool>,
    ) -> impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send> + Send + use<>
    {
        let (peer, is_tls, stall) = (accepted.peer(), accepted.is_tls(), self.body_stall);
        let router = TowerToHyperService::new(self.router.clone());
        service_fn(move |mut request: Request<Incoming>| {
            let under_way = member.begin();
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(under_way.connection_handle());
            if is_tls {
                // As a proxy would say it that took the TLS off.
                request.headers_mut().insert("x-forwarded-proto", HeaderValue::from_static("https"));
            }
            let request =
                request.map(|body| watched_by(Body::new(TimeoutBody::new(stall, body)), &body_has_ended));
            let answer = router.call(request);
            async move { answer.await.map(|answer| hold_until_sent(answer, under_way)) }
        })
    }
}
