//! A Lease for each name: it reserves the name before there is a Pod, and says whose it is.

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result, SandboxId, SandboxName};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use serde_json::json;

use super::cluster::{Cluster, Deleted, Made};
use super::destroy::remove_pod;
use super::find::{FoundPod, by_id};
use super::pod_state::PodState;
use super::record::{ID, MAKING, OWNER, PodRecord, lease_name};

const MADE_MS: &str = "eyot.dev/made-ms";
/// The age, in milliseconds, at which a reservation without a Pod counts as abandoned.
const MAKING_PATIENCE_MS: i64 = 5 * 60 * 1000;
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

fn body(namespace: &str, owner: &str, record: &PodRecord, making: &str) -> Result<Lease> {
    let body = json!({
        "metadata": {
            "name": lease_name(owner, &record.name),
            "namespace": namespace,
            "labels": { OWNER: owner },
            "annotations": {
                ID: record.id.as_str(), MAKING: making, MADE_MS: record.created_ms.to_string(),
            },
        },
        "spec": { "holderIdentity": record.id.as_str() },
    });
    let wrong = |error| Error::new(ErrorKind::Internal, "write a Lease").with_source(error);
    serde_json::from_value(body).map_err(wrong)
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

fn is_abandoned(lease: &Lease) -> bool {
    let made_ms = lease.annotations().get(MADE_MS).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    now_ms().saturating_sub(made_ms) > MAKING_PATIENCE_MS
}

/// Returns the id of the sandbox that holds a name.
pub(super) fn holder(lease: &Lease) -> Option<SandboxId> {
    SandboxId::parse(lease.spec.as_ref()?.holder_identity.as_deref()?).ok()
}

/// Reads the reservation of a name.
pub(super) async fn read(cluster: &Cluster, owner: &str, name: &SandboxName) -> Result<Option<Lease>> {
    cluster.get::<Lease>(&lease_name(owner, name)).await
}

/// Frees the name of a sandbox, unless another one has it by now.
pub(super) async fn release_of(cluster: &Cluster, owner: &str, record: &PodRecord) -> Result<()> {
    match read(cluster, owner, &record.name).await? {
        Some(lease) if holder(&lease).as_ref() == Some(&record.id) => release(cluster, &lease).await,
        _ => Ok(()),
    }
}

/// Removes a reservation as it was read. One that others have changed is theirs.
pub(super) async fn release(cluster: &Cluster, lease: &Lease) -> Result<()> {
    match cluster.delete("free the sandbox's name", lease).await? {
        Deleted::Begun | Deleted::Absent | Deleted::Changed => Ok(()),
    }
}

/// Lists the names that are reserved, to remove those whose sandbox is gone.
pub(super) async fn sweep(cluster: &Cluster, owner: &str, living: &[SandboxId]) -> Result<()> {
    let (leases, _) = cluster.list::<Lease>(&format!("{OWNER}={owner}"), "").await?;
    for lease in leases {
        let lives = holder(&lease).is_some_and(|id| living.contains(&id));
        if !lives && is_abandoned(&lease) {
            release(cluster, &lease).await?;
        }
    }
    Ok(())
}
