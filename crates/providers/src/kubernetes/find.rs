//! Finding sandboxes among the Pods of the namespace.

use eyot::{Error, ErrorKind, Result, SandboxId, SandboxName};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::cluster::Cluster;
use super::connect::Keyed;
use super::lease;
use super::pod_state::PodState;
use super::record::{ID, OWNER, PodRecord, pod_name};

/// A sandbox that was found.
#[derive(Debug, Clone)]
pub(super) struct FoundPod {
    pub record: PodRecord,
    pub state: PodState,
    pub pod: Pod,
}

impl FoundPod {
    /// Reads a Pod; `None` if it is no sandbox of this owner.
    fn of(owner: &str, pod: Pod) -> Result<Option<Self>> {
        if pod.labels().get(OWNER).map(String::as_str) != Some(owner) {
            return Ok(None);
        }
        let unread = || {
            let message = format!("the record of the sandbox in Pod `{}` can't be read", pod.name_any());
            Error::new(ErrorKind::Setup, message).with_hint("a newer version of Eyot may have made it")
        };
        let record = PodRecord::of(&pod).ok_or_else(unread)?;
        Ok(Some(Self { record, state: PodState::of(&pod), pod }))
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
    pod.map_or(Ok(None), |pod| FoundPod::of(owner, pod))
}

/// The sandboxes of an owner.
pub(super) struct OwnedPods {
    /// Those whose records can be read.
    pub found: Vec<FoundPod>,
    /// The ids of all: each holds its name.
    pub ids: Vec<SandboxId>,
}

/// Lists every sandbox of the owner.
pub(super) async fn all(keyed: &Keyed) -> Result<OwnedPods> {
    let (pods, _) = keyed.cluster.list::<Pod>(&format!("{OWNER}={}", keyed.owner), "").await?;
    let mut owned = OwnedPods { found: Vec::new(), ids: Vec::new() };
    for pod in pods {
        owned.ids.extend(pod.labels().get(ID).and_then(|id| SandboxId::parse(id).ok()));
        match FoundPod::of(&keyed.owner, pod) {
            Ok(found) => owned.found.extend(found),
            Err(error) => tracing::warn!(%error, "a sandbox is left out of the list"),
        }
    }
    Ok(owned)
}
