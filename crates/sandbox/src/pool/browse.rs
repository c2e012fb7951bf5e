//! Ports of sandboxes on the host's loopback: bytes go through as they are, so HTTP, WebSocket and everything else works.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::SandboxPool;
use crate::error::{Error, ErrorKind, Result};
use crate::spec::SandboxName;

/// Where a port of a sandbox can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// `http://127.0.0.1:<port of the host>`.
    pub url: String,
}

/// The ports that are open.
#[derive(Default)]
pub(super) struct Forwards(Mutex<BTreeMap<(SandboxName, u16), Forward>>);

struct Forward {
    url: String,
    task: AbortHandle,
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Forwards {
    /// Opens a port, or says where it is open already; and whether it was opened now.
    pub(super) async fn open(
        &self,
        pool: &SandboxPool,
        name: &SandboxName,
        port: u16,
    ) -> Result<(Preview, bool)> {
        let key = (name.clone(), port);
        if let Some(open) = self.lock().get(&key) {
            return Ok((Preview { url: open.url.clone() }, false));
        }
        let cannot = |error| {
            let message = format!("open port {port} of sandbox `{name}` on this host's loopback");
            Error::new(ErrorKind::Unavailable, message).with_source(error)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(cannot)?;
        let url = format!("http://{}", listener.local_addr().map_err(cannot)?);
        let task = tokio::spawn(serve(pool.downgrade(), name.clone(), port, listener)).abort_handle();
        let forward = Forward { url, task };
        let own = forward.url.clone();
        // Somebody may have opened it meanwhile: theirs stays, ours closes.
        let url = self.lock().entry(key).or_insert(forward).url.clone();
        let is_new = url == own;
        Ok((Preview { url }, is_new))
    }

    /// Closes the ports of a sandbox.
    pub(super) fn close(&self, name: &SandboxName) {
        self.lock().retain(|(of, _), _| of != name);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(SandboxName, u16), Forward>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts until the pool is gone.
async fn serve(pool: super::WeakPool, name: SandboxName, port: u16, listener: TcpListener) {
    loop {
        let accepted = listener.accept().await;
        let Some(pool) = pool.upgrade() else { return };
        match accepted {
            Ok((client, _)) => drop(tokio::spawn(connect(pool, name.clone(), port, client))),
            Err(error) => {
                tracing::warn!(%error, sandbox = %name, port, "accept a connection to a sandbox's port");
                // Out of descriptors, say: whoever has some ends first.
                tokio::task::yield_now().await;
            }
        }
    }
}

async fn connect(pool: SandboxPool, name: SandboxName, port: u16, mut client: TcpStream) {
    let connected = async {
        let sandbox = pool.get(name.as_str()).await?;
        drop(pool);
        sandbox.dial(port).await
    };
    let mut server = match connected.await {
        Ok(server) => server,
        Err(error) => {
            tracing::debug!(%error, sandbox = %name, port, "a preview could not be reached");
            return;
        }
    };
    if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut server).await {
        tracing::debug!(%error, sandbox = %name, port, "a preview's connection ended");
    }
}
