//! Reserving the name of a sandbox that is to be made.

use eyot::{Error, ErrorKind, Result, SandboxId, SandboxName};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::cluster::{Cluster, Made};
use super::destroy::remove_pod;
use super::lease::{body, holder, is_abandoned, read, release};
use super::pod_state::PodState;
use super::record::{OWNER, PodRecord, pod_name};

/// The number of tries while others free the same name.
const ATTEMPTS: usize = 4;

/// Reserves the name of a sandbox. A reservation whose sandbox is over, or was never made, is removed first.
pub(super) async fn reserve(
    cluster: &Cluster,
    owner: &str,
    record: &PodRecord,
    making: &str,
) -> Result<Lease> {
    let lease = body(cluster.namespace().await?, owner, record, making)?;
    for _ in 0..ATTEMPTS {
        match cluster.create("create sandbox: reserve its name", &lease).await? {
            Made::New(lease) => return Ok(lease),
            Made::Taken if free_ended(cluster, owner, &record.name).await? => {}
            Made::Taken => break,
        }
    }
    Err(in_use(&record.name))
}

/// Makes the error of a name that another sandbox has.
pub(super) fn in_use(name: &SandboxName) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("create sandbox: the name `{name}` is in use"))
}

/// Removes what holds a name without need. Returns whether the name may be free now.
async fn free_ended(cluster: &Cluster, owner: &str, name: &SandboxName) -> Result<bool> {
    let Some(lease) = read(cluster, owner, name).await? else { return Ok(true) };
    let pod = match holder(&lease) {
        Some(id) => pod_of(cluster, owner, &id).await?,
        None => None,
    };
    match pod {
        Some(pod) if matches!(PodState::of(&pod), PodState::Over | PodState::Going) => {
            match remove_pod(cluster, &pod, None).await {
                // Its node may be lost: the name is free when the cluster has forgotten the Pod.
                Err(error) if error.kind() == ErrorKind::Unavailable => return Ok(false),
                removed => removed.map(drop)?,
            }
        }
        Some(_) => return Ok(false),
        None if !is_abandoned(&lease) => return Ok(false),
        None => {}
    }
    release(cluster, &lease).await.map(|()| true)
}

/// Finds the owner's Pod of this id, also one whose record this version can't read: it holds its name.
async fn pod_of(cluster: &Cluster, owner: &str, id: &SandboxId) -> Result<Option<Pod>> {
    let pod = cluster.get::<Pod>(&pod_name(id)).await?;
    Ok(pod.filter(|pod| pod.labels().get(OWNER).is_some_and(|label| label == owner)))
}
