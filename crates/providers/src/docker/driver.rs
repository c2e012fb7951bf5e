//! A container as a `SandboxDriver`.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{Created, ErrorKind, Isolation, PublishedPort, Result};
use eyot_guest::client::Connection;

use super::condition::Condition;
use super::connect::Running;
use super::destroy;
use super::host::Host;
use super::isolation;
use super::provider::capabilities;
use super::published::published;
use crate::linked_driver::{GuestBackend, LinkedDriver};

/// A running sandbox with a connection to its guest.
pub(crate) struct Ready {
    container: SandboxContainer,
    isolation: Isolation,
    connection: Connection,
}

impl Ready {
    /// Joins a connection with the protections that its guest has found in force.
    pub(crate) async fn new(host: &Arc<Host>, running: Running, connection: Connection) -> Result<Self> {
        let facts = host.engine.facts().await?;
        let isolation = isolation::found(&running.record.spec, facts, connection.protections())?;
        let container = SandboxContainer { host: Arc::clone(host), running };
        Ok(Self { container, isolation, connection })
    }

    /// Returns the sandbox in the form that a provider gives.
    pub(crate) fn created(self) -> Created {
        let Self { container, isolation, connection } = self;
        let condition = Condition::Running(container.running.life.clone());
        let info = container.running.record.info(&condition, isolation.clone());
        let workdir = container.running.record.workdir();
        let driver = LinkedDriver::new(container, capabilities(), (isolation, workdir), connection);
        Created { info, driver: Arc::new(driver), keeper: None }
    }
}

/// The container of a sandbox.
struct SandboxContainer {
    host: Arc<Host>,
    running: Running,
}

#[async_trait]
impl GuestBackend for SandboxContainer {
    fn provider(&self) -> &'static str {
        super::NAME
    }

    fn sandbox(&self) -> String {
        self.running.record.name.to_string()
    }

    async fn reconnect(&self) -> Result<Connection> {
        let now = super::find::inspect(&self.host, &self.running.container).await?;
        match now.map(|found| found.condition) {
            Some(Condition::Running(life)) if life == self.running.life => {}
            _ => return Err(self.running.refusal(&self.host).await),
        }
        match self.running.connect(&self.host, false).await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                tracing::debug!(%error, "a lost stream could not be opened again");
                Err(self.running.refusal(&self.host).await)
            }
            connected => connected,
        }
    }

    async fn destroy(&self) -> Result<()> {
        destroy::destroy(&self.host, &self.running.record, &self.running.container).await.map(drop)
    }

    async fn abandon(&self) -> Result<()> {
        destroy::abandon(&self.host, &self.running.record, &self.running.container).await
    }

    async fn published_ports(&self) -> Result<Vec<PublishedPort>> {
        let ports = &self.running.record.spec.container.ports;
        published(&self.host.engine, &self.running.container, ports).await
    }
}
