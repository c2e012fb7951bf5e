//! Connecting to the guest of a sandbox, and finding out why a stream to it has ended.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use eyot::{Created, Error, ErrorKind, Isolation, PublishedPort, Result};
use eyot_guest::client::{Connection, Verdict};
use eyot_guest::protocol::container::{ContainerConfig, RELAY_TO_MAKER};
use tokio::io::DuplexStream;

use super::capabilities::capabilities;
use super::guest_place::look;
use super::host::BridgeHost;
use super::record::{BridgeRecord, BridgeState};
use super::{NAME, isolation, removal, sessions, socket};
use crate::linked_driver::{GuestBackend, LinkedDriver, lost_stream, send_config, unknown_end};
use crate::terminal_guest::{GuestTrace, guest_ended, read_role, through};

/// The longest wait for the bridge's word of a sandbox whose stream has ended.
const LOOK_PATIENCE: Duration = Duration::from_secs(30);

/// A sandbox whose guest runs.
#[derive(Debug, Clone)]
pub(super) struct BridgedSandbox {
    pub host: Arc<BridgeHost>,
    pub record: Arc<BridgeRecord>,
}

/// A sandbox with a connection to its guest.
pub(super) struct ConnectedSandbox {
    sandbox: BridgedSandbox,
    isolation: Isolation,
    connection: Connection,
}

impl BridgedSandbox {
    /// Connects to the guest, and configures it if it waits for that.
    pub async fn connect(&self) -> Result<Connection> {
        let (mut stream, role) = self.open().await?;
        let (client_nonce, guest_nonce) = self.record.life.secret.nonces();
        if role == RELAY_TO_MAKER {
            send_config(&mut stream, &ContainerConfig::of_own_user(self.record.life.secret.nonces())).await?;
        }
        let connection = Connection::open(stream, client_nonce, guest_nonce).await?;
        let sandbox = self.clone();
        connection.set_inquiry(Arc::new(move || {
            let sandbox = sandbox.clone();
            Box::pin(async move { sandbox.verdict().await })
        }));
        if role == RELAY_TO_MAKER {
            connection.adopt().await?;
        }
        Ok(connection)
    }

    async fn open(&self) -> Result<(DuplexStream, u8)> {
        let session = sessions::begin(&self.host, &self.record).await?;
        let program = format!("{}/stream", self.record.life.directory());
        let opening = socket::open(&self.host.client, &self.record.bridge_id, &session.name, &program);
        let opened = self.host.records.calling(&self.record, opening).await;
        let terminal = match opened {
            Ok(terminal) => terminal,
            Err(error) => {
                session.end().await;
                return Err(error);
            }
        };
        let mut stream = through(terminal, session.end());
        let role = read_role(&mut stream).await?;
        Ok((stream, role))
    }

    /// Finds out why the stream to the sandbox ended, for the calls that were in flight.
    async fn verdict(&self) -> Verdict {
        let name = self.record.name.to_string();
        match self.end().await {
            Ok(SandboxEnd::None) => Arc::new(lost_stream),
            Ok(SandboxEnd::Destroyed) => Arc::new(move || Error::destroyed(&name)),
            Ok(SandboxEnd::Replaced) => Arc::new(move || replaced(&name)),
            Ok(SandboxEnd::Guest) => Arc::new(move || guest_ended(&name)),
            Err(error) => unknown_end(&error),
        }
    }

    /// Makes the error for a call that can't reach the sandbox now.
    async fn refusal(&self) -> Error {
        (self.verdict().await)()
    }

    /// Finds out what has ended.
    pub async fn end(&self) -> Result<SandboxEnd> {
        // The bridge would start another container for the id of one that was removed.
        match self.host.records.read(&self.record.id)? {
            None => return Ok(SandboxEnd::Destroyed),
            Some(now) if now.state == BridgeState::Ending => return Ok(SandboxEnd::Destroyed),
            Some(now) if now.life != self.record.life => return Ok(SandboxEnd::Guest),
            Some(_) => {}
        }
        let late =
            |_| Error::new(ErrorKind::Unavailable, "the bridge does not say whether the sandbox lives");
        match tokio::time::timeout(LOOK_PATIENCE, look(&self.host, &self.record)).await.map_err(late)?? {
            GuestTrace::Here => Ok(SandboxEnd::None),
            GuestTrace::Ended => Ok(SandboxEnd::Guest),
            // Or somebody inside has removed the guest's directory. So nothing is removed but when it is asked for.
            GuestTrace::Gone => Ok(SandboxEnd::Replaced),
        }
    }
}

/// The part of a sandbox that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SandboxEnd {
    /// Nothing but a stream.
    None,
    /// The guest.
    Guest,
    /// The container, in whose place there was another.
    Replaced,
    /// All of it, by a call of ours.
    Destroyed,
}

/// Makes the error about a sandbox whose container is gone.
pub(super) fn replaced(name: &str) -> Error {
    Error::destroyed(name).with_hint(format!(
        "Cloudflare has ended its container, and what was in it is lost, or a program inside has removed the guest's files; \
         `eyot --provider cloudflare rm {name}` removes what is left"
    ))
}

impl ConnectedSandbox {
    /// Joins a connection with the protections that its guest has found in force.
    pub fn new(sandbox: BridgedSandbox, connection: Connection) -> Result<Self> {
        let isolation = isolation::found(connection.protections())?;
        Ok(Self { sandbox, isolation, connection })
    }

    /// Returns the sandbox in the form that a provider gives.
    pub fn created(self) -> Created {
        let Self { sandbox, isolation, connection } = self;
        let record = Arc::clone(&sandbox.record);
        let info = record.info(isolation.clone());
        let driver = LinkedDriver::new(sandbox, capabilities(), (isolation, record.workdir()), connection);
        Created { info, driver: Arc::new(driver), keeper: None }
    }
}

#[async_trait]
impl GuestBackend for BridgedSandbox {
    fn provider(&self) -> &'static str {
        NAME
    }

    fn sandbox(&self) -> String {
        self.record.name.to_string()
    }

    async fn reconnect(&self) -> Result<Connection> {
        match self.host.records.read(&self.record.id)? {
            Some(now) if now.state == BridgeState::Made && now.life == self.record.life => {}
            _ => return Err(self.refusal().await),
        }
        match self.connect().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                tracing::debug!(%error, "a lost stream could not be opened again");
                Err(self.refusal().await)
            }
            connected => connected,
        }
    }

    async fn destroy(&self) -> Result<()> {
        removal::remove(&self.host, &self.record).await.map(drop)
    }

    async fn abandon(&self) -> Result<()> {
        removal::remove(&self.host, &self.record).await.map(drop)
    }

    async fn published_ports(&self) -> Result<Vec<PublishedPort>> {
        Ok(Vec::new())
    }
}
