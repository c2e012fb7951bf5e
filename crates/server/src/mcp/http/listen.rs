//! Connections: as many at once as are bearable, none that takes its time over a header, and an end that lets answers
//! finish.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How many connections there may be at once; further ones wait in the system's queue.
const MAX_CONNECTIONS: usize = 512;
/// How long a connection may take to send the header of its next request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);
/// How much of a request's header is held, in bytes.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// How long answers may take once the server is to stop.
const GRACE: Duration = Duration::from_secs(5);
/// How long to wait when the system has no more descriptors or memory for a connection.
const EXHAUSTED: Duration = Duration::from_millis(200);

/// Serves until `stop` is cancelled.
pub(super) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let (graceful, places) = (GracefulShutdown::new(), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            next = next => next,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = graceful.watch(connection(stream, router.clone()));
                tokio::spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%error, "a connection broke");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection can't be taken");
                sleep(EXHAUSTED).await;
            }
        }
    }
    drop(listener);
    if timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections are cut that did not end by themselves");
    }
}

fn connection(
    stream: TcpStream,
    router: Router,
) -> http1::Connection<TokioIo<TcpStream>, TowerToHyperService<Router>> {
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
}
