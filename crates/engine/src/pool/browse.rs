//! The ports of a pool's sandboxes that are open on the host's loopback.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use eyot::{Error, ErrorKind, PortForward, Result, SandboxName};
use serde::Serialize;
use tokio::task::AbortHandle;

use super::SandboxPool;

/// The most ports that a pool keeps open: each is a descriptor of this process, and a model may ask for every one.
pub const MAX_OPEN_PORTS: usize = 100;

/// The address at which a port of a sandbox can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// `http://127.0.0.1:<port of the host>`.
    pub url: String,
}

/// The ports that are open.
#[derive(Default)]
pub(super) struct OpenPorts(Mutex<BTreeMap<(SandboxName, u16), OpenPort>>);

struct OpenPort {
    url: String,
    task: AbortHandle,
}

impl Drop for OpenPort {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl OpenPorts {
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
        let forward = PortForward::bind().await?;
        let url = forward.url().to_owned();
        let task = tokio::spawn(serve(pool.downgrade(), name.clone(), port, forward)).abort_handle();
        let forward = OpenPort { url, task };
        let own = forward.url.clone();
        // Somebody may have opened it meanwhile: theirs stays, ours closes.
        let mut open = self.lock();
        if open.len() >= MAX_OPEN_PORTS && !open.contains_key(&key) {
            return Err(no_room(name, port));
        }
        let url = open.entry(key).or_insert(forward).url.clone();
        let is_new = url == own;
        Ok((Preview { url }, is_new))
    }

    /// Closes the ports of a sandbox.
    pub(super) fn close(&self, name: &SandboxName) {
        self.lock().retain(|(of, _), _| of != name);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(SandboxName, u16), OpenPort>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_room(name: &SandboxName, port: u16) -> Error {
    let message = format!("open port {port} of sandbox `{name}`: {MAX_OPEN_PORTS} ports are open, the limit");
    Error::new(ErrorKind::Quota, message)
        .with_hint("one that is open can be used again; a sandbox's are closed when it is removed")
}

/// Serves until the pool is gone.
async fn serve(pool: super::WeakPool, name: SandboxName, port: u16, forward: PortForward) {
    let shown = name.clone();
    let dial = move || {
        let (pool, name) = (pool.upgrade(), name.clone());
        async move {
            let pool = pool.ok_or_else(|| Error::destroyed(&name))?;
            pool.get(name.as_str()).await?.dial(port).await
        }
    };
    let failed =
        move |error| tracing::debug!(%error, sandbox = %shown, port, "a preview could not be reached");
    match forward.serve(dial, failed).await {}
}
