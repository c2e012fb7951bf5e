//! Waiting for a Pod to change. The Pod is watched; a watch that ends, is lost or is too old for the
//! server is begun again with a look at the Pod, so nothing is missed.

use std::ops::ControlFlow;
use std::time::Duration;

use eyot::Result;
use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{WatchEvent, WatchParams};

use super::cluster::Cluster;
use super::refusal::{failed, is_transient};

/// The longest time of one watch, in seconds.
const WATCH_S: u32 = 60;
/// The pause after a watch that was lost.
const PAUSE: Duration = Duration::from_millis(200);

/// The outcome of looking at a Pod: what was waited for, or nothing yet.
pub(super) type Look<T> = ControlFlow<T>;

/// Waits until `look` has found what it looks for. It sees every state of the Pod, `None` when there
/// is no Pod.
pub(super) async fn until<T>(
    cluster: &Cluster,
    pod_name: &str,
    mut look: impl FnMut(Option<&Pod>) -> Look<T> + Send,
) -> Result<T> {
    let fields = format!("metadata.name={pod_name}");
    loop {
        let (pods, version) = cluster.list::<Pod>("", &fields).await?;
        if let ControlFlow::Break(found) = look(pods.first()) {
            return Ok(found);
        }
        match watch(cluster, &fields, version, &mut look).await? {
            ControlFlow::Break(found) => return Ok(found),
            ControlFlow::Continue(()) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Watches from a version on. Goes on with the next watch when one ends; returns without a result
/// when the Pod has to be looked at again.
async fn watch<T>(
    cluster: &Cluster,
    fields: &str,
    mut version: String,
    look: &mut (impl FnMut(Option<&Pod>) -> Look<T> + Send),
) -> Result<Look<T>> {
    let api = cluster.api::<Pod>().await?;
    let asked = WatchParams::default().fields(fields).timeout(WATCH_S);
    loop {
        let events = match api.watch(&asked, &version).await {
            Ok(events) => events,
            Err(error) if is_transient(&error) || is_too_old(&error) => return Ok(ControlFlow::Continue(())),
            Err(error) => return Err(failed("watch the sandbox's Pod", error)),
        };
        pin_mut!(events);
        while let Some(event) = events.next().await {
            let (pod, is_deleted) = match event {
                Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) => (pod, false),
                Ok(WatchEvent::Deleted(pod)) => (pod, true),
                Ok(WatchEvent::Bookmark(mark)) => {
                    version = mark.metadata.resource_version;
                    continue;
                }
                // 410: the server no longer knows what came after that version; or the stream broke.
                Ok(WatchEvent::Error(_)) | Err(_) => return Ok(ControlFlow::Continue(())),
            };
            version = pod.metadata.resource_version.clone().unwrap_or(version);
            if let found @ ControlFlow::Break(_) = look((!is_deleted).then_some(&pod)) {
                return Ok(found);
            }
        }
    }
}

fn is_too_old(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 410)
}
