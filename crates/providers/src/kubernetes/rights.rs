//! The rights that the provider needs, asked of the server one by one.

use eyot::{Error, ErrorKind, Result};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::cluster::{Cluster, retried};
use super::options::PodReach;
use super::refusal::failed;

/// The group, the resource and its verbs.
type Rights = (&'static str, &'static str, &'static [&'static str]);

const RIGHTS: [Rights; 2] = [
    ("", "pods", &["create", "get", "list", "watch", "delete"]),
    ("coordination.k8s.io", "leases", &["create", "get", "list", "delete"]),
];
/// Newer servers ask for `create` where older ones asked for `get`.
const FORWARD: Rights = ("", "pods/portforward", &["get", "create"]);

/// Returns the rights that are missing, such as `create pods`.
pub(super) async fn missing(cluster: &Cluster) -> Result<Vec<String>> {
    let forward = (cluster.options().reach == PodReach::PortForward).then_some(FORWARD);
    let mut missing = Vec::new();
    for (group, resource, verbs) in RIGHTS.into_iter().chain(forward) {
        for verb in verbs {
            if !may(cluster, group, resource, verb).await? {
                missing.push(format!("{verb} {resource}"));
            }
        }
    }
    Ok(missing)
}

async fn may(cluster: &Cluster, group: &str, resource: &str, verb: &str) -> Result<bool> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let namespace = cluster.namespace().await?;
    let asked = json!({
        "spec": { "resourceAttributes": {
            "namespace": namespace, "group": group, "resource": resource, "subresource": subresource, "verb": verb,
        } },
    });
    let wrong = |error| Error::new(ErrorKind::Internal, "write a question about rights").with_source(error);
    let review: SelfSubjectAccessReview = serde_json::from_value(asked).map_err(wrong)?;
    let api: Api<SelfSubjectAccessReview> = Api::all(cluster.client().await?);
    let answered =
        retried("ask for this user's rights", || async { api.create(&PostParams::default(), &review).await });
    let answered = answered.await?;
    let answered = answered.map_err(|error| failed("ask for this user's rights", error))?;
    Ok(answered.status.is_some_and(|status| status.allowed))
}
