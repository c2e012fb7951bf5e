//! Connecting to the guest of a running container, and configuring the guest if it has no
//! configuration yet.

use std::sync::Arc;
use std::time::Duration;

use bollard::query_parameters::WaitContainerOptionsBuilder;
use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result};
use eyot_guest::client::{Connection, Verdict};
use futures_util::StreamExt;

use super::condition::Condition;
use super::engine::Engine;
use super::find::{Found, by_id, inspect};
use super::host::Host;
use super::labels::Record;
use super::life::Life;
use super::relay::{self, Role};
use crate::linked_driver::{lost_stream, send_config, unknown_end};

/// The longest wait for the Engine to notice that a container has ended, after the stream to it
/// has.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// A sandbox whose container runs.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub record: Arc<Record>,
    pub container: String,
    pub life: Life,
}

impl Running {
    /// Connects to the guest. `is_first` is set during the create.
    pub(crate) async fn connect(&self, host: &Arc<Host>, is_first: bool) -> Result<Connection> {
        let opened = relay::open(&host.engine, &self.container).await;
        if matches!(&opened, Err(error) if error.kind() == ErrorKind::Unavailable) {
            // Most often the container is just ending, and the Engine has yet to say so.
            self.await_end(&host.engine).await;
        }
        let (mut stream, role) = opened?;
        if role == Role::Maker {
            let config = self.life.config(&self.record, is_first, now_ms());
            send_config(&mut stream, &config).await?;
        }
        let (client_nonce, guest_nonce) = self.life.nonces(&self.record);
        let connection = match role {
            Role::Maker => Connection::open(stream, client_nonce, guest_nonce).await,
            Role::Client => Connection::reopen(stream, client_nonce, guest_nonce).await,
        };
        let connection = connection.map_err(refused)?;
        let (host, running) = (Arc::clone(host), self.clone());
        connection.set_inquiry(Arc::new(move || {
            let (host, running) = (Arc::clone(&host), running.clone());
            Box::pin(async move { running.verdict(&host).await })
        }));
        if role == Role::Maker {
            connection.adopt().await?;
        }
        Ok(connection)
    }

    /// Finds out why the stream to the sandbox ended, for the calls that were in flight.
    async fn verdict(&self, host: &Host) -> Verdict {
        self.await_end(&host.engine).await;
        let (name, life) = (self.record.name.to_string(), self.life.clone());
        match self.present(host).await {
            Ok(Some(found)) => Arc::new(move || told(&name, &life, &found.condition)),
            Ok(None) => Arc::new(move || Error::destroyed(&name)),
            Err(error) => unknown_end(&error),
        }
    }

    /// Finds the sandbox, in its own container or in the one that has taken the place of it since.
    async fn present(&self, host: &Host) -> Result<Option<Found>> {
        match inspect(host, &self.container).await? {
            None if host.state.open().await?.had_snapshots() => {
                Ok(by_id(host, &self.record.id).await?.into_iter().next())
            }
            found => Ok(found),
        }
    }

    /// Makes the error for a call that can't reach the sandbox now.
    pub(crate) async fn refusal(&self, host: &Host) -> Error {
        (self.verdict(host).await)()
    }

    /// Waits until the container has ended. If it runs on, only the stream was lost.
    async fn await_end(&self, engine: &Engine) {
        let Ok(docker) = engine.client().await else { return };
        let options = WaitContainerOptionsBuilder::default().condition("not-running").build();
        let mut ending = Box::pin(docker.wait_container(&self.container, Some(options)));
        if tokio::time::timeout(END_PATIENCE, ending.next()).await.is_err() {
            tracing::debug!(sandbox = %self.record.id, "a stream was lost, its sandbox was not");
        }
    }
}

fn told(name: &str, life: &Life, condition: &Condition) -> Error {
    match condition {
        Condition::Running(now) if now == life => lost_stream(),
        // It was put to sleep, and woken since.
        Condition::Running(_) => Error::sleeping(name),
        other => other.refusal(name),
    }
}

/// Takes the reason out of a guest's refusal. A guest that can't carry out its configuration says
/// so in its first message.
fn refused(error: Error) -> Error {
    let text = error.to_string();
    match text.strip_prefix("the sandbox's guest refused the connection: ") {
        Some(reason) => Error::new(error.kind(), format!("create sandbox: {reason}")).with_source(error),
        None => error,
    }
}
