//! Finding sandboxes among the Pods of the namespace.

use eyot::{Error, ErrorKind, Result, SandboxId, SandboxName};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::cluster::Cluster;
use super::connect::Keyed;
use super::lease;
use super::pod_state::PodState;
use super::record::{OWNER, PodRecord, pod_name};

/// A sandbox that was found.
#[derive(Debug, Clone)]
pub(super) struct FoundPod {
    pub record: PodRecord,
    pub state: PodState,
    pub pod: Pod,
}

impl FoundPod {
    /// Reads a Pod; `None` if it is no sandbox of this owner.
    pub(super) fn of(owner: &str, pod: Pod) -> Option<Self> {
        if pod.labels().get(OWNER).map(String::as_str) != Some(owner) {
            return None;
        }
        Some(Self { record: PodRecord::of(&pod)?, state: PodState::of(&pod), pod })
    }
}

/// Finds a sandbox by id or name.
pub(super) async fn find(keyed: &Keyed, id_or_name: &str) -> Result<FoundPod> {
    let (cluster, owner) = (&keyed.cluster, &keyed.owner);
    let found = match (SandboxId::parse(id_or_name), SandboxName::parse(id_or_name)) {
        (Ok(id), _) => by_id(cluster, owner, &id).await?,
        (_, Ok(name)) => by_name(cluster, owner, &name).await?,
        _ => None,
    };
    found.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("there is no sandbox `{id_or_name}`"))
            .with_hint("`eyot ls` shows those that are there")
    })
}

async fn by_name(cluster: &Cluster, owner: &str, name: &SandboxName) -> Result<Option<FoundPod>> {
    let lease = lease::read(cluster, owner, name).await?;
    match lease.as_ref().and_then(lease::holder) {
        Some(id) => by_id(cluster, owner, &id).await,
        None => Ok(None),
    }
}

/// Finds the sandbox of this id.
pub(super) async fn by_id(cluster: &Cluster, owner: &str, id: &SandboxId) -> Result<Option<FoundPod>> {
    let pod = cluster.get::<Pod>(&pod_name(id)).await?;
    Ok(pod.and_then(|pod| FoundPod::of(owner, pod)))
}

/// Lists every sandbox of the owner.
pub(super) async fn all(keyed: &Keyed) -> Result<Vec<FoundPod>> {
    let (pods, _) = keyed.cluster.list::<Pod>(&format!("{OWNER}={}", keyed.owner), "").await?;
    Ok(pods.into_iter().filter_map(|pod| FoundPod::of(&keyed.owner, pod)).collect())
}
