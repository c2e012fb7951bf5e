//! A stream to the guest of a Pod: to the Pod's own address, or by port-forward through the API
//! server. The guest takes a token first, and answers with one byte.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use eyot_guest::protocol::container::{RELAY_TO_GUEST, RELAY_TO_MAKER};
use eyot_guest::protocol::pod::{GUEST_PORT, NOT_MADE, TOKEN_REFUSED};
use eyot_guest::protocol::silence::end_when_silent;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Portforwarder;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::net::TcpStream;

use super::cluster::Cluster;
use super::options::PodReach;
use super::refusal::{failed, is_transient};

/// The longest wait for a guest whose container has just begun to run: it listens a moment later.
pub(super) const NEW_PATIENCE: Duration = Duration::from_secs(20);
/// The longest wait for a guest that has listened before. Its node may be lost, which a cluster notices after 40 s or more.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The longest wait for one connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two tries. Nothing tells when a Pod's port is open.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The state of the guest that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuestRole {
    /// It waits for its configuration.
    Unconfigured,
    /// It has its configuration.
    Configured,
}

/// A stream to a guest.
pub(super) enum PodStream {
    /// To the Pod's address.
    Direct(TcpStream),
    /// Through the API server. The forwarder ends with the stream.
    Forwarded { stream: DuplexStream, forwarder: Portforwarder },
}

/// A Pod that runs.
#[derive(Debug, Clone)]
pub(super) struct PodPlace {
    pub pod_name: String,
    pub pod_uid: String,
    pub address: String,
}

/// Opens a stream to the guest, which takes this first message, and tries for so long.
pub(super) async fn open(
    cluster: &Cluster,
    place: &PodPlace,
    hello: &[u8],
    patience: Duration,
) -> Result<(PodStream, GuestRole)> {
    let gone = || {
        let message = format!("the sandbox's guest did not answer within {} s", patience.as_secs());
        Error::new(ErrorKind::Unavailable, message)
            .with_hint("its node may be lost, or this machine may not reach the cluster's network")
    };
    tokio::time::timeout(patience, attempts(cluster, place, hello)).await.unwrap_or_else(|_| Err(gone()))
}

async fn attempts(cluster: &Cluster, place: &PodPlace, hello: &[u8]) -> Result<(PodStream, GuestRole)> {
    let mut pause = PAUSE;
    loop {
        match attempt(cluster, place, hello).await? {
            Ok(opened) => return Ok(opened),
            Err(error) => tracing::trace!(%error, pod = place.pod_name, "a guest is not reached yet"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Tries once. The inner error is one that may be over soon.
async fn attempt(
    cluster: &Cluster,
    place: &PodPlace,
    hello: &[u8],
) -> Result<io::Result<(PodStream, GuestRole)>> {
    let mut stream = match connect(cluster, place).await? {
        Ok(stream) => stream,
        Err(error) => return Ok(Err(error)),
    };
    let greeted = async {
        stream.write_all(hello).await?;
        stream.flush().await?;
        stream.read_u8().await
    };
    let greeted = tokio::time::timeout(CONNECT_PATIENCE, greeted).await;
    let answer = match greeted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(error)),
    };
    match answer {
        RELAY_TO_MAKER => Ok(Ok((stream, GuestRole::Unconfigured))),
        RELAY_TO_GUEST => Ok(Ok((stream, GuestRole::Configured))),
        NOT_MADE => Err(Error::new(ErrorKind::Unavailable, "the sandbox is still being made")),
        TOKEN_REFUSED => Err(Error::new(ErrorKind::Permission, "the sandbox's guest refused the token")
            .with_hint(
                "its Pod has another key, or the clocks of this machine and the node differ by minutes",
            )),
        _ => Err(Error::new(
            ErrorKind::Unavailable,
            "another program answers at the port of the sandbox's guest",
        )),
    }
}

async fn connect(cluster: &Cluster, place: &PodPlace) -> Result<io::Result<PodStream>> {
    match cluster.options().reach {
        PodReach::PodAddress => Ok(direct(&place.address).await),
        PodReach::PortForward => forwarded(cluster, place).await,
    }
}

async fn direct(address: &str) -> io::Result<PodStream> {
    let connected = tokio::time::timeout(CONNECT_PATIENCE, TcpStream::connect((address, GUEST_PORT))).await;
    let stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    stream.set_nodelay(true)?;
    end_when_silent(&stream)?;
    Ok(PodStream::Direct(stream))
}

async fn forwarded(cluster: &Cluster, place: &PodPlace) -> Result<io::Result<PodStream>> {
    let api = cluster.api::<Pod>().await?;
    let opened =
        tokio::time::timeout(CONNECT_PATIENCE, api.portforward(&place.pod_name, &[GUEST_PORT])).await;
    let mut forwarder = match opened {
        Ok(Ok(forwarder)) => forwarder,
        Ok(Err(error)) if is_transient(&error) => return Ok(Err(io::Error::other(error))),
        Ok(Err(error)) => return Err(failed("forward a port of the sandbox's Pod", error)),
        Err(_) => return Ok(Err(io::ErrorKind::TimedOut.into())),
    };
    let missing = || io::Error::other("the API server forwards no port");
    Ok(forwarder
        .take_stream(GUEST_PORT)
        .ok_or_else(missing)
        .map(|stream| PodStream::Forwarded { stream, forwarder }))
}

impl Drop for PodStream {
    fn drop(&mut self) {
        if let Self::Forwarded { forwarder, .. } = self {
            forwarder.abort();
        }
    }
}

impl AsyncRead for PodStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Forwarded { stream, .. } => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for PodStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Forwarded { stream, .. } => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(
        self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_flush(context),
            Self::Forwarded { stream, .. } => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(
        self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Forwarded { stream, .. } => Pin::new(stream).poll_shutdown(context),
        }
    }
}
