//! Reserving the name of a sandbox that is to be made.

use eyot::{Error, ErrorKind, Result, SandboxName};
use k8s_openapi::api::coordination::v1::Lease;

use super::cluster::{Cluster, Made};
use super::destroy::remove_pod;
use super::find::{FoundPod, by_id};
use super::lease::{body, holder, is_abandoned, read, release};
use super::pod_state::PodState;
use super::record::PodRecord;

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
    let message = format!("create sandbox: the name `{}` is in use", record.name);
    Err(Error::new(ErrorKind::AlreadyExists, message))
}

/// Removes what holds a name without need. Returns whether the name may be free now.
async fn free_ended(cluster: &Cluster, owner: &str, name: &SandboxName) -> Result<bool> {
    let Some(lease) = read(cluster, owner, name).await? else { return Ok(true) };
    let pod = match holder(&lease) {
        Some(id) => by_id(cluster, owner, &id).await?,
        None => None,
    };
    match pod {
        Some(FoundPod { state: PodState::Over, pod, .. }) => {
            remove_pod(cluster, &pod).await?;
        }
        Some(_) => return Ok(false),
        None if !is_abandoned(&lease) => return Ok(false),
        None => {}
    }
    release(cluster, &lease).await.map(|()| true)
}
