//! A Lease for each name: it reserves the name before there is a Pod, and says whose it is.

use std::collections::HashSet;

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result, SandboxId, SandboxName};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use serde_json::json;

use super::cluster::{Cluster, Deleted};
use super::record::{ID, MAKING, OWNER, PodRecord, lease_name};

const MADE_MS: &str = "eyot.dev/made-ms";
/// The age, in milliseconds, at which a reservation without a Pod counts as abandoned.
const MAKING_PATIENCE_MS: i64 = 5 * 60 * 1000;
/// The most names that one sweep frees at once.
const RELEASES_AT_ONCE: usize = 16;

/// Computes the reservation of a sandbox's name.
pub(super) fn body(namespace: &str, owner: &str, record: &PodRecord, making: &str) -> Result<Lease> {
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

/// Tells whether a reservation is so old that its sandbox should have been made.
pub(super) fn is_abandoned(lease: &Lease) -> bool {
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

/// Tells whether the reservation of a name has this mark.
pub(super) async fn is_of(cluster: &Cluster, owner: &str, name: &SandboxName, making: &str) -> Result<bool> {
    let found = read(cluster, owner, name).await?;
    Ok(found.is_some_and(|lease| lease.annotations().get(MAKING).is_some_and(|mark| mark == making)))
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
    match cluster.delete("free the sandbox's name", lease, None).await? {
        Deleted::Begun | Deleted::Absent | Deleted::Changed => Ok(()),
    }
}

/// Lists the names that are reserved, to remove those whose sandbox is gone.
pub(super) async fn sweep(cluster: &Cluster, owner: &str, living: &[SandboxId]) -> Result<()> {
    let (leases, _) = cluster.list::<Lease>(&format!("{OWNER}={owner}"), "").await?;
    let living: HashSet<&SandboxId> = living.iter().collect();
    let lives = |lease: &Lease| holder(lease).is_some_and(|id| living.contains(&id));
    let abandoned = leases.into_iter().filter(|lease| !lives(lease) && is_abandoned(lease));
    let releases = abandoned.map(|lease| async move { release(cluster, &lease).await });
    let releases = futures_util::stream::iter(releases).buffer_unordered(RELEASES_AT_ONCE);
    releases.try_collect().await
}
