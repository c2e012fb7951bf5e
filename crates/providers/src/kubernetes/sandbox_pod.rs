//! A Pod as the backend of a sandbox's driver.

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{Created, ErrorKind, Isolation, PublishedPort, Result};
use eyot_guest::client::Connection;
use k8s_openapi::api::core::v1::Pod;

use super::capabilities::capabilities;
use super::connect::{Keyed, RunningPod};
use super::pod_state::PodState;
use super::{destroy, find, isolation};
use crate::linked_driver::{GuestBackend, LinkedDriver};

/// A running sandbox with a connection to its guest.
pub(super) struct ReadyPod {
    pod: SandboxPod,
    isolation: Isolation,
    connection: Connection,
}

impl ReadyPod {
    /// Joins a connection with the protections that its guest has found in force.
    pub(super) fn new(
        keyed: &Arc<Keyed>,
        running: RunningPod,
        pod: &Pod,
        connection: Connection,
    ) -> Result<Self> {
        let isolation = isolation::found(&running.record.spec, pod, connection.protections())?;
        Ok(Self { pod: SandboxPod { keyed: Arc::clone(keyed), running }, isolation, connection })
    }

    /// Returns the sandbox in the form that a provider gives.
    pub(super) fn created(self) -> Created {
        let Self { pod, isolation, connection } = self;
        let (record, place) = (Arc::clone(&pod.running.record), &pod.running.place);
        let state = PodState::Running(place.address.clone());
        let info = record.info(&state, place.pod_uid.clone(), isolation.clone());
        let driver = LinkedDriver::new(pod, capabilities(), (isolation, record.workdir()), connection);
        Created { info, driver: Arc::new(driver), keeper: None }
    }
}

/// The Pod of a sandbox.
struct SandboxPod {
    keyed: Arc<Keyed>,
    running: RunningPod,
}

impl SandboxPod {
    async fn destroy_it(&self) -> Result<()> {
        destroy::destroy(&self.keyed, &self.running.record, &self.running.place.pod_uid).await.map(drop)
    }
}

#[async_trait]
impl GuestBackend for SandboxPod {
    fn provider(&self) -> &'static str {
        super::NAME
    }

    fn sandbox(&self) -> String {
        self.running.record.name.to_string()
    }

    async fn reconnect(&self) -> Result<Connection> {
        let cluster = &self.keyed.cluster;
        let now = find::by_id(cluster, &self.keyed.owner, &self.running.record.id).await?;
        let is_it =
            |found: &find::FoundPod| found.pod.metadata.uid.as_deref() == Some(&self.running.place.pod_uid);
        match now.filter(is_it).map(|found| found.state) {
            Some(PodState::Running(_)) => {}
            _ => return Err(self.running.refusal(cluster).await),
        }
        match self.running.connect(&self.keyed).await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                tracing::debug!(%error, "a lost stream could not be opened again");
                Err(self.running.refusal(cluster).await)
            }
            connected => connected,
        }
    }

    async fn destroy(&self) -> Result<()> {
        self.destroy_it().await
    }

    async fn abandon(&self) -> Result<()> {
        self.destroy_it().await
    }

    async fn published_ports(&self) -> Result<Vec<PublishedPort>> {
        Ok(Vec::new())
    }
}
