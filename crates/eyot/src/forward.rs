//! A port of a sandbox on the host's loopback: bytes go through as they are, so HTTP, WebSocket and everything else works.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream as HostStream};

use crate::driver::TcpStream;
use crate::error::{Error, ErrorKind, Result};

/// The pause after an accept has failed: for want of descriptors, say, which others have to give
/// back.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// A listening port of the host's loopback.
#[derive(Debug)]
pub struct PortForward {
    listener: TcpListener,
    url: String,
}

impl PortForward {
    /// Takes a free port of 127.0.0.1; `unavailable` if there is none.
    pub async fn bind() -> Result<Self> {
        let cannot = |error: io::Error| {
            Error::new(ErrorKind::Unavailable, "open a port on this host's loopback").with_source(error)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(cannot)?;
        let url = format!("http://{}", listener.local_addr().map_err(cannot)?);
        Ok(Self { listener, url })
    }

    /// The address: `http://127.0.0.1:<port>`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Connects each client with what `dial` gives for it, until it is dropped. A client for whom there is nothing is
    /// disconnected, and `failed` hears why.
    pub async fn serve<D>(
        self,
        dial: impl Fn() -> D + Send,
        failed: impl Fn(Error) + Clone + Send + 'static,
    ) -> std::convert::Infallible
    where
        D: Future<Output = Result<Box<dyn TcpStream>>> + Send + 'static,
    {
        loop {
            match self.listener.accept().await {
                Ok((client, _)) => drop(tokio::spawn(connect(client, dial(), failed.clone()))),
                Err(error) => {
                    tracing::warn!(%error, url = self.url, "accept a connection to a sandbox's port");
                    tokio::time::sleep(EXHAUSTED).await;
                }
            }
        }
    }
}

async fn connect(
    mut client: HostStream,
    dialled: impl Future<Output = Result<Box<dyn TcpStream>>>,
    failed: impl Fn(Error),
) {
    let mut server = match dialled.await {
        Ok(server) => server,
        Err(error) => return failed(error),
    };
    if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut server).await {
        tracing::debug!(%error, "a connection to a sandbox's port ended");
    }
}
