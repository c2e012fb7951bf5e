//! Connecting to the guest of a Pod that runs, and configuring the guest if it has no configuration
//! yet.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use eyot::{Error, Result};
use eyot_guest::client::{Connection, Verdict};
use eyot_guest::environment;
use eyot_guest::protocol::GuestConfig;
use eyot_guest::protocol::container::ContainerConfig;
use eyot_guest::protocol::pod::TokenUse;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::cluster::Cluster;
use super::key::ServerKey;
use super::pod_body::HOME;
use super::pod_state::PodState;
use super::reach::{self, GuestRole, PodPlace};
use super::record::PodRecord;
use super::wait;
use crate::linked_driver::{lost_stream, send_config, unknown_end};

/// The longest wait for the cluster to notice that a Pod has ended, after the stream to it has.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// The time after which a guest that is not reached makes the cluster be asked about its Pod.
const QUICK: Duration = Duration::from_millis(500);

/// The cluster with the key of its sandboxes.
#[derive(Debug)]
pub(super) struct Keyed {
    pub cluster: Arc<Cluster>,
    pub key: ServerKey,
    /// The id of whoever holds the key.
    pub owner: String,
}

/// A sandbox whose Pod runs.
#[derive(Debug, Clone)]
pub(super) struct RunningPod {
    pub record: Arc<PodRecord>,
    pub place: PodPlace,
}

impl RunningPod {
    /// Connects to the guest of a Pod that was just made, and configures it.
    pub(super) async fn make(&self, keyed: &Arc<Keyed>) -> Result<Connection> {
        self.connect_as(keyed, TokenUse::Make, reach::NEW_PATIENCE).await
    }

    /// Connects to the guest. One without a configuration waits for its maker, and takes nobody else.
    pub(super) async fn connect(&self, keyed: &Arc<Keyed>) -> Result<Connection> {
        self.connect_as(keyed, TokenUse::Connect, reach::PATIENCE).await
    }

    async fn connect_as(&self, keyed: &Arc<Keyed>, with: TokenUse, patience: Duration) -> Result<Connection> {
        let uid = &self.place.pod_uid;
        let hello = keyed.key.hello(uid, with);
        let (mut stream, role) = tokio::select! {
            opened = reach::open(&keyed.cluster, &self.place, &hello, patience) => opened?,
            refusal = self.late_end(&keyed.cluster) => return Err(refusal),
        };
        let (client_nonce, guest_nonce) = keyed.key.nonces(uid);
        let connection = match role {
            GuestRole::Unconfigured => {
                let config = config(&self.record, (client_nonce, guest_nonce));
                send_config(&mut stream, &config).await?;
                Connection::open(stream, client_nonce, guest_nonce).await
            }
            GuestRole::Configured => Connection::reopen(stream, client_nonce, guest_nonce).await,
        };
        let connection = connection?;
        let (held, running) = (Arc::clone(keyed), self.clone());
        connection.set_inquiry(Arc::new(move || {
            let (held, running) = (Arc::clone(&held), running.clone());
            Box::pin(async move { running.verdict(&held.cluster).await })
        }));
        if role == GuestRole::Unconfigured {
            connection.adopt().await?;
        }
        Ok(connection)
    }

    /// Finds out why the stream to the sandbox ended, for the calls that were in flight.
    async fn verdict(&self, cluster: &Cluster) -> Verdict {
        let name = self.record.name.to_string();
        match self.end(cluster).await {
            Ok(Some(Some(state))) => Arc::new(move || state.refusal(&name)),
            Ok(Some(None)) => Arc::new(move || Error::destroyed(&name)),
            Ok(None) => Arc::new(|| {
                lost_stream().with_hint("its Pod runs on, as far as the cluster knows; whether the call had its effect is not known")
            }),
            Err(error) => unknown_end(&error),
        }
    }

    /// Makes the error for a call that can't reach the sandbox now.
    pub(super) async fn refusal(&self, cluster: &Cluster) -> Error {
        (self.verdict(cluster).await)()
    }

    /// Returns when the Pod has ended, with the error that says so. The cluster is not asked at once: most
    /// guests are reached before.
    async fn late_end(&self, cluster: &Cluster) -> Error {
        tokio::time::sleep(QUICK).await;
        match self.ended(cluster).await {
            Ok(Some(state)) => state.refusal(self.record.name.as_str()),
            Ok(None) => Error::destroyed(&self.record.name),
            Err(error) => error,
        }
    }

    /// Waits for the end of the Pod: its last state, or none if it no longer exists. Returns `None` if
    /// it runs on, and only the stream was lost.
    async fn end(&self, cluster: &Cluster) -> Result<Option<Option<PodState>>> {
        match tokio::time::timeout(END_PATIENCE, self.ended(cluster)).await {
            Ok(ended) => ended.map(Some),
            Err(_) => Ok(None),
        }
    }

    async fn ended(&self, cluster: &Cluster) -> Result<Option<PodState>> {
        let uid = self.place.pod_uid.clone();
        let look = move |pod: Option<&Pod>| match pod
            .filter(|pod| pod.uid().as_deref() == Some(&uid))
            .map(PodState::of)
        {
            Some(PodState::Running(_) | PodState::Pending(_) | PodState::Stuck(_)) => {
                ControlFlow::Continue(())
            }
            ended => ControlFlow::Break(ended),
        };
        wait::until(cluster, &self.place.pod_name, look).await
    }
}

fn config(record: &PodRecord, nonces: ([u8; 16], [u8; 16])) -> ContainerConfig {
    let lifecycle = &record.spec.lifecycle;
    let own = ContainerConfig::of_own_user(nonces);
    let guest = GuestConfig {
        ttl_ms: lifecycle.ttl_ms.filter(|_| lifecycle.auto_destroy),
        idle_timeout_ms: lifecycle.idle_timeout_ms.filter(|_| lifecycle.auto_destroy),
        env: environment::completed(&[]),
        ..own.guest
    };
    ContainerConfig { guest, home: Some(HOME.to_owned()), ..own }
}
